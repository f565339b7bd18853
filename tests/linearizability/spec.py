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
    """Store a job; ``is_delayed`` is for longer than the history lasts."""

    payload: str = "p"
    keep_ms: int = LASTING
    max_stalls: int = DEFAULT_MAX_STALLS
    is_delayed: bool = False
    replaces_ended: bool = True


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
    """End the job if it waits, ask it to stop if it is active."""


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


Call = Enqueue | Write | Claim | Settle | Cancel | PutBack | Reap | Get
Reply = str | Claimed | Seen


class Record(NamedTuple):
    """What is kept of a job; ``is_asked``: to stop, while it is active."""

    state: str
    payload: str
    keep_ms: int
    max_stalls: int
    is_due: bool = True
    epoch: int = 0
    nonce: str = ""
    failures: int = 0
    stalls: int = 0
    result: str | None = None
    is_asked: bool = False

    def is_owned_by(self, epoch: int, nonce: str) -> bool:
        """Whether this was the last claim."""
        return self.epoch > 0 and (self.epoch, self.nonce) == (epoch, nonce)


class State(NamedTuple):
    """One id: its record, None without one, and the incarnations that were condemned."""

    record: Record | None = None
    condemned: frozenset[str] = frozenset()


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
            return _cancel(state)
        case PutBack():
            return "done", _put_back(state, call)
        case Reap():
            return _reap(state, call)
        case Get():
            return _seen(state.record), state


def _to(state: State, record: Record | None) -> State:
    return state._replace(record=record)


def _ended(record: Record, how: str, keep_ms: int, result: str | None = None) -> Record | None:
    if keep_ms == 0:
        return None
    return record._replace(state=how, result=result, is_asked=False, is_due=True)


def _sent_back(record: Record) -> Record | None:
    if record.is_asked:
        return _ended(record, "cancelled", record.keep_ms)
    return record._replace(state="queued")


def _enqueue(state: State, call: Enqueue) -> Step:
    record = state.record
    makes_room = call.replaces_ended and record and record.state in ("failed", "cancelled")
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
    return "ok", _to(state, _settled(record, call))


def _settled(record: Record, call: Settle) -> Record | None:
    match call.outcome:
        case "completed":
            return _ended(record, "completed", call.keep_ms, call.result)
        case "cancelled":
            return _ended(record, "cancelled", call.keep_ms)
        case "failed":
            failed = record._replace(failures=record.failures + 1)
            return _ended(failed, "failed", LASTING)
        case _ if record.is_asked:
            return _ended(record, "cancelled", record.keep_ms)
        case "retried":
            return record._replace(state="retrying", failures=record.failures + 1)
        case "released" | "snoozed":
            return record._replace(state="scheduled")


def _cancel(state: State) -> Step:
    record = state.record
    if record is None:
        return "not_found", state
    if record.state == "active":
        return "requested", _to(state, record._replace(is_asked=True))
    if record.state in WAITING:
        return "cancelled", _to(state, _ended(record, "cancelled", record.keep_ms))
    return "cancelled" if record.state == "cancelled" else "finished", state


def _put_back(state: State, call: PutBack) -> State:
    record = state.record
    if record and record.state == "active" and record.is_owned_by(call.epoch, call.nonce):
        return _to(state, _sent_back(record))
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
        return "taken back", _to(after, _ended(stalled, "failed", LASTING))
    return "taken back", _to(after, _sent_back(stalled))


def _seen(record: Record | None) -> Reply:
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
    )
