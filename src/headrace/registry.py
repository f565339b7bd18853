"""Where tasks are declared: the decorator, with what type checkers see of it, and the names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Unpack, overload

import msgspec
from typing_extensions import TypeVar

from headrace.codec import Codec
from headrace.context import Context
from headrace.declaration import check_function, default_name, executor_kind, is_redefinition
from headrace.errors import UsageError
from headrace.handle import JobHandle
from headrace.job import Job
from headrace.json_codec import JSON
from headrace.options import SharedOptions, TaskOptions, spelled_out, task_settings
from headrace.settings import TaskSettings
from headrace.task import CoroutineTask, Task

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=Awaitable[Any])
S = TypeVar("S", default=None)


class AnyArgument:
    """For type checkers: only a parameter that takes anything takes this.

    A first parameter annotated ``object`` or ``Any`` would take a `Context` too, and is none.
    """


class TaskRegistry(ABC, Generic[S]):
    """Tasks by their names, and the decorator that declares them.

    Attributes:
        tasks: each task by its name.
        codec: what arguments, results and output are stored as.
    """

    codec: Codec = JSON

    def __init__(self) -> None:
        self.tasks: dict[str, Task[..., Any]] = {}

    @property
    def task(self) -> TaskDecorator[S]:
        """Registers a function as a task, as ``@app.task`` or ``@app.task(...)``."""
        return TaskDecorator(self, {})

    @abstractmethod
    def submit(self, job: Job) -> Awaitable[JobHandle[Any]]:
        """Store one job made by ``task.job(...)``, as `Task.enqueue` does: await it."""

    @abstractmethod
    async def submit_and_wait(self, job: Job) -> Any:
        """Store one job and return its result, as `Task.enqueue_and_wait` does."""

    def add_task(
        self,
        function: Callable[..., Any],
        name: str | None,
        settings: TaskSettings,
        executor: str | None = None,
    ) -> Task[..., Any]:
        """Register a function, or that of another task; `task` is the usual way."""
        if isinstance(function, Task):
            function = function.function
        check_function(function)
        settings = msgspec.structs.replace(settings, executor=executor_kind(function, executor))
        kind: type[Task[..., Any]] = CoroutineTask if settings.is_coroutine else Task
        task = kind(
            function,
            name=default_name(function) if name is None else name,
            settings=settings,
            submitter=self,
            codec=self.codec,
        )
        before = self.tasks.get(task.name)
        if before is not None and not is_redefinition(function, before.function):
            raise UsageError(f"the task name {task.name!r} is taken: pass another name=")
        self.tasks[task.name] = task
        return task


class TaskDecorator(Generic[S]):
    """What ``app.task`` is: registers a function as a task, with options or without.

    Type checkers take the first overload that fits. Each kind of function has four: its first
    parameter takes anything; is a context of the app's state; or of none; or there is no context.
    """

    def __init__(self, registry: TaskRegistry[S], options: TaskOptions) -> None:
        self._registry = registry
        self._options = options
        self._settings = task_settings(**options)

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

    @spelled_out(SharedOptions, TaskOptions)
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
                annotation can't be decoded.
            InvalidOption: a setting is out of bounds.
        """
        if options:
            decorate = TaskDecorator(self._registry, {**self._options, **options})
            return decorate if function is None else decorate(function)
        if function is None:
            return self
        name, executor = self._options.get("name"), self._options.get("executor")
        return self._registry.add_task(function, name, self._settings, executor)
