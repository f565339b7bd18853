"""Which times on a wall clock fit a cron expression: no zone, no change of the clock.

A wall time is an integer: seconds from 1970-01-01 00:00 on that clock. The walk goes both ways,
and its steps are bounded: it looks at one month after another, for 50 years. croniter's own walk
takes ten times as long, and finds nothing where ``#`` meets a day of the month.
"""

from __future__ import annotations

import calendar
from bisect import bisect_left
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from itertools import product

from headrace.errors import InvalidOption
from headrace.plain import shown
from headrace.timing.fields import LAST, CronFields, read_fields

DAY_S = 24 * 3600
MONTHS = 50 * 12
"""How many months without a day are looked at. What fits at all does so within 40 years: as
29 February on a Monday, since 2100 has none."""

FIRST_YEAR, LAST_YEAR = 1900, 9000
"""Beyond them nothing is looked for, so that no date and no offset overflows."""

_EPOCH = date(1970, 1, 1).toordinal()
LAST_S = (date(LAST_YEAR, 12, 1).toordinal() - _EPOCH) * DAY_S
"""The end of what is looked for."""

_LENGTHS = {2: (28, 29), 4: (30,), 6: (30,), 9: (30,), 11: (30,)}


class WallTimes:
    """The wall times that an expression names."""

    def __init__(self, fields: CronFields) -> None:
        self._fields = fields
        self._days: dict[tuple[int, int], tuple[int, ...]] = {}
        self._per_hour = len(fields.minutes) * len(fields.seconds)
        self._per_day = len(fields.hours) * self._per_hour

    @property
    def is_possible(self) -> bool:
        """Whether there is any: the 30th of February never comes."""
        return any(
            self._days_of(weekday, length)
            for month in self._fields.months
            for weekday, length in product(range(7), _LENGTHS.get(month, (31,)))
        )

    def since(self, wall_s: int) -> Iterator[int]:
        """Yield each from ``wall_s`` on, ascending, until none comes for 50 years."""
        day, second = divmod(wall_s, DAY_S)
        for found in self._walk(day, 1):
            for rank in range(self._rank(second) if found == day else 0, self._per_day):
                yield found * DAY_S + self._second(rank)

    def before(self, wall_s: int) -> Iterator[int]:
        """Yield each before ``wall_s``, descending, until none comes for 50 years."""
        day, second = divmod(wall_s, DAY_S)
        for found in self._walk(day, -1):
            for rank in reversed(range(self._rank(second) if found == day else self._per_day)):
                yield found * DAY_S + self._second(rank)

    def __contains__(self, wall_s: int) -> bool:
        return next(self.since(wall_s), None) == wall_s

    def _walk(self, day: int, step: int) -> Iterator[int]:
        """Yield the days that fit, from ``day`` on, as days since the epoch."""
        start = date.fromordinal(_EPOCH + day)
        month = start.year * 12 + start.month - 1
        left = MONTHS
        while left and FIRST_YEAR <= month // 12 <= LAST_YEAR:
            days = [found for found in self._days_in(month) if (found - day) * step >= 0]
            yield from days[::step]
            left = MONTHS if days else left - 1
            month += step

    def _days_in(self, month: int) -> tuple[int, ...]:
        year, index = divmod(month, 12)
        if index + 1 not in self._fields.months:
            return ()
        weekday, length = calendar.monthrange(year, index + 1)
        before = date(year, index + 1, 1).toordinal() - _EPOCH - 1
        return tuple(before + day for day in self._days_of((weekday + 1) % 7, length))

    def _days_of(self, weekday: int, length: int) -> tuple[int, ...]:
        """Return the days that fit in a month that begins on ``weekday``; there are 28 kinds."""
        if (weekday, length) not in self._days:
            self._days[weekday, length] = tuple(
                day for day in range(1, length + 1) if self._fits(day, weekday, length)
            )
        return self._days[weekday, length]

    def _fits(self, day: int, first: int, length: int) -> bool:
        fields = self._fields
        fits_month = day in fields.days or (day == length and LAST in fields.days)
        weekday = (first + day - 1) % 7
        nths = {(day + 6) // 7, LAST if day + 7 > length else 0}
        fits_week = weekday in fields.weekdays or any((weekday, n) in fields.nth for n in nths)
        return fits_month or fits_week if fields.is_either_day else fits_month and fits_week

    def _rank(self, second: int) -> int:
        """Return how many of a day's times come before its ``second``."""
        fields = self._fields
        hour, rest = divmod(second, 3600)
        rank = bisect_left(fields.hours, hour) * self._per_hour
        if hour not in fields.hours:
            return rank
        minute, second = divmod(rest, 60)
        rank += bisect_left(fields.minutes, minute) * len(fields.seconds)
        return rank + bisect_left(fields.seconds, second) if minute in fields.minutes else rank

    def _second(self, rank: int) -> int:
        hour, rank = divmod(rank, self._per_hour)
        minute, second = divmod(rank, len(self._fields.seconds))
        fields = self._fields
        return fields.hours[hour] * 3600 + fields.minutes[minute] * 60 + fields.seconds[second]


@lru_cache(maxsize=4096)
def wall_times(expression: str, *, seconds: bool) -> WallTimes:
    """Return what an expression names; it is read once.

    Raises:
        InvalidOption: it can't be read, or names a day that never comes.
    """
    fields = read_fields(expression, seconds=seconds)
    found = WallTimes(fields)
    if not found.is_possible:
        _, _, day, month, weekday, _ = fields.texts
        beside = "" if weekday[0] in "*?" else f" that is the weekday {weekday!r}"
        raise InvalidOption(
            f"Cron: {shown(expression)} never comes: month {month!r} has no day {day!r}{beside}"
        )
    return found


def clock_text(wall_s: int) -> str:
    """Return the time of day that a wall time has: "09:00", or "09:00:30" with seconds."""
    minute, second = divmod(wall_s % DAY_S, 60)
    text = f"{minute // 60:02}:{minute % 60:02}"
    return f"{text}:{second:02}" if second else text
