"""What the verbs do to one job id when they come one after another: the contract, without a clock.

A delay is either over at once or lasts longer than a history; the incarnations that were condemned
are part of each id's state. Apart from `tests.model`, since a search keeps thousands of states,
which must be small and hashable; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

import msgspec

from headrace.job import DEFAULT_KEEP_MS, DEFAULT_MAX_STALLS
from tests.linearizability import updates
from tests.linearizability.updates import Record, Successor

Kind = Literal["completed", "retried", "failed", "cancelled", "released", "snoozed"]
OUTCOMES: tuple[Kind, ...] = get_args(Kind)
WAITING = ("scheduled", "queued", "retrying")
LASTING = DEFAULT_KEEP_MS

NOT_CLAIMED = "not claimed"
"""Reply to a claim that had room left and brought this job to nobody."""
NO_ROOM = "no room"
"""Reply to a claim that brought as many others as it asked for: this job may have been ready."""
GONE = "gone"
"""Reply to a condemned incarnation."""
WRITTEN = "written"
"""Reply to a bulk write."""
NONE = "none"
"""Reply to a read of an id without a record."""


class Enqueue(msgspec.Struct, frozen=True, tag=True):
    """Store a job; ``is_delayed`` is for longer than the history lasts.

    ``update`` is the word of what it changes of the job that has its id, "" of one that does not.
    """

    payload: str = "p"
    keep_ms: int = LASTING
    max_stalls: int = DEFAULT_MAX_STALLS
    is_delayed: bool = False
    replaces_ended: bool = True
    update: str = ""


class Write(msgspec.Struct, frozen=True, tag=True):
    """Store the job by a bulk write, which tells no verdicts."""

    job: Enqueue


class Claim(msgspec.Struct, frozen=True, tag=True):
    """Take the job if it is ready; the nonce begins with the incarnation and a slash."""

    nonce: str


class Settle(msgspec.Struct, frozen=True, tag=True):
    """Write an outcome for a claim; ``retried``, ``released`` and ``snoozed`` are due at once."""

    incarnation: str
    epoch: int
    nonce: str
    outcome: Kind = "completed"
    keep_ms: int = LASTING
    result: str = "r"


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """End the job if it waits, ask it to stop if it is active; or end its successor alone."""

    only_next: bool = False


class PutBack(msgspec.Struct, frozen=True, tag=True):
    """Return the job to the head, if the claim owns it."""

    epoch: int
    nonce: str


class Reap(msgspec.Struct, frozen=True, tag=True):
    """Condemn an incarnation if its beat, which never moves in a history, is the one seen."""

    incarnation: str
    seen: int = 0


class Get(msgspec.Struct, frozen=True, tag=True):
    """Read the record."""


class Claimed(msgspec.Struct, frozen=True, tag=True):
    """Reply to a claim that brought the job."""

    epoch: int
    payload: str = "p"
    failures: int = 0
    stalls: int = 0


class Seen(msgspec.Struct, frozen=True, tag=True):
    """Reply to a read."""

    state: str
    starts: int = 0
    failures: int = 0
    stalls: int = 0
    payload: str = "p"
    result: str | None = None
    is_asked: bool = False
    has_next: bool = False


Call = Enqueue | Write | Claim | Settle | Cancel | PutBack | Reap | Get
Reply = str | Claimed | Seen


class State(NamedTuple):
    """One id: its record, None without one, its successor, and the incarnations that are gone."""

    record: Record | None = None
    condemned: frozenset[str] = frozenset()
    successor: Successor | None = None


Step = tuple[Reply, State]


class JobSpecification:
    """The specification of one job id, for `tests.linearizability.checker.check`."""

    def initial(self) -> State:
        """Return the state of an id that nobody has used."""
        return State()

    def apply(self, state: State, call: Call) -> Iterable[Step]:
        """Return the replies that a call may get, each with what it leaves."""
        if isinstance(call, Claim):
            return _claim(state, call.nonce)
        if isinstance(call, Write):
            return [(WRITTEN, _enqueue(state, call.job)[1])]
        return [_step(state, call)]


def _step(state: State, call: Enqueue | Settle | Cancel | PutBack | Reap | Get) -> Step:
    match call:
        case Enqueue():
            return _enqueue(state, call)
        case Settle():
            return _settle(state, call)
        case Cancel():
            return _cancel_next(state) if call.only_next else _cancel(state)
        case PutBack():
            return "done", _put_back(state, call)
        case Reap():
            return _reap(state, call)
        case Get():
            return _seen(state), state


def _to(state: State, record: Record | None) -> State:
    return state._replace(record=record)


def _ended(
    state: State, record: Record, how: str, keep_ms: int, result: str | None = None
) -> State:
    """Return what is left where a job ends: its successor, which has begun nothing yet."""
    if state.successor is not None:
        return state._replace(record=updates.entered(state.successor), successor=None)
    if keep_ms == 0:
        return _to(state, None)
    return _to(state, record._replace(state=how, result=result, is_asked=False, is_due=True))


def _waiting(state: State, record: Record, how: str) -> State:
    """Return what is left where a job that was active waits again, or ends as it was asked."""
    if record.is_asked:
        return _ended(state, record, "cancelled", record.keep_ms)
    record = record._replace(state=how)
    if state.successor is not None:
        record = updates.updated(record, state.successor)
    return state._replace(record=record, successor=None)


def _enqueue(state: State, call: Enqueue) -> Step:
    record = state.record
    said = Successor(call.payload, call.keep_ms, call.max_stalls, not call.is_delayed, call.update)
    if record and call.update and record.state == "active":
        return "updated", state._replace(successor=updates.blocked(record, state.successor, said))
    if record and call.update and record.state in WAITING:
        return "updated", _to(state, updates.updated(record, said))
    is_replaceable = record and record.state in ("failed", "cancelled") and call.replaces_ended
    makes_room = is_replaceable or call.update
    if record and not makes_room:
        return "completed" if record.state == "completed" else "duplicate", state
    verdict = "scheduled" if call.is_delayed else "queued"
    is_due = not call.is_delayed
    new = Record(verdict, call.payload, call.keep_ms, call.max_stalls, is_due=is_due)
    return verdict, _to(state, new)


def _claim(state: State, nonce: str) -> Iterable[Step]:
    record = state.record
    if nonce.partition("/")[0] in state.condemned:
        return [(GONE, state)]
    if record is None or record.state not in WAITING or not record.is_due:
        return [(NOT_CLAIMED, state), (NO_ROOM, state)]
    # What is due becomes ready, whether it is taken or not.
    left = _to(state, record._replace(state="queued"))
    taken = record._replace(state="active", epoch=record.epoch + 1, nonce=nonce)
    reply = Claimed(taken.epoch, taken.payload, taken.failures, taken.stalls)
    steps: list[Step] = [(reply, _to(state, taken)), (NO_ROOM, left)]
    if 0 < record.stalls >= record.max_stalls - 1:
        # One that the next death would end is left behind, if the claimant has another such.
        steps.append((NOT_CLAIMED, left))
    return steps


def _settle(state: State, call: Settle) -> Step:
    record = state.record
    if call.incarnation in state.condemned:
        return GONE, state
    if record is None:
        return "ok", state
    is_own = call.nonce.startswith(call.incarnation + "/")
    if not is_own or not record.is_owned_by(call.epoch, call.nonce) or record.state in WAITING:
        return "stale", state
    if record.state != "active":
        return "ok", state
    return "ok", _settled(state, record, call)


def _settled(state: State, record: Record, call: Settle) -> State:
    match call.outcome:
        case "completed":
            return _ended(state, record, "completed", call.keep_ms, call.result)
        case "cancelled":
            return _ended(state, record, "cancelled", call.keep_ms)
        case "failed":
            failed = record._replace(failures=record.failures + 1)
            return _ended(state, failed, "failed", LASTING)
        case "retried" if not record.is_asked:
            return _waiting(state, record._replace(failures=record.failures + 1), "retrying")
        case "retried" | "released" | "snoozed":
            return _waiting(state, record, "scheduled")


def _cancel(state: State) -> Step:
    record = state.record
    if record is None:
        return "not_found", state
    if record.state == "active":
        asked = record._replace(is_asked=True)
        return "requested", state._replace(record=asked, successor=None)
    if record.state in WAITING:
        return "cancelled", _ended(state, record, "cancelled", record.keep_ms)
    return "cancelled" if record.state == "cancelled" else "finished", state


def _cancel_next(state: State) -> Step:
    if state.successor is None:
        return "not_found", state
    return "cancelled", state._replace(successor=None)


def _put_back(state: State, call: PutBack) -> State:
    record = state.record
    if record and record.state == "active" and record.is_owned_by(call.epoch, call.nonce):
        return _waiting(state, record, "queued")
    return state


def _reap(state: State, call: Reap) -> Step:
    if call.seen != 0 and call.incarnation not in state.condemned:
        return "moved", state
    record = state.record
    after = state._replace(condemned=state.condemned | {call.incarnation})
    is_held = (
        record and record.state == "active" and record.nonce.startswith(call.incarnation + "/")
    )
    if record is None or not is_held:
        return "taken back", after
    stalled = record._replace(stalls=record.stalls + 1)
    if stalled.stalls >= stalled.max_stalls and not stalled.is_asked:
        return "taken back", _ended(after, stalled, "failed", LASTING)
    return "taken back", _waiting(after, stalled, "queued")


def _seen(state: State) -> Reply:
    record = state.record
    if record is None:
        return NONE
    return Seen(
        record.state,
        record.epoch,
        record.failures,
        record.stalls,
        record.payload,
        record.result,
        record.is_asked,
        state.successor is not None,
    )
