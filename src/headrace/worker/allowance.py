"""How many jobs one queue of a worker may hold: fewer after each fence, soon as many as before.

What a worker holds may be what keeps its beats from being answered: on a busy machine each job
costs time, to claim, to start and to record. If its next incarnation claimed as much, it could be
fenced again, for ever. So each fence halves what was held, and each lease that passes without one
doubles it, as TCP does with its window.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Allowance:
    """What the incarnations of one queue may hold, one after another.

    Args:
        total: all slots of the worker: with so many there is no limit.
        lease_s: the worker's lease.
        monotonic: the clock.
    """

    def __init__(
        self, total: int, *, lease_s: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._total = total
        self._lease_s = lease_s
        self._monotonic = monotonic
        self._limit = total
        self._since = 0.0

    @property
    def is_reduced(self) -> bool:
        """Whether there is a limit. Without one this is all that a claim or an attempt pays."""
        return self._limit < self._total

    def begin(self) -> None:
        """Count leases from now on: a new incarnation was made known."""
        self._since = self._monotonic()

    def room(self, held: int) -> int:
        """Return how many more jobs may be claimed now, by one that holds so many."""
        self._grow()
        return max(0, self._limit - held) if self.is_reduced else self._total

    @property
    def grows_in_s(self) -> float | None:
        """How long until it grows again, None without a limit."""
        return self._since + self._lease_s - self._monotonic() if self.is_reduced else None

    def halve(self, held: int) -> None:
        """Allow half of what was held, or was asked for, when the incarnation was fenced.

        One that held a single job, or none, was fenced for another reason than their number.
        """
        self._grow()
        if held > 1:
            self._limit = min(held, self._limit) // 2 or 1

    def _grow(self) -> None:
        """Double the limit for each lease that has passed: beats were answered, or it had ended."""
        now = self._monotonic()
        while self.is_reduced and now - self._since >= self._lease_s:
            self._limit = min(self._limit * 2, self._total)
            self._since += self._lease_s
