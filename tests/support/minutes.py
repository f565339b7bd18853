"""The rules for clock changes, worked out by looking at every minute: nothing clever.

It knows nothing of `headrace.timing`: an entry is the minutes and hours that fit, as sets.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
Fits = Callable[[datetime], bool]


@cache
def changes(zone: str, first_year: int, last_year: int) -> tuple[datetime, ...]:
    """Return the first noon in UTC after each change of a zone's clock."""
    noon, end = (
        datetime(first_year, 1, 1, 12, tzinfo=UTC),
        datetime(last_year + 1, 1, 1, tzinfo=UTC),
    )
    found = []
    offset = noon.astimezone(ZoneInfo(zone)).utcoffset()
    while noon < end:
        noon += timedelta(days=1)
        if noon.astimezone(ZoneInfo(zone)).utcoffset() != offset:
            offset = noon.astimezone(ZoneInfo(zone)).utcoffset()
            found.append(noon)
    return tuple(found)


class Minutes:
    """Every minute from one instant to another, and what a zone's clock shows at each."""

    def __init__(self, zone: str, begin: datetime, end: datetime) -> None:
        count = int((end - begin) / MINUTE)
        instants = [begin + number * MINUTE for number in range(count)]
        self.shown = [
            (
                int(instant.timestamp() * 1000),
                instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None),
            )
            for instant in instants
        ]
        self.begin_ms, self.end_ms = self.shown[0][0], self.shown[-1][0]
        self._first: dict[datetime, int] = {}
        for instant_ms, wall in self.shown:
            self._first.setdefault(wall, instant_ms)

    def whenever_shown(self, fits: Fits) -> list[int]:
        """Return each minute at which the clock shows a time that fits."""
        return [instant_ms for instant_ms, wall in self.shown if fits(wall)]

    def once_each(self, fits: Fits, *, is_shifted: bool) -> list[int]:
        """Return one minute for each time that fits: when it is shown first, or after its gap."""
        wall, last = self.shown[0][1], max(wall for _, wall in self.shown)
        found = set()
        while wall <= last:
            if fits(wall):
                if wall in self._first:
                    found.add(self._first[wall])
                elif is_shifted:
                    found.add(next(instant for instant, shown in self.shown if shown > wall))
            wall += MINUTE
        return sorted(found)
