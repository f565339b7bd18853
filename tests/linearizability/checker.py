"""Decides whether concurrent calls can be explained by one order of steps of a specification.

Wing and Gong's search ("Testing and verifying concurrent objects", 1993), with Lowe's memory of the
configurations that were seen ("Testing for linearizability", 2017). Pure: no I/O, no clock, and
nothing here knows what a job is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)
C = TypeVar("C")
R = TypeVar("R")
C_contra = TypeVar("C_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

CONFIGURATIONS = 2_000_000
"""Most configurations that a search looks at, some seconds' worth, before it gives up."""


class Specification(Protocol[S, C_contra, R_co]):
    """What one object does when its calls come one after another."""

    def initial(self) -> S:
        """Return the state before the first call."""

    def apply(self, state: S, call: C_contra) -> Iterable[tuple[R_co, S]]:
        """Return the replies that the call may get, each with the state that it leaves."""


class Operation(NamedTuple, Generic[C, R]):
    """One call of a history.

    Attributes:
        call: what was asked.
        invoked: when, in ns of a clock that all callers share.
        returned: when the reply came. None: none came, so the call may take effect at any time
            after ``invoked``, or never, and ``reply`` says nothing.
        reply: what was answered.
    """

    call: C
    invoked: int
    returned: int | None
    reply: R | None


class Verdict(NamedTuple, Generic[S, C, R]):
    """What a search found.

    Attributes:
        is_linearizable: whether the history can be explained.
        order: the calls in an order that explains it, without the unknown ones that are not needed;
            if there is none, the longest that explains a beginning.
        state: the state after ``order``.
        configurations: how many were looked at.
    """

    is_linearizable: bool
    order: tuple[Operation[C, R], ...]
    state: S
    configurations: int


class SearchTooLarge(Exception):
    """The search gave up undecided: too many calls of the history overlap or are unknown."""


def check(
    specification: Specification[S, C, R],
    history: Iterable[Operation[C, R]],
    *,
    limit: int = CONFIGURATIONS,
) -> Verdict[S, C, R]:
    """Search an order of the calls that respects both real time and the specification.

    Args:
        specification: of the object that all calls are about.
        history: the calls, in any order. One that surely had no effect does not belong here.
        limit: most configurations to look at.

    Raises:
        SearchTooLarge: undecided after ``limit`` configurations.
    """
    operations = sorted(history, key=lambda operation: operation.invoked)
    required = sum(1 << i for i, each in enumerate(operations) if each.returned is not None)
    start = specification.initial()
    # A configuration is which calls have been ordered, and the state they left. From the same one
    # the same follows, whatever the order within: so none is entered twice.
    seen: set[tuple[int, S]] = {(0, start)}
    path: list[tuple[int, int, S]] = []  # the call, all calls so far, the state
    longest: list[tuple[int, int, S]] = []
    pending = [_moves(specification, operations, 0, start)]
    while pending:
        if len(path) > len(longest):
            longest = path.copy()
        if _done(path) & required == required:
            return _verdict(operations, path, start, seen, is_linearizable=True)
        move = next((each for each in pending[-1] if each[1:] not in seen), None)
        if move is None:
            pending.pop()
            if path:
                path.pop()
            continue
        if len(seen) >= limit:
            raise SearchTooLarge(f"{len(operations)} calls: undecided after {limit} configurations")
        seen.add(move[1:])
        path.append(move)
        pending.append(_moves(specification, operations, *move[1:]))
    return _verdict(operations, longest, start, seen, is_linearizable=False)


def _done(path: Sequence[tuple[int, int, S]]) -> int:
    return path[-1][1] if path else 0


def _moves(
    specification: Specification[S, C, R],
    operations: Sequence[Operation[C, R]],
    done: int,
    state: S,
) -> Iterator[tuple[int, int, S]]:
    """Yield each call that may come next, with the calls done then and the state it leaves."""
    unknown: list[int] = []
    for i in _candidates(operations, done):
        operation = operations[i]
        if operation.returned is None:
            unknown.append(i)
            continue
        for reply, after in specification.apply(state, operation.call):
            if reply == operation.reply:
                yield i, done | 1 << i, after
    # Last, since most of them are not needed; one that changes nothing never is.
    for i in unknown:
        for _, after in specification.apply(state, operations[i].call):
            if after != state:
                yield i, done | 1 << i, after


def _candidates(operations: Sequence[Operation[C, R]], done: int) -> list[int]:
    """Return the calls that were invoked before any other that is left had returned."""
    left = [i for i in range(len(operations)) if not done >> i & 1]
    ends = [end for i in left if (end := operations[i].returned) is not None]
    horizon = min(ends, default=None)
    return [i for i in left if horizon is None or operations[i].invoked <= horizon]


def _verdict(
    operations: Sequence[Operation[C, R]],
    path: Sequence[tuple[int, int, S]],
    start: S,
    seen: set[tuple[int, S]],
    *,
    is_linearizable: bool,
) -> Verdict[S, C, R]:
    order = tuple(operations[i] for i, _, _ in path)
    return Verdict(is_linearizable, order, path[-1][2] if path else start, len(seen))
