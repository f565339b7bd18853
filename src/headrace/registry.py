"""Where tasks are declared: the decorator, with what type checkers see of it, and the names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, Unpack, overload

import msgspec
from typing_extensions import TypeVar

from headrace.codec import Codec
from headrace.context import Context
from headrace.declaration import check_function, executor_kind
from headrace.errors import InvalidOption
from headrace.fail_jobs import ARGUMENTS, check_is_other
from headrace.options import SharedOptions, TaskDefaults, TaskOptions, spelled_out, task_settings
from headrace.settings import TaskSettings
from headrace.task import CoroutineTask, DeclaredFunction, Submitter, Task

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=Awaitable[Any])
S = TypeVar("S", default=None)
D = TypeVar("D")

Declare = Callable[[Callable[..., Any], TaskOptions], Task[..., Any]]
"""Registers a function with the options that were said."""


class AnyArgument:
    """For type checkers: only a parameter that takes anything takes this.

    A first parameter annotated ``object`` or ``Any`` would take a `Context` too, and is none.
    """


class TaskRegistry(ABC, Generic[D]):
    """Where tasks are declared, by decorators of one kind."""

    @property
    def task(self) -> D:
        """Registers a function as a task, as ``@app.task`` or ``@app.task(...)``."""
        return self._decorator(self._declare)

    @abstractmethod
    def _decorator(self, declare: Declare) -> D:
        """Return what registers functions by ``declare``."""

    @abstractmethod
    def _declare(self, function: Callable[..., Any], options: TaskOptions) -> Task[..., Any]:
        """Register a function, or that of another task."""


def function_of(function: Callable[..., Any] | DeclaredFunction) -> Callable[..., Any]:
    """Return the function of a task to be, which may be another task's.

    Raises:
        UsageError: it can be no task's.
    """
    if isinstance(function, DeclaredFunction):
        function = function.function
    check_function(function)
    return function


def with_executor(
    settings: TaskSettings, function: Callable[..., Any], executor: str | None
) -> TaskSettings:
    """Return settings with where the function runs.

    Raises:
        UsageError: it can't run there.
    """
    return msgspec.structs.replace(settings, executor=executor_kind(function, executor))


def check_fail_tasks(tasks: Mapping[str, Task[..., Any]]) -> None:
    """See that tasks which others name for their failures take what they are told then.

    Raises:
        InvalidOption: one does not, or is the task that names it.
    """
    for task in tasks.values():
        named = tasks.get(task.settings.on_failed)
        if named is None:
            continue
        check_is_other(named.name, task=task.name)
        if not named.signature.takes(ARGUMENTS):
            raise InvalidOption(
                f"on_failed={named.name!r} of the task {task.name!r} takes "
                f"{named.signature.of_call}: it has to take the failed job's id, its arguments and "
                "a Failure, as in (job_id: str, arguments: dict[str, Any], failure: Failure)"
            )


def new_task(
    function: Callable[..., Any],
    *,
    name: str,
    settings: TaskSettings,
    submitter: Submitter,
    codec: Codec,
    is_early: bool = False,
) -> Task[..., Any]:
    """Make a task of a function, of the kind that its calls have; see `Task`.

    Raises:
        UsageError: an annotation is of values that can't be stored.
        InvalidOption: the name is not valid.
    """
    kind: type[Task[..., Any]] = CoroutineTask if settings.is_coroutine else Task
    return kind(
        function,
        name=name,
        settings=settings,
        submitter=submitter,
        codec=codec,
        is_early=is_early,
    )


class TaskDecorator(Generic[S]):
    """What ``app.task`` is: registers a function as a task, with options or without.

    Type checkers take the first overload that fits. Each kind of function has four: its first
    parameter takes anything; is a context of the app's state; or of none; or there is no context.
    """

    def __init__(self, declare: Declare, options: TaskOptions) -> None:
        self._declare = declare
        self._options = options
        task_settings(**options)

    # A coroutine. Where an annotation has an `Any`, mypy takes an overload only if all that fit
    # have the same function in them: so this says Coroutine, as `async def` does.

    @overload
    def __call__(
        self, function: Callable[Concatenate[AnyArgument, P], Coroutine[Any, Any, R]], /
    ) -> Task[Concatenate[Any, P], R, Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context[S], P], Coroutine[Any, Any, R]], /
    ) -> Task[P, R, Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context[None], P], Coroutine[Any, Any, R]], /
    ) -> Task[P, R, Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Task[P, R, Coroutine[Any, Any, R]]: ...

    # Another awaitable, as some decorators say: the type of the result is not known.

    @overload
    def __call__(
        self, function: Callable[Concatenate[AnyArgument, P], A], /
    ) -> Task[Concatenate[Any, P], Any, A]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context[S], P], A], /) -> Task[P, Any, A]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context[None], P], A], /
    ) -> Task[P, Any, A]: ...

    @overload
    def __call__(self, function: Callable[P, A], /) -> Task[P, Any, A]: ...

    # A plain function.

    @overload
    def __call__(
        self, function: Callable[Concatenate[AnyArgument, P], R], /
    ) -> Task[Concatenate[Any, P], R, R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context[S], P], R], /) -> Task[P, R, R]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context[None], P], R], /
    ) -> Task[P, R, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, R]: ...

    @overload
    def __call__(self, /, **options: Unpack[TaskOptions]) -> TaskDecorator[S]: ...

    @spelled_out(SharedOptions, TaskDefaults, TaskOptions)
    def __call__(
        self, function: Callable[..., Any] | None = None, /, **options: Unpack[TaskOptions]
    ) -> Any:
        """Register a function as a task, as ``@app.task`` or ``@app.task(...)``.

        An ``async def`` runs in the worker's event loop, a ``def`` in one of its threads or, with
        ``executor="process"``, in a process slot: for work that keeps a processor busy, and the
        only kind that can be stopped whatever it does.

        A first parameter annotated `Context` is filled in by the worker and not part of the call.
        Arguments are stored by parameter name and validated against the annotations before the
        handler runs.

        Args:
            function: the handler.
            **options: see `TaskOptions`.

        Returns:
            The task. Without a function a decorator with these options, to which more may be said.

        Raises:
            UsageError: it is no function, or a method or a generator; it can't run in that
                executor; its name is taken; a `Context` is not its first parameter; or an
                annotation is of values that can't be stored.
            InvalidOption: a setting is out of bounds.
        """
        if options:
            decorate = TaskDecorator(self._declare, {**self._options, **options})
            return decorate if function is None else decorate(function)
        if function is None:
            return self
        return self._declare(function, self._options)
