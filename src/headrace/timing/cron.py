"""A timing by a cron expression in a time zone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from typing import Literal

import msgspec

from headrace.errors import InvalidOption
from headrace.plain import plain_text, shown
from headrace.timing.clock_changes import once_each, whenever_shown
from headrace.timing.fields import CronFields, read_fields
from headrace.timing.walls import LAST_S, clock_text, wall_times
from headrace.timing.words import cron_words
from headrace.timing.zones import (
    check_zone,
    gap_before,
    instants_of,
    nearby_offsets,
    wall_at,
    zone_of,
)

GAPS = 10
"""How many gaps between instants are looked at for the shortest one."""


class _Expression(msgspec.Struct, frozen=True):
    # A class of its own, since the fields of one class are all positional or all keyword-only.
    expression: str


class Cron(_Expression, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="cron"):
    """Whenever the clock of a time zone fits a cron expression.

    docs/cron.md describes the fields, and what happens where clocks are set forward and back.

    Args:
        expression: five fields (minute, hour, day of the month, month, weekday), or a macro as
            ``@daily``; at most 1,000 characters.
        tz: name of the time zone, as in ``"Europe/Berlin"``; default ``"UTC"``.
        dst: what becomes of a local time that a clock set forward leaves out, if the hour does not
            begin with a star: ``"shift"`` (the default) takes the first instant after the gap,
            ``"skip"`` leaves it out that day.
        seconds: the expression has six fields, the second first.

    Raises:
        InvalidOption: the expression can't be read or never comes, the zone is not known on this
            machine, or another value is none of those named above.
    """

    tz: str = "UTC"
    dst: Literal["shift", "skip"] = "shift"
    seconds: bool = False

    def __post_init__(self) -> None:
        text = plain_text(self.expression)
        if text is None:
            raise InvalidOption(
                f"Cron: {shown(self.expression)} is no expression: pass text, as in '0 9 * * 1'"
            )
        if not isinstance(self.seconds, bool):
            raise InvalidOption(f"Cron: seconds={shown(self.seconds)}: pass True or False")
        dst = plain_text(self.dst)
        if dst not in ("shift", "skip"):
            raise InvalidOption(f"Cron: dst={shown(self.dst)}: pass 'shift' or 'skip'")
        text = re.sub(r"[ \t]+", " ", text.strip(" \t"))
        wall_times(text, seconds=self.seconds)
        msgspec.structs.force_setattr(self, "expression", text)
        msgspec.structs.force_setattr(self, "tz", check_zone(self.tz))
        msgspec.structs.force_setattr(self, "dst", dst)

    def after(self, after_ms: int, *, start_ms: int | None = None) -> int | None:
        """Return the first instant that is later than ``after_ms`` and not before ``start_ms``.

        Returns:
            Milliseconds since the epoch; None if there is none within 50 years.
        """
        if start_ms is not None:
            after_ms = max(after_ms, start_ms - 1)
        found = _next_s(self, after_ms // 1000)
        return None if found is None else found * 1000

    def newest(
        self, after_ms: int, until_ms: int, limit: int, *, start_ms: int | None = None
    ) -> list[int]:
        """Return the newest instants after ``after_ms`` and up to ``until_ms``, ascending.

        The work grows with ``limit``, and not with the span.

        Args:
            after_ms: none is at it, or before it.
            until_ms: none is after it.
            limit: most instants to return.
            start_ms: none is before it.
        """
        after_ms = max(after_ms, -1 if start_ms is None else start_ms - 1)
        newer = takewhile(lambda found: found * 1000 > after_ms, _back(self, until_ms // 1000))
        return [found * 1000 for found in islice(newer, limit)][::-1]

    def shortest_gap_ms(self, from_ms: int) -> int | None:
        """Return the least time between the next instants, eleven at most, after ``from_ms``.

        Returns:
            Milliseconds; None if there are fewer than two.
        """
        found = islice(_forth(self, from_ms // 1000), GAPS + 1)
        return min(((late - early) * 1000 for early, late in pairwise(found)), default=None)

    def explain_instant(self, instant_ms: int) -> str:
        """Return which rule about clocks applies to an instant of this timing, "" if none does.

        As "local 02:30 does not exist: this is the first instant after the gap", or "local 01:30
        comes twice: this is the first time".
        """
        instant_s = instant_ms // 1000
        zone = zone_of(self.tz)
        walls = wall_times(self.expression, seconds=self.seconds)
        if not _fields(self).is_every_hour and self.dst == "shift":
            gap = gap_before(zone, instant_s)
            missing = next(walls.since(gap.start), gap.stop)
            if missing in gap:
                return (
                    f"local {clock_text(missing)} does not exist: this is the first instant after "
                    "the gap"
                )
        wall_s = wall_at(zone, instant_s)
        first, second = instants_of(zone, wall_s)
        if first < second and wall_s in walls:
            which = "first" if instant_s == first else "second"
            return f"local {clock_text(wall_s)} comes twice: this is the {which} time"
        return ""

    def words(self) -> str:
        """Return what it means in plain words: "every Monday at 09:00, New York time"."""
        return cron_words(_fields(self), self.tz)

    def __str__(self) -> str:
        return f"cron {self.expression} {self.tz}{'' if self.dst == 'shift' else ' dst=skip'}"


def _fields(cron: Cron) -> CronFields:
    """Return what the fields of the expression name."""
    return read_fields(cron.expression, seconds=cron.seconds)


@lru_cache(maxsize=8192)
def _next_s(cron: Cron, after_s: int) -> int | None:
    # Cached, since thousands of schedules may share an expression and be due together.
    return next(_forth(cron, after_s), None)


def _forth(cron: Cron, after_s: int) -> Iterator[int]:
    """Return the instants after one, ascending."""
    if after_s > LAST_S:
        return iter(())
    after_s = max(after_s, -1)
    zone = zone_of(cron.tz)
    # Where the clock is set back, wall times before the present one come once more.
    begin_s = after_s + min(nearby_offsets(zone, after_s)) + 1
    walls = wall_times(cron.expression, seconds=cron.seconds).since(begin_s)
    return (found for found in _instants(cron, walls, zone, is_ascending=True) if found > after_s)


def _back(cron: Cron, until_s: int) -> Iterator[int]:
    """Return the instants up to one, descending."""
    until_s = min(max(until_s, -1), LAST_S)
    zone = zone_of(cron.tz)
    end_s = until_s + max(nearby_offsets(zone, until_s)) + 1
    walls = wall_times(cron.expression, seconds=cron.seconds).before(end_s)
    return (found for found in _instants(cron, walls, zone, is_ascending=False) if found <= until_s)


def _instants(
    cron: Cron, walls: Iterator[int], zone: tzinfo, *, is_ascending: bool
) -> Iterator[int]:
    if _fields(cron).is_every_hour:
        return whenever_shown(walls, zone, is_ascending=is_ascending)
    return once_each(walls, zone, is_shifted=cron.dst == "shift")
