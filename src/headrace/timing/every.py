"""A timing by an interval."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from headrace.clock import duration_ms
from headrace.plain import plain_seconds
from headrace.timing.spans import seconds_text, span_words

MIN_INTERVAL_MS = 100


class Every(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="every"):
    """Again and again, at an interval.

    The instants are counted from the start of the schedule, or from 1970-01-01 00:00 UTC if it has
    none, so that they are the same for every process and after every restart.

    Args:
        interval: seconds or a `timedelta`, 0.1 seconds to ten years, rounded to a millisecond.

    Raises:
        InvalidOption: it is no duration, or is out of bounds.
    """

    interval: float | timedelta

    def __post_init__(self) -> None:
        duration_ms(self.interval, name="Every.interval", least_ms=MIN_INTERVAL_MS)
        seconds = plain_seconds(self.interval)
        msgspec.structs.force_setattr(self, "interval", round(float(seconds or 0), 3))

    @property
    def interval_ms(self) -> int:
        """The interval in milliseconds."""
        return round(1000 * float(plain_seconds(self.interval) or 0))

    def after(self, after_ms: int, *, start_ms: int | None = None) -> int:
        """Return the first instant that is later than ``after_ms`` and not before ``start_ms``."""
        first_ms = start_ms or 0
        return first_ms + self._count(after_ms, first_ms) * self.interval_ms

    def newest(
        self, after_ms: int, until_ms: int, limit: int, *, start_ms: int | None = None
    ) -> list[int]:
        """Return the newest instants after ``after_ms`` and up to ``until_ms``, ascending.

        Args:
            after_ms: none is at it, or before it.
            until_ms: none is after it.
            limit: most instants to return.
            start_ms: none is before it.
        """
        first_ms = start_ms or 0
        end = self._count(until_ms, first_ms)
        begin = max(self._count(after_ms, first_ms), end - limit)
        return [first_ms + count * self.interval_ms for count in range(begin, end)]

    def _count(self, until_ms: int, first_ms: int) -> int:
        """Return how many instants there are up to ``until_ms``."""
        return max(0, (until_ms - first_ms) // self.interval_ms + 1)

    def shortest_gap_ms(self, from_ms: int) -> int:
        """Return the interval in milliseconds, whatever ``from_ms``."""
        return self.interval_ms

    def explain_instant(self, instant_ms: int) -> str:
        """Return "": no rule about clocks applies to an interval."""
        return ""

    def words(self) -> str:
        """Return what it means in plain words: "every 30 seconds"."""
        return f"every {span_words(self.interval_ms)}"

    def __str__(self) -> str:
        return f"every {seconds_text(self.interval_ms)} s"
