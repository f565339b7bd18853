"""One key of a limit: what calls do to its jobs in turn, all of one tier.

Jobs run in their order, and no more than the limit says have a place: those that are active, and
the first of those that wait. A key is an object by itself: a claim takes a part of its jobs from
each, and says whether it had slots left for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import Literal, NamedTuple

import msgspec

Kind = Literal["completed", "failed", "retried"]


class Enqueue(msgspec.Struct, frozen=True, tag=True):
    """Bring new jobs in."""

    job_ids: tuple[str, ...]


class Claim(msgspec.Struct, frozen=True, tag=True):
    """Take jobs that have a place."""


class Settle(msgspec.Struct, frozen=True, tag=True):
    """End an attempt; one that is ``retried`` is due at once."""

    job_id: str
    outcome: Kind


class PutBack(msgspec.Struct, frozen=True, tag=True):
    """Return an active job to the head: it keeps its place."""

    job_id: str


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """End a job that waits, or ask an active one to stop."""

    job_id: str


class Look(msgspec.Struct, frozen=True, tag=True):
    """Count the jobs of the key."""


class Taken(msgspec.Struct, frozen=True, tag=True):
    """Reply to a claim: the jobs of this key, sorted, and whether slots were left."""

    job_ids: tuple[str, ...]
    has_slots: bool


class Counts(msgspec.Struct, frozen=True, tag=True):
    """Reply to a look."""

    ready: int
    active: int
    blocked: int


class Outcomes(msgspec.Struct, frozen=True, tag=True):
    """Reply to an enqueue."""

    words: tuple[str, ...]


Call = Enqueue | Claim | Settle | PutBack | Cancel | Look
Reply = str | Taken | Counts | Outcomes


class State(NamedTuple):
    """A key: who waits, in their order, who runs, who is asked to stop, who is due again."""

    waiting: tuple[str, ...] = ()
    active: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    due: frozenset[str] = frozenset()
    completed: frozenset[str] = frozenset()
    cancelled: frozenset[str] = frozenset()


class KeySpecification:
    """The specification of one key, for `tests.linearizability.checker.check`.

    Args:
        limit: how many of its jobs may have a place.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def initial(self) -> State:
        """Return the state of a key that nobody has used."""
        return State()

    def apply(self, state: State, call: Call) -> Iterable[tuple[Reply, State]]:
        """Return the replies that a call may get, each with what it leaves."""
        match call:
            case Claim():
                return self._claim(state)
            case Enqueue(job_ids):
                return [self._enqueue(state, job_ids)]
            case Settle(job_id, outcome):
                return [("ok", _settled(state, job_id, outcome))]
            case PutBack(job_id):
                return [("done", _put_back(state, job_id))]
            case Cancel(job_id):
                return [_cancel(state, job_id)]
            case Look():
                ready = min(len(state.waiting), self._room(state))
                blocked = len(state.waiting) - ready
                return [(Counts(ready, len(state.active), blocked), state)]

    def _room(self, state: State) -> int:
        return self._limit - len(state.active)

    def _enqueue(self, state: State, job_ids: Iterable[str]) -> tuple[Reply, State]:
        words = []
        for job_id in job_ids:
            words.append("queued" if len(state.waiting) < self._room(state) else "blocked")
            state = state._replace(waiting=(*state.waiting, job_id))
        return Outcomes(tuple(words)), state

    def _claim(self, state: State) -> Iterator[tuple[Reply, State]]:
        # What is due comes to the end, in any order.
        for order in permutations(sorted(state.due)):
            waiting = (*state.waiting, *order)
            most = min(len(waiting), self._room(state))
            for count in range(most + 1):
                taken = waiting[:count]
                left = state._replace(
                    waiting=waiting[count:], active=state.active | set(taken), due=frozenset()
                )
                yield Taken(tuple(sorted(taken)), has_slots=False), left
                if count == most:
                    yield Taken(tuple(sorted(taken)), has_slots=True), left


def _without(state: State, job_id: str) -> State:
    gone = {job_id}
    waiting = tuple(each for each in state.waiting if each != job_id)
    return state._replace(
        waiting=waiting,
        active=state.active - gone,
        asked=state.asked - gone,
        due=state.due - gone,
    )


def _settled(state: State, job_id: str, outcome: Kind) -> State:
    left, one = _without(state, job_id), frozenset({job_id})
    if outcome != "retried":
        return left._replace(completed=left.completed | one)
    if job_id in state.asked:
        return left._replace(cancelled=left.cancelled | one)
    return left._replace(due=left.due | one)


def _put_back(state: State, job_id: str) -> State:
    if job_id not in state.active:
        return state
    left = _without(state, job_id)
    if job_id in state.asked:
        return left._replace(cancelled=left.cancelled | {job_id})
    return left._replace(waiting=(job_id, *left.waiting))


def _cancel(state: State, job_id: str) -> tuple[Reply, State]:
    if job_id in state.active:
        return "requested", state._replace(asked=state.asked | {job_id})
    if job_id in state.waiting or job_id in state.due:
        left = _without(state, job_id)
        return "cancelled", left._replace(cancelled=left.cancelled | {job_id})
    if job_id in state.cancelled:
        return "cancelled", state
    return "finished" if job_id in state.completed else "not_found", state
