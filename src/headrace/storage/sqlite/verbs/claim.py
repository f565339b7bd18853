"""``claim``: makes due jobs ready and hands the best ones to an incarnation."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from headrace.errors import StaleCall
from headrace.job import Claim, ClaimedJob
from headrace.storage.incarnations import ClaimReply, FreeSlots, SlotsAsked, free_slots
from headrace.storage.limits import (
    BATCH_LIMIT,
    BATCH_LIMIT_BYTES,
    CLAIM_LOOKS,
    CLAIM_TURNS,
    STRUCK_LOOKS,
)
from headrace.storage.sqlite import aging, due, finish, lines, moves, strikes, turns
from headrace.storage.sqlite.aging import Aging, IsThere, Look
from headrace.storage.sqlite.engine.step import QueueName, Step
from headrace.storage.sqlite.incarnations import (
    Claimant,
    find,
    note_claim,
    note_last_chance,
)
from headrace.storage.sqlite.record import PAYLOAD, Record, load_one
from headrace.storage.sqlite.slots import Room
from headrace.storage.sqlite.unit import UnitOfWork, find_unit
from headrace.storage.sqlite.wake import has_ready, ready_lanes
from headrace.storage.values import CallId
from headrace.strike import STRUCK, Strike, StrikeAction

_READY = f"""
SELECT key, id, task, {PAYLOAD}, created_ms, changed_ms, epoch, failures, stalls, expires_at_ms,
  options, max_stalls, gates, seq, slots, tier
FROM jobs WHERE queue = ? AND lane = ? AND seq <= ? ORDER BY tier DESC, seq LIMIT ?
"""  # noqa: S608
_READY_OF_TIER = _READY.replace("seq <= ?", "seq <= ? AND tier = ?")
_OWNED = f"""
SELECT id, task, {PAYLOAD}, created_ms, epoch, failures, stalls, options, slots
FROM jobs WHERE owner = ? AND nonce = ?
"""  # noqa: S608


Passed = Literal["", "expired", "struck", "waits", "parked", "heavy", "short"]
_LAID_ASIDE = ("expired", "struck", "parked")
"""Those that are gone from the line: a look may end at one although there are more behind it."""


class Taking(msgspec.Struct):
    """A claim under way.

    What comes to a line behind ``last`` meanwhile is left to the next one, but for jobs whose turn
    begins. What is ``held`` is passed over at the end of its lane.
    """

    name: str
    me: Claimant
    nonce: str
    last: int
    jobs: list[ClaimedJob] = msgspec.field(default_factory=list)
    keys: list[int] = msgspec.field(default_factory=list)
    size: int = BATCH_LIMIT_BYTES
    turns: int = CLAIM_TURNS
    held: list[int] = []
    has_last_chance: bool = False
    lines: dict[int, str] = {}
    rooms: dict[str, Room] = {}
    struck: dict[str, Strike] = {}
    aging: Aging | None = None


def claim(step: Step, name: QueueName, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
    """Claim up to ``slots[lane]`` jobs of each lane."""
    unit = find_unit(step, name)
    me = find(unit, call.client) if unit else None
    if unit is None or me is None:
        return ClaimReply(is_gone=True, is_paused=False, has_more=False, next_due_ms=None, jobs=[])
    if call.number < me.claim:
        raise StaleCall(f"claim call {call.number} is older than {me.claim}")
    if call.number == me.claim:
        return _reply(unit, _again(unit, me, nonce), due_ms=due.next_ms(unit))
    note_claim(unit, me, call.number)
    if unit.is_paused:
        return _reply(unit, [], is_paused=True)
    due.promote(unit)
    unit.gates.let_in = set()
    taking = Taking(call.client, me, nonce, unit.tail, struck=strikes.by_task(unit))
    taking.aging = aging.opened(unit)
    # Who has no slot at all passes on whatever token it has.
    may_have_more = [lane for lane, asked in slots.items() if _drain(unit, taking, lane, asked)]
    if taking.aging is not None:
        aging.close(unit, taking.aging)
    lines.open_freed(unit)
    unit.write_gates(wakes=False)  # the answer says when the next is due
    left = _left(unit, taking, may_have_more) if slots else ready_lanes(unit.db, unit.key)
    # Who has slots enough looks, where the caller only waits for its own.
    awaited = {lane: room.awaited for lane, room in taking.rooms.items() if room.awaited}
    for lane in (*left, *awaited):
        unit.wakes.lane(lane)
    unit.close()
    due_ms = due.next_ms(unit)
    return _reply(unit, taking.jobs, has_more=bool(left), due_ms=due_ms, awaited=awaited)


def _left(unit: UnitOfWork, taking: Taking, lanes: list[str]) -> list[str]:
    """Return those of the lanes from which the caller could take more at once."""
    if _may_start(unit) == 0:
        return []  # whatever ends an attempt wakes who may come then
    passed = {lane: len(room.passed) for lane, room in taking.rooms.items()}
    return [lane for lane in lanes if has_ready(unit.db, unit.key, lane, beside=passed[lane])]


def _may_start(unit: UnitOfWork) -> int:
    """Return how many more jobs may be active in the queue."""
    most = unit.settings.max_active
    return max(0, most - unit.counts["active"]) if most else BATCH_LIMIT


def _reply(
    unit: UnitOfWork,
    jobs: list[ClaimedJob],
    *,
    is_paused: bool = False,
    has_more: bool = False,
    due_ms: int | None = None,
    awaited: dict[str, int] | None = None,
) -> ClaimReply:
    return ClaimReply(
        is_gone=False,
        is_paused=is_paused,
        has_more=has_more,
        next_due_ms=due_ms,
        jobs=jobs,
        awaited=awaited or {},
        strikes=0 if is_paused else unit.strikes_version,
        weight=0 if is_paused else unit.settings.weight,
    )


def _drain(unit: UnitOfWork, taking: Taking, lane: str, asked: int | FreeSlots) -> bool:
    """Take jobs of one lane, best tier first; return whether to look for more.

    Not who took nothing although it had room: it can't take what is left, and to wake it again
    would never end.
    """
    slots = free_slots(asked)
    limit = min(slots.free, BATCH_LIMIT - len(taking.keys), _may_start(unit))
    room = taking.rooms[lane] = Room(slots, limit)
    looks = CLAIM_LOOKS
    has_waiting = False
    while room.taken < room.limit and looks > 0 and taking.size > 0 and taking.turns > 0:
        first = len(taking.keys)
        # Of what may be struck, no more is read than this may move.
        most = looks // STRUCK_LOOKS + 1 if taking.struck else looks
        look = Look(lane, min(room.limit - room.taken, most))
        if taking.aging is not None:
            look = taking.aging.bound(unit, look, _is_there(unit, taking, room))
        found = _take_some(unit, taking, room, look)
        looks -= len(found) + found.count("struck") * (STRUCK_LOOKS - 1)
        has_waiting = has_waiting or "waits" in found
        if len(taking.keys) > first:
            moves.start(unit, taking.keys[first:], owner=taking.me.key, nonce=taking.nonce)
        if taking.aging is not None:
            taking.aging.note(len(taking.keys) - first, is_aged=look.tier is not None)
        if unit.gates.turns_over:
            taking.turns -= len(unit.gates.turns_over)
            lines.let_next_in(unit)
        elif len(found) < look.count and not (found and found[-1] in _LAID_ASIDE):
            break
    for key in taking.held:
        moves.pass_over(unit, key)
    taking.held = []
    is_cut = taking.size <= 0 or (looks <= 0 and not has_waiting)
    return not room.awaited and (limit <= 0 or room.taken > 0 or is_cut)


def _is_there(unit: UnitOfWork, taking: Taking, room: Room) -> IsThere:
    """Return what tells which ready jobs the claim may take yet."""
    passed_over, last, let_in = room.passed.union(taking.held), taking.last, unit.gates.let_in
    return lambda key, seq: key not in passed_over and (seq <= last or seq in let_in)


def _take_some(unit: UnitOfWork, taking: Taking, room: Room, look: Look) -> list[Passed]:
    """Take from one look; return of each job why it was passed over, "" if it was not."""
    found = _look(unit, taking, room, look)
    for passed, row in found:
        _put(unit, taking, passed, row)
    unit.flush()
    return [passed for passed, _ in found]


def _look(
    unit: UnitOfWork, taking: Taking, room: Room, look: Look
) -> list[tuple[Passed, tuple[Any, ...]]]:
    """Return the best jobs of a lane, and of each why it is passed over, "" if it is not."""
    found: list[tuple[Passed, tuple[Any, ...]]] = []
    is_there, over = _is_there(unit, taking, room), unit.gates.turns_over
    hidden = len(room.passed) + len(taking.held) + unit.tail - taking.last - len(unit.gates.let_in)
    sql, of_tier = (_READY, ()) if look.tier is None else (_READY_OF_TIER, (look.tier,))
    values = (unit.key, look.lane, unit.tail, *of_tier, look.count + hidden)
    cursor = unit.db.execute(sql, values)
    for row in cursor:
        if not is_there(row[0], row[13]):
            continue
        if over and found and (row[15] != found[0][1][15] or len(over) >= taking.turns):
            break  # the next of the keys whose turn is over come before other tiers
        passed = _why_not(unit, taking, room, row)
        found.append((passed, row))
        if not passed:
            room.take(row[14])
            taking.size -= len(row[3] or b"")
        if len(found) == look.count or taking.size <= 0 or room.taken >= room.limit:
            break  # what is not there yet may be in another lane
        if passed in _LAID_ASIDE and turns.are_among(row[12]):
            break  # its turn is over once that is written, before those behind it
    cursor.close()
    return found


def _put(unit: UnitOfWork, taking: Taking, passed: Passed, row: tuple[Any, ...]) -> None:
    """Take a ready job, or put it where it belongs since it is passed over."""
    if passed == "expired":
        finish.fail(unit, load_one(unit, row[0]), "expired")
    elif passed == "parked":
        moves.park(unit, load_one(unit, row[0]), taking.lines[row[0]], row[13])
    elif passed == "struck":
        _lay_aside(unit, load_one(unit, row[0]), taking.struck[row[2]], row[13])
    elif passed == "waits":
        taking.held.append(row[0])
    elif not passed:
        _take(unit, taking, row)


def _why_not(unit: UnitOfWork, taking: Taking, room: Room, row: tuple[Any, ...]) -> Passed:
    """Return why a ready job is passed over, "" if it is not."""
    if row[6] == 0 and 0 < row[9] <= unit.now_ms:
        return "expired"
    if row[2] in taking.struck:
        return "struck"
    if row[14] > 1 and (unfit := room.unfit(row[0], row[14])):
        return unfit
    is_last = row[8] > 0 and row[8] + 1 >= row[11]
    if is_last and _has_last_chance(unit, taking):
        return "waits"
    line = unit.gates.start(row[12]) if row[12] else None
    if line is not None:
        taking.lines[row[0]] = line
        return "parked"
    if is_last:
        taking.has_last_chance = True
        note_last_chance(unit, taking.me, row[0])
    return ""


def _lay_aside(unit: UnitOfWork, record: Record, strike: Strike, seq: int) -> None:
    """Keep a job from being run, as the strike that its task meets says."""
    if strike.action is StrikeAction.CANCEL:
        finish.cancel(unit, record, keep_ms=record.keep_ms, reason=STRUCK)
    else:
        moves.park(unit, record, strike.id, seq)


def _has_last_chance(unit: UnitOfWork, taking: Taking) -> bool:
    """Whether this worker has a job that one more death would end; any other must wait then.

    So one that kills its workers takes none of those along that were claimed with it before.
    """
    # That row may be of another job by now, or of one that was redriven.
    sql = """
SELECT 1 FROM jobs WHERE key = ? AND owner = ? AND stalls > 0 AND stalls + 1 >= max_stalls
"""
    last = (taking.me.last_chance, taking.me.key)
    return taking.has_last_chance or unit.db.execute(sql, last).fetchone() is not None


def _take(unit: UnitOfWork, taking: Taking, row: tuple[Any, ...]) -> None:
    key, job_id, task, payload, created, at, epoch, failures, stalls, _, options = row[:11]
    waited_ms = max(0, unit.now_ms - at)  # the clock may have been set back
    epoch += 1
    unit.stats.observe("wait", waited_ms)
    unit.events.add("active", job_id, task, start=epoch, worker=taking.name, wait_ms=waited_ms)
    taking.keys.append(key)
    claim = Claim(epoch, taking.nonce)
    taking.jobs.append(
        ClaimedJob(
            # One without a payload can't be decoded: its worker says so.
            *(job_id, unit.queue, task, payload or b"", claim, failures, stalls, created),
            *(waited_ms, options, row[14]),
        )
    )


def _again(unit: UnitOfWork, me: Claimant, nonce: str) -> list[ClaimedJob]:
    """Return what a repeated call claimed the first time and still owns."""
    rows = unit.db.execute(_OWNED, (me.key, nonce)).fetchall()
    return [
        ClaimedJob(
            *(job_id, unit.queue, task, payload or b"", Claim(epoch, nonce)),
            *(failures, stalls, created),
            *(0, options, slots),
        )
        for job_id, task, payload, created, epoch, failures, stalls, options, slots in rows
    ]
