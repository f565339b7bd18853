"""Time zones by name, and the two ways between what their clocks show and instants.

A wall time is seconds from 1970-01-01 00:00 on a zone's clock, an instant seconds since the epoch.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from headrace.errors import InvalidOption
from headrace.nearest import nearest
from headrace.plain import plain_text, shown

REACH_S = 24 * 3600
"""No zone changes its clock by more, or twice within it."""

_START = datetime(1970, 1, 1)  # noqa: DTZ001  # of any clock
_START_UTC = _START.replace(tzinfo=UTC)
_SECOND = timedelta(seconds=1)

_OF_THE_MACHINE = frozenset({"localtime", "posixrules", "Factory"})
_SHORT = 4
"""A name of so few letters, such as PST, is like too many others to guess what was meant."""


def check_zone(name: object) -> str:
    """Return the name of a zone that is known here, or raise `InvalidOption`."""
    text = plain_text(name)
    if text is None:
        raise InvalidOption(
            f"tz={shown(name)} is not a name: pass that of a zone, as in 'Europe/Berlin'"
        )
    zone_of(text)
    return text


@lru_cache(maxsize=1024)
def zone_of(name: str) -> tzinfo:
    """Return the zone of this name.

    Raises:
        InvalidOption: it is not known here.
    """
    if name == "UTC":
        return UTC  # also where no time zone data are installed
    # Not at the top: zoneinfo takes 0.3 MB, for those alone who have schedules elsewhere.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    # What the data of leap seconds, or of the machine itself, say differs between machines.
    is_portable = not name.startswith(("right/", "posix/")) and name not in _OF_THE_MACHINE
    try:
        if is_portable and name.isascii() and name.isprintable():
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # of a folder, or an odd path
        pass
    raise InvalidOption(f"tz={shown(name)} is not a time zone{_hint(name)}")


def _hint(name: str) -> str:
    from zoneinfo import available_timezones

    known = {_folded(zone): zone for zone in available_timezones()}
    if not known:
        return ": no time zone data are installed, so only 'UTC' is known; install tzdata"
    folded = _folded(name)
    meant = folded if folded in known else ""
    if not meant and len(name) > _SHORT:
        meant = nearest(folded, known)
    if meant:
        return f": did you mean {known[meant]!r}?"
    return ": pass a name of the IANA database, as in 'Europe/Berlin'"


def _folded(name: str) -> str:
    # Dotted, so that `nearest` finds a city without its continent.
    return name.lower().replace("/", ".").replace(" ", "_")


def wall_at(zone: tzinfo, instant_s: int) -> int:
    """Return what the clock shows at an instant."""
    return instant_s + offset_at(zone, instant_s)


def offset_at(zone: tzinfo, instant_s: int) -> int:
    """Return how many seconds the clock is ahead of UTC at an instant."""
    return _seconds((_START_UTC + timedelta(seconds=instant_s)).astimezone(zone).utcoffset())


def nearby_offsets(zone: tzinfo, instant_s: int) -> set[int]:
    """Return the offsets that the clock may have had, or may have, within `REACH_S`."""
    return {offset_at(zone, instant_s + shift_s) for shift_s in (-REACH_S, 0, REACH_S)}


def instants_of(zone: tzinfo, wall_s: int) -> tuple[int, int]:
    """Return when the clock shows a time, as it goes before a change nearby, and as after it.

    Both are the same but around a change. If the first is earlier, the clock shows the time twice,
    at both; if it is later, the clock never shows it.
    """
    local = (_START + timedelta(seconds=wall_s)).replace(tzinfo=zone)
    before, after = (_seconds(local.replace(fold=fold).utcoffset()) for fold in (0, 1))
    return wall_s - before, wall_s - after


def end_of_gap(zone: tzinfo, wall_s: int) -> int:
    """Return the first instant after the gap that a wall time is in: the change itself."""
    late, early = instants_of(zone, wall_s)
    offset = offset_at(zone, late)
    while late - early > 1:
        middle = (late + early) // 2
        if offset_at(zone, middle) == offset:
            late = middle
        else:
            early = middle
    return late


def gap_before(zone: tzinfo, instant_s: int) -> range:
    """Return the wall times that the clock leaves out just before an instant; none but at a gap."""
    return range(instant_s + offset_at(zone, instant_s - 1), wall_at(zone, instant_s))


def _seconds(offset: timedelta | None) -> int:
    return (offset or timedelta()) // _SECOND
