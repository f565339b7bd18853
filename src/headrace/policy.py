"""What a schedule asks for beside its timing: each option's type, meaning and check."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict, cast

from headrace.clock import Duration, WallClock, datetime_of, duration_ms, instant_ms, wall_clock
from headrace.errors import InvalidOption
from headrace.foreign import of_option
from headrace.job import check_text
from headrace.plain import plain_integer, plain_text, shown
from headrace.planning import LOOKED_AT
from headrace.schedule import ID_LIMIT_BYTES, CatchUp, Overlap, ScheduleBody
from headrace.timing import At, Cron, Every, Timing


class SchedulePolicy(TypedDict, total=False):
    """Options of a schedule. None says nothing.

    Attributes:
        catch_up: which occurrences are fired late, when no scheduler has fired them within a
            minute: ``"skip"`` (default) none; ``"latest"`` the newest, if no later one is on time;
            a number, 1 to 1,000: so many of the newest.
        jitter: each occurrence comes later by a share of this, the same for every scheduler; at
            most the shortest time between two of them, default 0.
        overlap: ``"allow"`` (default), or ``"skip"`` to pass over an occurrence while the job that
            the schedule fired last has not ended.
        start: no occurrence is before this instant (aware); an `Every` counts from it.
        end: no occurrence is after this instant (aware).
    """

    catch_up: Literal["skip", "latest"] | int | None
    jitter: Duration | None
    overlap: Literal["allow", "skip"] | None
    start: datetime | None
    end: datetime | None


_NAMES = frozenset(SchedulePolicy.__annotations__)


def check_schedule_id(schedule_id: str) -> str:
    """Return the id of a schedule as plain text.

    Raises:
        InvalidOption: it is empty, over 200 bytes of UTF-8, not encodable, or has control
            characters.
    """
    return check_text(schedule_id, what="schedule id", limit_bytes=ID_LIMIT_BYTES)


def check_timing(timing: object) -> Timing:
    """Return a timing, or raise `InvalidOption` if it is none."""
    if isinstance(timing, Cron | Every | At):
        return timing
    text = plain_text(timing)
    meant = (
        "Cron('0 9 * * 1'), Every(30) or At(instant)" if text is None else f"Cron({shown(text)})"
    )
    raise InvalidOption(f"timing={shown(timing)} is no timing: pass {meant}")


def policy_fields(said: Mapping[str, Any], *, taker: str) -> dict[str, Any]:
    """Check and convert what is said of a schedule.

    Args:
        said: as in `SchedulePolicy`.
        taker: what was called, for the error.

    Returns:
        What it comes to, by the fields of `ScheduleBody`.

    Raises:
        InvalidOption: a value is out of bounds.
        TypeError: there is no such option.
    """
    for name in said:
        if name not in _NAMES:
            hint = of_option(name, _NAMES)
            raise TypeError(f"{taker}() got an unexpected keyword argument {name!r}{hint}")
    fields: dict[str, Any] = {}
    if (catch_up := said.get("catch_up")) is not None:
        fields["catch_up"] = _check_catch_up(catch_up)
    if (jitter := said.get("jitter")) is not None:
        fields["jitter_ms"] = duration_ms(jitter, name="jitter")
    if (overlap := said.get("overlap")) is not None:
        fields["overlap"] = _check_overlap(overlap)
    for name in ("start", "end"):
        if (instant := said.get(name)) is not None:
            fields[f"{name}_ms"] = instant_ms(instant, name=name)
    return fields


def _check_catch_up(value: object) -> CatchUp:
    text, count = plain_text(value), plain_integer(value)
    if text in ("skip", "latest"):
        return cast(Literal["skip", "latest"], text)
    if count is None or not 1 <= count <= LOOKED_AT:
        raise InvalidOption(
            f"catch_up={shown(value)} is not known: use 'skip', 'latest' or a whole number, "
            f"1 to {LOOKED_AT:,}"
        )
    return count


def _check_overlap(value: object) -> Overlap:
    text = plain_text(value)
    if text not in ("allow", "skip"):
        raise InvalidOption(f"overlap={shown(value)} is not known: use 'allow' or 'skip'")
    return cast(Overlap, text)


def check_body(body: ScheduleBody) -> ScheduleBody:
    """Return a schedule whose parts go together.

    Raises:
        InvalidOption: its jitter is over the time between two occurrences, or it ends before it
            starts.
    """
    start_ms, end_ms = body.start_ms, body.end_ms
    if start_ms is not None and end_ms is not None and end_ms < start_ms:
        raise InvalidOption(
            f"end={_written(end_ms)} is before start={_written(start_ms)}: say a later end"
        )
    gap_ms = body.timing.shortest_gap_ms(wall_clock()) if body.jitter_ms else None
    if gap_ms is not None and body.jitter_ms > gap_ms:
        raise InvalidOption(
            f"jitter={body.jitter_ms / 1000:g} s is over the shortest time between two "
            f"occurrences of {body.timing}: use {gap_ms / 1000:g} s at most"
        )
    return body


def check_to_come(
    schedule_id: str, body: ScheduleBody, *, tolerance_ms: int, clock: WallClock = wall_clock
) -> None:
    """See that there will be an occurrence, by a clock of the caller's.

    Raises:
        InvalidOption: there will be none, not even if the clock is ahead by so much.
    """
    now_ms = clock()
    if body.next_after(now_ms - tolerance_ms) is None:
        end = "" if body.end_ms is None else f" to the end, {_written(body.end_ms)}"
        raise InvalidOption(
            f"schedule {shown(schedule_id)} would never fire: {body.timing} has no occurrence from "
            f"now, {_written(now_ms)},{end or ' on'}: say a later instant"
        )


def _written(instant: int) -> str:
    return datetime_of(instant).isoformat(timespec="seconds")
