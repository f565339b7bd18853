"""What an app's lifespan has to be, and what is said of one that is something else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from headrace.errors import UsageError
from headrace.plain import cut, shown

S = TypeVar("S")

Lifespan = Callable[[], AbstractAsyncContextManager[S]]

_RIGHT = (
    "decorate it with @asynccontextmanager of contextlib, above `async def lifespan()` with one "
    "`yield`"
)


def check_lifespan(lifespan: Lifespan[S]) -> Lifespan[S]:
    """Return a lifespan that may be one, as far as that can be told without calling it.

    Raises:
        UsageError: it makes no async context manager, or takes arguments.
    """
    if _is_manager(type(lifespan)):
        raise UsageError(
            f"lifespan={shown(lifespan)} is a context manager, and each worker makes its own: pass "
            "the function that returns it, without calling it"
        )
    if not callable(lifespan) or _makes_something_else(lifespan):
        raise UsageError(f"lifespan={shown(lifespan)} makes no async context manager: {_RIGHT}")
    _check_parameters(lifespan)
    return lifespan


def manager_of(lifespan: Lifespan[S]) -> AbstractAsyncContextManager[S]:
    """Call a lifespan and return what it makes.

    Raises:
        UsageError: that is no async context manager.
    """
    made: Any = lifespan()
    if _is_manager(type(made)):
        manager: AbstractAsyncContextManager[S] = made
        return manager
    if inspect.iscoroutine(made):
        made.close()
    raise UsageError(
        f"the lifespan {shown(lifespan)} returned {shown(made)}, which is no async context "
        f"manager: {_RIGHT}"
    )


def _is_manager(kind: type[Any]) -> bool:
    return hasattr(kind, "__aenter__") and hasattr(kind, "__aexit__")


def _makes_something_else(lifespan: Callable[..., Any]) -> bool:
    if isinstance(lifespan, type):
        return not _is_manager(lifespan)
    if inspect.iscoroutinefunction(lifespan) or inspect.isasyncgenfunction(lifespan):
        return True
    # @contextmanager, without async, hides a generator.
    return inspect.isgeneratorfunction(inspect.unwrap(lifespan))


def _check_parameters(lifespan: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(lifespan)
    except ValueError:
        return  # it is not written in Python: the worker will see
    try:
        signature.bind()
    except TypeError as error:
        raise UsageError(
            f"the lifespan {shown(lifespan)} can't be called ({cut(str(error))}): it takes no "
            "arguments; for one that does pass `lambda: lifespan(api)`"
        ) from None
