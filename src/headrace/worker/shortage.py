"""What a lane waits for whose next job needs more slots than are free, and when it looks anew."""

from __future__ import annotations

import math
import time

LOOK_S = 2.5
"""How long until it looks whether that job is still the next: it may be cancelled, or taken."""


class Shortage:
    """The slots that the next job needs; 0 while one will do."""

    def __init__(self) -> None:
        self.needs: int = 0
        self._look_at = math.inf

    def note(self, needs: int) -> None:
        """Note what a claim has said."""
        self.needs = needs
        self._look_at = time.monotonic() + LOOK_S if needs else math.inf

    def is_time(self) -> bool:
        """Whether to look anew; if so, the next look is later by as much."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_S
        return True

    def wait_s(self, other_s: float | None) -> float | None:
        """Return how long to wait at most, given another bound; None: without any."""
        left_s = self._look_at - time.monotonic()
        shortest_s = left_s if other_s is None else min(left_s, other_s)
        return None if shortest_s == math.inf else shortest_s
