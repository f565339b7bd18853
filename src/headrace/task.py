"""Declared tasks: a function, its name, its defaults, and how a call of it becomes a `Job`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Generic, ParamSpec, Protocol, TypeGuard, TypeVar

import msgspec

from headrace.clock import Duration
from headrace.codec import Codec, encode_arguments
from headrace.context import Context, current_job
from headrace.handle import JobHandle
from headrace.job import WAITED_RESULT_TTL_MS, Job, check_text, fresh, new_job_id
from headrace.retry import Retry
from headrace.settings import CallSettings, TaskSettings, call_settings
from headrace.signature import Signature

P = ParamSpec("P")
R = TypeVar("R")


class Submitter(Protocol):
    """What a task needs of the app."""

    def submit(self, job: Job) -> Awaitable[JobHandle[Any]]:
        """Store one job."""

    async def submit_and_wait(self, job: Job) -> Any:
        """Store one job and wait for its result."""


def make_job(name: str, settings: CallSettings, payload: bytes, *, is_plain: bool) -> Job:
    """Return the job for a task's name and its encoded arguments.

    ``is_plain`` is the settings' own.
    """
    job_id = settings.id
    is_new_id = job_id is None
    if job_id is None:
        job_id = new_job_id()
    if is_plain:
        # Every name that is passed costs time, and this is what a bulk enqueue does most.
        job = Job(
            job_id,
            settings.queue,
            name,
            payload,
            settings.priority,
            is_new_id,
            is_plain=True,
        )
    else:
        job = Job(
            id=job_id,
            queue=settings.queue,
            task=name,
            payload=payload,
            priority=settings.priority,
            is_new_id=is_new_id,
            delay_ms=settings.delay_ms,
            run_at_ms=settings.run_at_ms,
            expires_in_ms=settings.expires_in_ms,
            expires_at_ms=settings.expires_at_ms,
            max_stalls=settings.max_stalls,
            keep_ms=settings.keep_ms,
            lane=settings.lane,
            options=settings.encoded_options,
        )
    return fresh(job)


def is_awaitable(value: object) -> TypeGuard[Awaitable[Any]]:
    """Whether a function's result is to be awaited; a result's own attributes are not asked."""
    return hasattr(type(value), "__await__")


class TaskCall(Generic[P, R]):
    """A task with the options of one call; made by `Task.options`. Reusable unless it has an id."""

    def __init__(
        self, name: str, signature: Signature[R], settings: CallSettings, submitter: Submitter
    ) -> None:
        self._name = name
        self._signature = signature
        self._settings = settings
        self._submitter = submitter
        self._is_plain = settings.is_plain

    def job(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Return the call as a `Job` for `App.enqueue_many`. No I/O.

        Raises:
            InvalidArguments: the arguments don't fit the signature.
            NotSerializable: a value can't be encoded; the message names it.
            PayloadTooLarge: they are over 1 MiB encoded.
        """
        signature = self._signature
        payload = encode_arguments(signature.codec, signature.bind(args, kwargs))
        return make_job(self._name, self._settings, payload, is_plain=self._is_plain)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
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

    async def enqueue_and_wait(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Store the job, wait for its end and return its result: a request and its response.

        The result is kept for 60 seconds at least, also that of a job with this id that was there
        already. To bound the wait use ``asyncio.timeout``, or ``enqueue`` and
        ``result(timeout=...)``.

        Raises:
            JobError: as `JobHandle.result`.
            UsageError, StorageError: as `enqueue`.
        """
        job = self._kept(self.job(*args, **kwargs))
        result: R = await self._submitter.submit_and_wait(job)
        return result

    def _kept(self, job: Job) -> Job:
        settings = self._settings
        if settings.result_ttl_ms >= WAITED_RESULT_TTL_MS:
            return job
        kept = msgspec.structs.replace(
            settings.options,
            result_ttl_ms=WAITED_RESULT_TTL_MS,
            keep_ms=max(WAITED_RESULT_TTL_MS, settings.keep_ms),
        )
        return fresh(msgspec.structs.replace(job, options=msgspec.json.encode(kept)))


class Task(Generic[P, R]):
    """A registered function with its default options; made by `App.task`.

    Calling it runs the function here and now, without a queue.
    """

    def __init__(
        self,
        function: Callable[..., Awaitable[R] | R],
        *,
        name: str,
        settings: TaskSettings,
        submitter: Submitter,
        codec: Codec,
    ) -> None:
        self.name: str = check_text(name, what="task name")
        self.function = function
        self.settings = settings
        self.signature: Signature[R] = Signature(function, codec, injected=(Context,))
        self._submitter = submitter
        self._plain: TaskCall[P, R] = TaskCall(
            self.name, self.signature, call_settings(settings), submitter
        )
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<Task {self.name!r} on queue {self.settings.queue!r}>"

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function here and now; nothing is stored, retried or timed.

        Raises:
            LookupError: the function takes a `Context` and no job runs here.
        """
        if self.signature.injected_name:
            args = (current_job(), *args)  # type: ignore[assignment]
        found: Any = self.function(*args, **kwargs)
        result: R = await found if is_awaitable(found) else found
        return result

    def job(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Return a call as a `Job`, see `TaskCall.job`."""
        return self._plain.job(*args, **kwargs)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Store a job with the task's own options, see `TaskCall.enqueue`."""
        job = self._plain.job(*args, **kwargs)
        handle: JobHandle[R] = await self._submitter.submit(job)
        return handle

    async def enqueue_and_wait(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Store a job and return its result, see `TaskCall.enqueue_and_wait`."""
        return await self._plain.enqueue_and_wait(*args, **kwargs)

    def options(
        self,
        *,
        id: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        expires: Duration | datetime | None = None,
        max_attempts: int | None = None,
        max_stalls: int | None = None,
        timeout: Duration | None = None,
        retry: Retry | None = None,
        result_ttl: Duration | None = None,
        keep: Duration | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> TaskCall[P, R]:
        """Return the task with options for one call; what is not said is as the task declares.

        Durations are seconds or a `timedelta`, at most ten years.

        Args:
            id: unique in the queue, 1 to 256 bytes without control characters; while an earlier job
                with it waits, runs or is kept completed, enqueueing changes nothing. Default: a
                ULID.
            queue: another queue.
            priority: 0 to 9, 9 runs first.
            delay: start no earlier than this from now.
            run_at: start no earlier than this instant (aware); not with ``delay``.
            expires: start no later for the first time: a duration from now or an aware instant;
                else it fails as ``expired``. A job that has started does not expire any more.
            max_attempts: handler errors after which it fails, 1 or more.
            max_stalls: worker deaths after which it fails, 1 or more.
            timeout: how long one attempt may take, 1 ms or more.
            retry: how long it waits between attempts.
            result_ttl: how long the result is kept, 0 for not at all.
            keep: how long the record is kept once it completed or was cancelled; 0 keeps nothing.
            headers: strings for the handler, 8 KiB together.

        Raises:
            InvalidOption: a value is out of bounds.
        """
        settings = call_settings(
            self.settings,
            id=id,
            queue=queue,
            priority=priority,
            delay=delay,
            run_at=run_at,
            expires=expires,
            max_attempts=max_attempts,
            max_stalls=max_stalls,
            timeout=timeout,
            retry=retry,
            result_ttl=result_ttl,
            keep=keep,
            headers=headers,
        )
        return TaskCall(self.name, self.signature, settings, self._submitter)
