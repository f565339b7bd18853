"""How long a failed job waits before its next attempt."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from headrace.clock import duration_ms
from headrace.errors import InvalidOption
from headrace.plain import plain_number, plain_seconds, shown

RetryFunction = Callable[[int, BaseException], float]
"""A strategy of your own: (handler errors so far, the last error) to seconds."""


class Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exponential backoff with full jitter.

    The wait before the n-th retry is drawn evenly from ``min`` to ``min * factor**n`` seconds, and
    is never over ``max``. Drawing from the whole range keeps a crowd of failed jobs from coming
    back at one instant (Brooker, "Exponential Backoff And Jitter", 2015).

    Args:
        min: least wait in seconds, default 1, over 0.
        max: longest wait in seconds, default 300, not under ``min``.
        factor: growth per attempt, default 2, 1 or more.

    Raises:
        InvalidOption: a bound is broken.
    """

    min: float = 1.0
    max: float = 300.0
    factor: float = 2.0

    def __post_init__(self) -> None:
        for name in ("min", "max"):
            duration_ms(getattr(self, name), name=f"Retry.{name}", least_ms=1)
            seconds = plain_seconds(getattr(self, name))
            msgspec.structs.force_setattr(self, name, seconds)
        if self.max < self.min:
            raise InvalidOption(f"Retry.max={self.max!r} is under Retry.min={self.min!r}")
        factor = plain_number(self.factor)
        if factor is None or not 1 <= factor <= 100:
            raise InvalidOption(f"Retry.factor={shown(self.factor)} is out of bounds: use 1 to 100")
        msgspec.structs.force_setattr(self, "factor", factor)

    def delay(self, errors: int, draw: Callable[[], float] = random.random) -> float:
        """Return the wait in seconds after ``errors`` handler errors (1 or more)."""
        steps = min(errors, 1000)
        try:
            longest = min(self.max, self.min * self.factor**steps)
        except OverflowError:
            longest = self.max
        return self.min + draw() * (longest - self.min)
