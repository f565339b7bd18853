"""Declared tasks: a function, its name, its settings, and the calls of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Generic, ParamSpec, Protocol, TypeGuard, Unpack

from typing_extensions import TypeVar

from headrace.codec import Codec, EncodeArguments, encode_arguments
from headrace.context import Context, current_job
from headrace.errors import InvalidArguments, OutsideHandler
from headrace.foreign import OF_TASKS, WithForeignWords, of_arguments
from headrace.handle import JobHandle
from headrace.job import Job, check_text
from headrace.one_process import CALL, OfOneProcess
from headrace.options import CALL_OPTIONS, JobOptions, SharedOptions, spelled_out
from headrace.settings import TaskSettings
from headrace.signature import Signature
from headrace.task_limits import check_parameters
from headrace.template import JobTemplate

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", default=Any)


class Submitter(Protocol):
    """What a task needs of the app."""

    def submit(self, job: Job) -> Awaitable[JobHandle[Any]]:
        """Store one job."""

    async def submit_and_wait(self, job: Job, *, timeout_ms: int | None = None) -> Any:
        """Store one job and wait for its result, so long that `WaitTimeout` is raised."""


class Binder(Protocol):
    """How the arguments of a call are bound and encoded.

    Attributes:
        names: the arguments that the function takes.
        encode: writes the arguments.
    """

    names: frozenset[str]
    encode: EncodeArguments

    def bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        """Return the arguments by name, or raise `InvalidArguments`."""

    def default_of(self, name: str) -> object:
        """Return the default of an argument that may be left out."""


def is_awaitable(value: object) -> TypeGuard[Awaitable[Any]]:
    """Whether a function's result is to be awaited; a result's own attributes are not asked."""
    return hasattr(type(value), "__await__")


def _hinted(error: InvalidArguments, unknown: Iterable[str]) -> InvalidArguments:
    """Return the error of a call, with where options go if some are among its arguments."""
    return InvalidArguments(f"{error}{of_arguments(unknown, CALL_OPTIONS)}")


class TaskCall(
    OfOneProcess,
    WithForeignWords,
    Generic[P, R],
    words=OF_TASKS,
    instead=CALL,
):
    """A task with the options of one call; made by `Task.options`. Reusable unless it has an id."""

    def __init__(self, template: JobTemplate, binder: Binder, submitter: Submitter) -> None:
        self._template = template
        self._binder = binder
        self._submitter = submitter

    def become(self, other: TaskCall[P, R]) -> None:
        """Be another call of the task, which has got its name and app meanwhile."""
        self._template = other._template
        self._binder = other._binder
        self._submitter = other._submitter

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Return the call as a `Job` for `App.enqueue_many`. No I/O.

        Raises:
            InvalidArguments: the arguments don't fit the signature.
            NotSerializable: a value can't be encoded; the message names it.
            PayloadTooLarge: they are over 1 MiB encoded.
        """
        payload, gates = self._encoded(args, kwargs)
        return self._template.request(payload, gates)

    def _encoded(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[bytes, str | None]:
        """Return a call's arguments, and its gates if they depend on these."""
        binder, keyed = self._binder, self._template.keyed
        try:
            arguments = binder.bind(args, kwargs)
            gates = None if keyed is None else keyed.gates_of(arguments, binder.default_of)
            return encode_arguments(binder.encode, arguments), gates
        except InvalidArguments as error:
            raise _hinted(error, kwargs.keys() - binder.names) from None

    def _awaited(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[Job[R], int | None]:
        template = self._template
        payload, gates = self._encoded(args, kwargs)
        return template.awaited(payload, gates), template.wait_timeout_ms

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Store the job; once this returns, it will run.

        Concurrent calls share round trips. A cancelled call may or may not have stored its job.

        Raises:
            InvalidArguments, NotSerializable, PayloadTooLarge: before any I/O, as for `job`.
            StorageFull: the storage has no memory left.
            StorageUnavailable: it can't be reached; nothing was sent.
            ReplyLost: the answer was lost: the job may be stored. Enqueue again with the same id.
        """
        handle: JobHandle[R] = await self._submitter.submit(self.job(*args, **kwargs))
        return handle

    async def enqueue_and_wait(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Store the job, wait for its end and return its result: a request and its response.

        The result is kept for 60 seconds at least, also that of a job with this id that was there
        already. ``options(wait_timeout=...)`` bounds the wait; the job goes on then, and
        ``options(expires=...)`` bounds how late it may start.

        Raises:
            JobError: as `JobHandle.result`; a `WaitTimeout` has the job's handle.
            UsageError, StorageError: as `enqueue`.
        """
        job, limit_ms = self._awaited(args, kwargs)
        result: R = await self._submitter.submit_and_wait(job, timeout_ms=limit_ms)
        return result


def awaited_job(
    call: TaskCall[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> tuple[Job[R], int | None]:
    """Return a call's job whose result is kept for who waits, and for how many ms that one waits.

    Raises:
        InvalidArguments, NotSerializable, PayloadTooLarge: as `TaskCall.job`.
    """
    return call._awaited(args, kwargs)  # noqa: SLF001 (this is its door for other kinds of calls)


class DeclaredFunction:
    """What stands in place of a function where that was declared as a task.

    Attributes:
        name: the task's.
        function: the function.
    """

    name: str
    function: Callable[..., Any]


class Task(WithForeignWords, DeclaredFunction, Generic[P, R, C], words=OF_TASKS):
    """A registered function with its default options; made by `App.task`.

    Its types are those of the function's arguments but a `Context`, of its result, and of what a
    call of it returns: the result, or a coroutine.
    """

    def __init__(
        self,
        function: Callable[..., Awaitable[R] | R],
        *,
        name: str,
        settings: TaskSettings,
        submitter: Submitter,
        codec: Codec,
        is_early: bool = False,
    ) -> None:
        self.function = function
        self._early: list[tuple[JobOptions, TaskCall[P, R]]] | None = None
        self.place(name=name, settings=settings, submitter=submitter, codec=codec)
        if is_early:
            self._early = []
        functools.update_wrapper(self, function, updated=())
        self.__signature__: inspect.Signature = self.signature.of_call

    def place(
        self, *, name: str, settings: TaskSettings, submitter: Submitter, codec: Codec
    ) -> None:
        """Have a name, settings and an app, also for calls that were prepared before.

        Raises:
            UsageError: an annotation can't be decoded by that codec.
            InvalidOption: the name is not valid, or a limit or turns go by what is no parameter
                whose values can be keys.
        """
        self.name: str = check_text(name, what="task name")
        self.settings: TaskSettings = settings
        self.signature: Signature[R] = Signature(
            self.function, codec, injected=(Context,), validate=settings.validate
        )
        check_parameters(
            self.name, settings.limits, settings.fair_by, self.signature.names, self.function
        )
        self._submitter = submitter
        early, self._early = self._early, None
        self._plain: TaskCall[P, R] = self._call({})
        for said, call in early or ():
            call.become(self._call(said))

    def __repr__(self) -> str:
        return f"<Task {self.name!r} on queue {self.settings.queue!r}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        # By the name of its function, where it stands in its place.
        return self.function.__qualname__

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> C:
        """Run the function here and now, as if it were no task: await what an `async def` returns.

        Nothing is stored, retried or timed, and a `Context` is that of the job that runs here.

        Raises:
            OutsideHandler: the function takes a `Context` and no job runs here.
        """
        called: C = self._here(args, kwargs)
        return called

    def _here(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.signature.injected_name:
            args = (self._context_here(), *args)
        return self.function(*args, **kwargs)

    def _context_here(self) -> Context[object]:
        try:
            return current_job()
        except OutsideHandler:
            raise OutsideHandler(
                f"{self.name} was called outside a handler and takes a Context: enqueue it, or run "
                "it in a test by kit.perform(...)"
            ) from None

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Return a call as a `Job`, see `TaskCall.job`."""
        return self._plain.job(*args, **kwargs)

    async def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Store a job with the task's own options, see `TaskCall.enqueue`."""
        job = self._plain.job(*args, **kwargs)
        handle: JobHandle[R] = await self._submitter.submit(job)
        return handle

    async def enqueue_and_wait(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Store a job and return its result, see `TaskCall.enqueue_and_wait`."""
        return await self._plain.enqueue_and_wait(*args, **kwargs)

    @spelled_out(SharedOptions, JobOptions)
    def options(self, **options: Unpack[JobOptions]) -> TaskCall[P, R]:
        """Return the task with options for one call; what is not said is as the task declares.

        Args:
            **options: see `JobOptions`.

        Raises:
            InvalidOption: a value is out of bounds.
        """
        return self._call(options)

    def _call(self, said: JobOptions) -> TaskCall[P, R]:
        template = JobTemplate(self.name, self.settings, said)
        call: TaskCall[P, R] = TaskCall(template, self.signature, self._submitter)
        if self._early is not None:
            self._early.append((said, call))
        return call


class CoroutineTask(Task[P, R, Coroutine[Any, Any, R]]):
    """A task whose function is a coroutine function, and so is its call to whoever asks."""

    async def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function here and now, see `Task.__call__`."""
        result: R = await self._here(args, kwargs)
        return result
