"""Declared tasks whose calls block: the same tasks, enqueued from code without an event loop."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, Unpack

from typing_extensions import TypeVar

from headrace.foreign import OF_TASKS, WithForeignWords, without_await
from headrace.job import Job
from headrace.one_process import CALL, TASK_REF, OfOneProcess
from headrace.options import JobOptions, SharedOptions, spelled_out
from headrace.sync.handle import SyncJobHandle
from headrace.task import DeclaredFunction, Task, TaskCall, awaited_job
from headrace.task_ref import TaskRef

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", default=Any)

_WORDS = without_await(OF_TASKS)


class SyncSubmitter(Protocol):
    """What a task needs of the app."""

    def submit(self, job: Job) -> SyncJobHandle[Any]:
        """Store one job."""

    def submit_and_wait(self, job: Job, *, timeout_ms: int | None) -> Any:
        """Store one job and wait for its result, so long that `WaitTimeout` is raised."""


class SyncTaskCall(OfOneProcess, WithForeignWords, Generic[P, R], words=_WORDS, instead=CALL):
    """A task with the options of one call; made by `SyncTask.options`. Reusable without an id."""

    def __init__(self, call: TaskCall[P, R], submitter: SyncSubmitter) -> None:
        self._call = call
        self._submitter = submitter

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Return the call as a `Job` for `SyncApp.enqueue_many`, see `TaskCall.job`."""
        return self._call.job(*args, **kwargs)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> SyncJobHandle[R]:
        """Store the job; once this returns, it will run.

        An interrupted call may or may not have stored its job; the app can be used afterwards.

        Raises:
            UsageError, StorageError: as `TaskCall.enqueue`.
        """
        handle: SyncJobHandle[R] = self._submitter.submit(self._call.job(*args, **kwargs))
        return handle

    def enqueue_and_wait(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Store the job, block until its end and return its result, see `TaskCall`.

        ``options(wait_timeout=...)`` bounds the wait; the job goes on then.

        Raises:
            JobError: as `SyncJobHandle.result`; a `WaitTimeout` has the job's handle.
            UsageError, StorageError: as `enqueue`.
        """
        job, limit_ms = awaited_job(self._call, *args, **kwargs)
        result: R = self._submitter.submit_and_wait(job, timeout_ms=limit_ms)
        return result


class SyncTask(WithForeignWords, DeclaredFunction, Generic[P, R, C], words=_WORDS):
    """A registered function whose calls block; made by `SyncApp.task` and `SyncApp.bind`.

    Pickled, it is the name of its function, so that must be where it says, as at the top of a
    module; one that was bound is its task and the app.

    Attributes:
        task: the same as a task of the async app.
        name: what it is stored under.
        function: the function.
    """

    def __init__(self, task: Task[P, R, C], submitter: SyncSubmitter) -> None:
        self.task: Task[P, R, C] = task
        self.name: str = task.name
        self.function: Callable[..., Any] = task.function
        self._submitter = submitter
        self._plain: TaskCall[P, R] = task.options()
        functools.update_wrapper(self, task.function, updated=())
        self.__signature__: inspect.Signature = task.signature.of_call

    def __repr__(self) -> str:
        return f"<SyncTask {self.task.name!r} on queue {self.task.settings.queue!r}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return self.function.__qualname__

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> C:
        """Run the function here and now, as if it were no task, see `Task.__call__`."""
        return self.task(*args, **kwargs)

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Return a call as a `Job`, see `TaskCall.job`."""
        return self._plain.job(*args, **kwargs)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> SyncJobHandle[R]:
        """Store a job with the task's own options, see `SyncTaskCall.enqueue`."""
        handle: SyncJobHandle[R] = self._submitter.submit(self._plain.job(*args, **kwargs))
        return handle

    def enqueue_and_wait(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Store a job and return its result, see `SyncTaskCall.enqueue_and_wait`."""
        return SyncTaskCall(self._plain, self._submitter).enqueue_and_wait(*args, **kwargs)

    @spelled_out(SharedOptions, JobOptions)
    def options(self, **options: Unpack[JobOptions]) -> SyncTaskCall[P, R]:
        """Return the task with options for one call; what is not said is as the task declares.

        Args:
            **options: see `JobOptions`.

        Raises:
            InvalidOption: a value is out of bounds.
        """
        return SyncTaskCall(self.task.options(**options), self._submitter)


class SyncTaskRef(OfOneProcess, WithForeignWords, words=_WORDS, instead=TASK_REF):
    """A task by its name; made by `SyncApp.task_ref`, see `TaskRef`."""

    def __init__(self, ref: TaskRef, submitter: SyncSubmitter) -> None:
        self._ref = ref
        self._submitter = submitter

    def __repr__(self) -> str:
        return f"<Sync{repr(self._ref)[1:]}"

    def job(self, /, *args: Any, **arguments: Any) -> Job[Any]:
        """Return a call as a `Job`, see `TaskRef.job`."""
        return self._ref.job(*args, **arguments)

    def enqueue(self, /, *args: Any, **arguments: Any) -> SyncJobHandle[Any]:
        """Store a job, see `SyncTaskCall.enqueue`; raises as `TaskRef.job` does, too."""
        return self._submitter.submit(self._ref.job(*args, **arguments))

    def enqueue_and_wait(self, /, *args: Any, **arguments: Any) -> Any:
        """Store a job and return its result, see `SyncTaskCall.enqueue_and_wait`."""
        return self.options().enqueue_and_wait(*args, **arguments)

    @spelled_out(SharedOptions, JobOptions)
    def options(self, **options: Unpack[JobOptions]) -> SyncTaskCall[..., Any]:
        """Return the task with options for one call, see `TaskRef.options`.

        Args:
            **options: see `JobOptions`.
        """
        return SyncTaskCall(self._ref.options(**options), self._submitter)
