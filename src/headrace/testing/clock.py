"""The time of a kit's storage, which a test moves."""

from __future__ import annotations

import time
from datetime import datetime

from headrace.clock import Duration, datetime_of, duration_ms, instant_ms
from headrace.errors import InvalidOption


class ManualClock:
    """A clock that stands still until it is moved on.

    Args:
        start: an aware `datetime`, default now.
        ticking: whether real time passes on it too, so that what the code under test takes from
            ``datetime.now()`` is never ahead of it.

    Raises:
        InvalidOption: ``start`` is naive or out of bounds.
    """

    def __init__(self, start: datetime | None = None, *, ticking: bool = False) -> None:
        self._ms = _real_ms() if start is None else instant_ms(start, name="start")
        self._ticks_since = _real_ms() if ticking else None

    def __repr__(self) -> str:
        return f"<ManualClock at {self.now.isoformat()}>"

    def __call__(self) -> int:
        """Return the time in milliseconds since the epoch, as a storage asks for it."""
        ticks = self._ticks_since
        return self._ms + (0 if ticks is None else max(0, _real_ms() - ticks))

    @property
    def now(self) -> datetime:
        """The time, as an aware `datetime` in UTC."""
        return datetime_of(self())

    def advance(self, duration: Duration) -> datetime:
        """Move on by seconds or a `timedelta`, and return the time.

        Raises:
            InvalidOption: it is negative or over ten years.
        """
        return self.advance_ms(duration_ms(duration, name="duration"))

    def advance_ms(self, ms: int) -> datetime:
        """Move on by whole milliseconds, 0 or more, and return the time."""
        if ms < 0:
            raise InvalidOption(f"{ms} ms: a clock is not moved back")
        self._ms += ms
        return self.now


def _real_ms() -> int:
    return time.time_ns() // 1_000_000
