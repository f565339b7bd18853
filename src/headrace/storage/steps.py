"""Runs the coroutines of a storage that blocks: verbs are written once, for both kinds.

Such a coroutine waits for nothing that another task does. Where it has sent a call whose answer
somebody wants to read later, it stops once, at `sent`; whoever steps it goes on when they like.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any, Generic, NoReturn, TypeVar

T = TypeVar("T")


class HasWaited(RuntimeError):
    """A coroutine waited for an event loop, and none runs it."""


@coroutine
def sent() -> Generator[None, None, None]:
    """Let the caller go on, between what was sent and the answer that is read afterwards."""
    yield


def at_once(steps: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return what it returns; it blocks instead of waiting.

    Whatever it raises comes out as it is.

    Raises:
        HasWaited: it waits for an event loop. It was closed.
    """
    try:
        while steps.send(None) is None:
            pass
    except StopIteration as end:
        done: T = end.value
        return done
    raise _closed(steps)


class Ahead(Generic[T]):
    """A verb that was sent, and whose answer is read later.

    Between the two, others may be sent on the same line: see `BlockingStorage.in_line`. One thread
    uses it. Who never asks for its result leaves open whether the verb was done.

    Args:
        steps: the verb's coroutine; it takes its first step here.

    Raises:
        HasWaited: it waits for an event loop. It was closed.
    """

    def __init__(self, steps: Coroutine[Any, Any, T]) -> None:
        self._result: Callable[[], T] = _sent_before(steps)

    def result(self) -> T:
        """Read the answer; once.

        Raises:
            StorageError: as the verb, also what it met when it was sent.
            HasWaited: it waits for an event loop. It was closed.
        """
        return self._result()


def _sent_before(steps: Coroutine[Any, Any, T]) -> Callable[[], T]:
    """Take the first step, and return what brings the result, which nobody may ask for."""
    try:
        waits_for = steps.send(None)
    except StopIteration as end:
        value: T = end.value
        return lambda: value
    except Exception as error:
        return partial(_raise, error)
    if waits_for is not None:
        raise _closed(steps)
    return partial(at_once, steps)


def _raise(error: Exception) -> NoReturn:
    raise error


def _closed(steps: Coroutine[Any, Any, Any]) -> HasWaited:
    steps.close()
    return HasWaited(f"{steps!r} has waited, and no event loop runs it")
