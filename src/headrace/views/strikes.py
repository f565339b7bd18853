"""What keeps jobs of a queue from being run, as operators see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headrace.clock import datetime_of
from headrace.strike import Strike, Value
from headrace.views.value import PublicValue


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStrike(PublicValue):
    """Jobs that are not to be run until this is lifted; `Queue.strikes` returns them.

    They are those of ``task``, None for any, whose arguments are what ``where`` says by their
    parameters. Its ``action`` is ``wait`` or ``cancel``.
    """

    queue: str
    id: str
    task: str | None
    where: dict[str, Value]
    action: str
    since: datetime

    @classmethod
    def of(cls, queue: str, strike: Strike) -> QueueStrike:
        """Return what a storage keeps of a strike."""
        return cls(
            queue=queue,
            id=strike.name,
            task=strike.task or None,
            where=strike.conditions(),
            action=strike.action.value,
            since=datetime_of(strike.since_ms),
        )
