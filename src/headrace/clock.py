"""Durations, instants and where time comes from.

Public durations are seconds or `timedelta`, public instants aware `datetime`; inside, integers in
milliseconds. The conversion happens here and nowhere else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from headrace.errors import InvalidOption
from headrace.plain import plain_seconds, shown

Duration = float | timedelta
Monotonic = Callable[[], float]
WallClock = Callable[[], int]
"""Returns the time in milliseconds since the epoch."""

MAX_DURATION_MS = 10 * 366 * 24 * 3600 * 1000
"""Ten years: longer delays and timeouts are taken for a mistake of units."""

MAX_INSTANT_MS = 253_402_300_799_999
"""The last millisecond of 9999, after which a `datetime` has no year."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

monotonic: Monotonic = time.monotonic


def wall_clock() -> int:
    """Return this machine's time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def duration_ms(value: Duration, *, name: str, least_ms: int = 0, bounds: str = "") -> int:
    """Convert a public duration to milliseconds, rounding up.

    Args:
        value: seconds or a `timedelta`.
        name: what it is called, for the error.
        least_ms: the shortest.
        bounds: what the error says instead of these bounds, where the caller has narrower ones.

    Raises:
        InvalidOption: it is not a number or `timedelta`, or is under ``least_ms`` or over ten
            years.
    """
    seconds = plain_seconds(value)
    if seconds is None:
        raise InvalidOption(
            f"{name}={shown(value)} is not a duration: pass seconds as a number, or a timedelta"
        )
    # NaN compares as false, and an integer may be too large for a float.
    if not least_ms <= seconds * 1000 <= MAX_DURATION_MS:
        seconds_word = "second" if least_ms == 1000 else "seconds"
        bounds = bounds or f"{least_ms / 1000:g} {seconds_word} to ten years"
        raise InvalidOption(f"{name}={shown(value)} is out of bounds: use {bounds}")
    return math.ceil(seconds * 1000)


def instant_ms(value: datetime, *, name: str) -> int:
    """Convert an aware `datetime` to milliseconds since the epoch, rounding up.

    Raises:
        InvalidOption: it is not an aware `datetime`, or is before 1970 or over ten years ahead.
    """
    instant = epoch_ms(value, name=name)
    if not instant <= time.time() * 1000 + MAX_DURATION_MS:
        raise InvalidOption(
            f"{name}={shown(value)} is out of bounds: use 1970 to ten years from now"
        )
    return instant


def epoch_ms(value: datetime, *, name: str) -> int:
    """Convert an aware `datetime`, however far ahead, to milliseconds since the epoch, rounding up.

    Raises:
        InvalidOption: it is not an aware `datetime`, or is before 1970 or after 9999.
    """
    if not isinstance(value, datetime):
        raise InvalidOption(f"{name}={shown(value)} is not an instant: pass an aware datetime")
    try:
        is_naive = value.tzinfo is None or value.utcoffset() is None
        span = timedelta() if is_naive else datetime.__sub__(value, _EPOCH)
    except Exception as error:  # a time zone is anybody's code
        raise InvalidOption(f"{name}={shown(value)}: its time zone can't be read") from error
    if is_naive:
        raise InvalidOption(
            f"{name}={shown(value)} is naive: give it a time zone, as in datetime.now(UTC)"
        )
    instant = -(-span // _MILLISECOND)  # rounds up, and exactly
    if not 0 <= instant <= MAX_INSTANT_MS:
        raise InvalidOption(f"{name}={shown(value)} is out of bounds: use 1970 to 9999")
    return instant


def datetime_of(instant: int) -> datetime:
    """Convert milliseconds since the epoch to an aware `datetime` in UTC."""
    return _EPOCH + timedelta(milliseconds=instant)
