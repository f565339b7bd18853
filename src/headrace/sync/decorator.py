"""The decorator of a sync app, with what type checkers see of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Unpack, overload

from typing_extensions import TypeVar

from headrace.context import Context
from headrace.options import SharedOptions, TaskDefaults, TaskOptions, spelled_out
from headrace.registry import AnyArgument, TaskDecorator
from headrace.sync.task import SyncTask
from headrace.task import Task

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=Awaitable[Any])
S = TypeVar("S", default=None)

Wrap = Callable[[Task[..., Any]], SyncTask[..., Any]]
"""Makes the sync task of a task."""


class SyncTaskDecorator(Generic[S]):
    """What ``SyncApp.task`` is: registers a function as a task, with options or without.

    For type checkers it has the overloads of `TaskDecorator`, in the same order.
    """

    def __init__(self, decorator: TaskDecorator[S], wrap: Wrap) -> None:
        self._decorator = decorator
        self._wrap = wrap

    # A coroutine. Where an annotation has an `Any`, mypy takes an overload only if all that fit
    # have the same function in them: so this says Coroutine, as `async def` does.

    @overload
    def __call__(
        self, function: Callable[Concatenate[AnyArgument, P], Coroutine[Any, Any, R]], /
    ) -> SyncTask[Concatenate[Any, P], R, Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context[S], P], Coroutine[Any, Any, R]], /
    ) -> SyncTask[P, R, Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context[None], P], Coroutine[Any, Any, R]], /
    ) -> SyncTask[P, R, Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> SyncTask[P, R, Coroutine[Any, Any, R]]: ...

    # Another awaitable, as some decorators say: the type of the result is not known.

    @overload
    def __call__(
        self, function: Callable[Concatenate[AnyArgument, P], A], /
    ) -> SyncTask[Concatenate[Any, P], Any, A]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context[S], P], A], /
    ) -> SyncTask[P, Any, A]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context[None], P], A], /
    ) -> SyncTask[P, Any, A]: ...

    @overload
    def __call__(self, function: Callable[P, A], /) -> SyncTask[P, Any, A]: ...

    # A plain function.

    @overload
    def __call__(
        self, function: Callable[Concatenate[AnyArgument, P], R], /
    ) -> SyncTask[Concatenate[Any, P], R, R]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context[S], P], R], /
    ) -> SyncTask[P, R, R]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context[None], P], R], /
    ) -> SyncTask[P, R, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncTask[P, R, R]: ...

    @overload
    def __call__(self, /, **options: Unpack[TaskOptions]) -> SyncTaskDecorator[S]: ...

    @spelled_out(SharedOptions, TaskDefaults, TaskOptions)
    def __call__(
        self, function: Callable[..., Any] | None = None, /, **options: Unpack[TaskOptions]
    ) -> Any:
        """Register a function as a task, as ``@app.task`` or ``@app.task(...)``.

        An ``async def`` is as good a handler as a ``def``: workers have an event loop. Otherwise
        as `TaskDecorator`.

        Args:
            function: the handler.
            **options: see `TaskOptions`.

        Returns:
            The task. Without a function a decorator with these options, to which more may be said.

        Raises:
            UsageError, InvalidOption: as `TaskDecorator`.
        """
        before = function if isinstance(function, SyncTask) else None
        decorate: Any = self._decorator
        made = decorate(function if before is None else before.task, **options)
        if isinstance(made, TaskDecorator):
            return SyncTaskDecorator(made, self._wrap)
        return before if before is not None and before.task is made else self._wrap(made)
