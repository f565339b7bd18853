"""What became of jobs that were to be cancelled, as who asked sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.job import CancelOutcome
from headrace.views.value import PublicValue


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelReport(PublicValue):
    """What became of the jobs of a queue that were to be cancelled; `Queue.cancel` returns it.

    ``matched`` is how many were to be: ids that were said, or jobs that there were. ``cancelled``
    of them never start, or had been cancelled before; ``requested`` are active and asked to stop;
    ``finished`` had ended otherwise; and ``not_found`` were not there, or had gone on to a state
    that was not asked for.
    """

    queue: str
    matched: int
    cancelled: int
    requested: int
    finished: int
    not_found: int

    @classmethod
    def of(cls, queue: str, matched: int, verdicts: Mapping[CancelOutcome, int]) -> CancelReport:
        """Return how many of the verdicts there are of each kind."""
        counts = {verdict.value: verdicts.get(verdict, 0) for verdict in CancelOutcome}
        return cls(queue=queue, matched=matched, **counts)
