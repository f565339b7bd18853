"""What is to become of a schedule's occurrences that are due: pure, by an instant that is given."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import Literal

import msgspec

from headrace.schedule import HistoryEntry, Reason, ScheduleBody

ON_TIME_MS = 60_000
"""An occurrence is fired whatever `ScheduleBody.catch_up` says for so long after its instant."""

LOOKED_AT = 1_000
"""Most occurrences that are decided about one by one: the newest."""


class SchedulePlan(msgspec.Struct, frozen=True):
    """What to do about a schedule.

    Attributes:
        fire: the instants to fire, oldest first.
        passed: entries for its history of the occurrences that are not fired, oldest first.
        next_ms: the first occurrence that is not due yet; None: there will be none.
    """

    fire: tuple[int, ...]
    passed: tuple[HistoryEntry, ...]
    next_ms: int | None


def plan(
    body: ScheduleBody, schedule_id: str, now_ms: int, *, is_running: bool = False
) -> SchedulePlan:
    """Decide about all occurrences from the schedule's next one to those that are due now.

    One is due at its instant and its share of the jitter, but never before an earlier one. Those
    that are due for at most `ON_TIME_MS` are fired; of the late ones those that ``catch_up`` asks
    for; of all these the first alone where ``overlap`` is ``skip``, since its job has just begun.
    None is fired while the schedule is paused.

    Args:
        body: the schedule.
        schedule_id: its id, from which the jitter is drawn.
        now_ms: the instant, by the storage's clock.
        is_running: the job that it fired last has not ended; counts if ``overlap`` is ``skip``.
    """
    first_ms = body.next_ms
    if first_ms is None:
        return SchedulePlan((), (), None)
    looked = _looked(body, first_ms, now_ms)
    # None before an earlier one: so these rise.
    fires_ms = list(accumulate((body.fire_ms(schedule_id, instant) for instant in looked), max))
    count = bisect_right(fires_ms, now_ms)
    due, rest = looked[:count], looked[count:]
    next_ms = rest[0] if rest else body.next_after(looked[-1] if looked else first_ms - 1)
    late = bisect_left(fires_ms, now_ms - ON_TIME_MS)
    reasons = _reasons(body, late, len(due) - late, is_running=is_running)
    passed = [
        _entry([instant for instant, _ in run], reason, now_ms)
        for reason, run in groupby(zip(due, reasons, strict=True), lambda pair: pair[1])
        if reason
    ]
    if len(looked) == LOOKED_AT and (older := _newest(body, first_ms, looked[0] - 1, 1)):
        passed.insert(0, _missed(body, first_ms, older[0], now_ms))
    fire = tuple(instant for instant, reason in zip(due, reasons, strict=True) if not reason)
    return SchedulePlan(fire, tuple(passed), next_ms)


def _looked(body: ScheduleBody, first_ms: int, now_ms: int) -> list[int]:
    """Return the occurrences up to now, at most `LOOKED_AT` of them."""
    # Mostly one is due, and then a timing that many schedules share has the answers at hand.
    first = body.next_after(first_ms - 1)
    if first is None or first > now_ms:
        return []
    second = body.next_after(first)
    if second is None or second > now_ms:
        return [first]
    return _newest(body, first_ms, now_ms, LOOKED_AT)


def _newest(body: ScheduleBody, first_ms: int, last_ms: int, limit: int) -> list[int]:
    """Return the newest occurrences from one instant to another, both included."""
    until_ms = last_ms if body.end_ms is None else min(last_ms, body.end_ms)
    return body.timing.newest(first_ms - 1, until_ms, limit, start_ms=body.start_ms)


def _reasons(body: ScheduleBody, late: int, on_time: int, *, is_running: bool) -> list[Reason]:
    """Return of each due occurrence why it is passed over, "" if it is to be fired."""
    if body.is_paused:
        return ["paused"] * (late + on_time)
    caught_up = min(late, _wanted(body, has_newer=on_time > 0))
    reasons: list[Reason] = ["catch_up"] * (late - caught_up)
    left = caught_up + on_time
    if body.overlap == "allow":
        return reasons + [""] * left
    fired: list[Reason] = [""] if left and not is_running else []
    overlapping: list[Reason] = ["overlap"] * (left - len(fired))
    return reasons + fired + overlapping


def _wanted(body: ScheduleBody, *, has_newer: bool) -> int:
    """Return how many late occurrences are to be fired."""
    match body.catch_up:
        case "skip":
            return 0
        case "latest":
            return 0 if has_newer else 1
        case count:
            return count


def _entry(run: Sequence[int], reason: Reason, now_ms: int) -> HistoryEntry:
    return HistoryEntry(
        instant_ms=run[0],
        fired_ms=now_ms,
        outcome="skipped",
        reason=reason,
        until_ms=run[-1] if len(run) > 1 else None,
        count=len(run),
    )


def _missed(body: ScheduleBody, first_ms: int, last_ms: int, now_ms: int) -> HistoryEntry:
    """Return the entry of occurrences that are too many to look at, which nobody has counted."""
    outcome: Literal["skipped", "missed"] = "skipped" if body.is_paused else "missed"
    return HistoryEntry(
        instant_ms=first_ms,
        fired_ms=now_ms,
        outcome=outcome,
        reason="paused" if body.is_paused else "",
        until_ms=last_ms if last_ms > first_ms else None,
        count=0,
    )
