"""Decides whether and when another worker process follows one that has ended by itself."""

from __future__ import annotations

from headrace.backoff import Backoff

ENDED_FOR_GOOD = (2, 4)
"""Exit codes that another start would not change: wrong usage, no app."""

LONG_LIFE_S = 10.0
"""A worker that crashes after a longer life starts again at once."""

LEAST_LIFE_S = 1.0
"""The least time between two starts of a worker that ends by its own limits: they may be too low
for it to do anything."""


class Restarts:
    """The starts of one worker after another.

    Args:
        replaces: whether any follows at all, which none does in a burst.
    """

    def __init__(self, *, replaces: bool) -> None:
        self._replaces = replaces
        self._backoff = Backoff()

    def reset(self) -> None:
        """Begin again with short pauses."""
        self._backoff.reset()

    def failed_s(self) -> float:
        """Return the pause in seconds after a start that failed, for want of a process."""
        return self._backoff.next_s()

    def pause_s(self, code: int, *, lived_s: float) -> float | None:
        """Return the pause in seconds before the next start, None if there is to be none.

        Args:
            code: how the process ended: its status, or minus the signal that killed it.
            lived_s: for how long it was there.
        """
        if not self._replaces or code in ENDED_FOR_GOOD:
            return None
        if code == 0:
            self.reset()
            return max(0.0, LEAST_LIFE_S - lived_s)
        if lived_s > LONG_LIFE_S:
            self.reset()
        return self._backoff.next_s()
