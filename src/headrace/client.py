"""One event loop's side of an app: its storage, call numbers and waits; `App` makes and ends it."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Protocol, TypeVar, cast

import anyio
import msgspec

from headrace.admit import admit, staying
from headrace.batching import Answer, Batcher
from headrace.errors import InvalidOption, JobNotFound, StorageError, UsageError, WaitTimeout
from headrace.handle import JobClient, JobHandle, result_of
from headrace.job import CancelOutcome, EnqueueOutcome, Job, JobRecord, is_name
from headrace.outage import ClientOutage
from headrace.overdue import overdue
from headrace.plain import shown
from headrace.repeat import repeat_until_answered
from headrace.request import JobRequest
from headrace.settings import check_flag
from headrace.storage.base import Storage, check_tells_why
from headrace.storage.batches import batches
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.situation import Situation
from headrace.storage.values import End, OutputPage
from headrace.waiting import Waits, whole

T = TypeVar("T")

CHUNKS_AHEAD = 3
"""Chunks of a bulk enqueue that are packed before the oldest is answered."""

DecoderOf = Callable[[str], Callable[[bytes], Any]]


class ClientFactory(Protocol):
    """Makes a client, as `Client` does."""

    def __call__(
        self, storage: Storage, *, decoder_of: DecoderOf, jobs: JobClient, retry_for_s: float
    ) -> Client:
        """Return a client for the running loop, with the arguments of `Client`."""


class Client:
    """Enqueues, waits and cancels for one event loop.

    Args:
        storage: opened for this loop; closed with the client.
        decoder_of: from a task's name to the decoder of its results; from any other, such as none,
            to that of plain data.
        jobs: what handles use, so that they outlive this client.
        retry_for_s: how long calls are repeated while the storage is away.
    """

    def __init__(
        self, storage: Storage, *, decoder_of: DecoderOf, jobs: JobClient, retry_for_s: float
    ) -> None:
        self.storage = storage
        self._jobs = jobs
        self._outage = ClientOutage()
        self.waits: Waits = Waits(storage, self._outage)
        self._decoder_of = decoder_of
        self._retry_for_s = retry_for_s
        self._id = secrets.token_hex(8)
        self._batchers: dict[str, Batcher] = {}

    def _batcher(self, queue: str) -> Batcher:
        batcher = self._batchers.get(queue)
        if batcher is None:
            batcher = Batcher(
                queue,
                self.storage,
                client=self._id,
                retry_for_s=self._retry_for_s,
                outage=self._outage,
            )
            self._batchers[queue] = batcher
        return batcher

    async def submit(self, job: Job) -> JobHandle[Any]:
        """Store one job.

        Raises:
            UsageError: it was made by no task and is not valid; nothing was sent.
            StorageError: see `Batcher`.
        """
        return await self.send(admit(job))

    async def send(self, job: JobRequest) -> JobHandle[Any]:
        """Store one job that was admitted."""
        batcher = self._batcher(job.queue)
        outcomes = await (batcher.send(job) if batcher.is_idle else batcher.submit((job,)))
        return JobHandle(job.id, job.queue, outcomes[0], self._jobs, self._decoder_of(job.task))

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call that does no harm when it comes twice, until it is answered.

        Raises:
            StorageError: it was refused, or the storage was away for as long as calls are repeated.
        """
        answer = await repeat_until_answered(
            call, on_pause=self._outage.waits, for_s=self._retry_for_s
        )
        if self._outage.began_at is not None:
            self._outage.ended()
        return cast(T, answer)  # it is never over

    async def submit_many(self, jobs: Iterable[Job]) -> list[JobHandle[Any]]:
        """Store jobs in chunks, each chunk whole or not at all; see `App.enqueue_many`."""
        handles: list[JobHandle[Any]] = []
        ahead: deque[tuple[Sequence[JobRequest], Answer]] = deque()
        try:
            for chunk in chunks(iterated(jobs)):
                ahead.append((chunk, self._batcher(chunk[0].queue).submit(chunk)))
                if len(ahead) > CHUNKS_AHEAD:
                    await self._collect(ahead, handles)
            while ahead:
                await self._collect(ahead, handles)
        except StorageError as error:
            error.accepted = tuple(handles)
            raise
        return handles

    async def _collect(
        self, ahead: deque[tuple[Sequence[JobRequest], Answer]], handles: list[JobHandle[Any]]
    ) -> None:
        chunk, answer = ahead.popleft()
        outcomes = await answer
        decoder_of = self._decoder_of
        handles += [
            JobHandle(job.id, job.queue, outcome, self._jobs, decoder_of(job.task))
            for job, outcome in zip(chunk, outcomes, strict=True)
        ]

    async def submit_and_wait(self, job: Job, *, timeout_ms: int | None = None) -> Any:
        """Store one job and return its result; the storage hears of the wait with the job.

        Raises:
            WaitTimeout: it was stored that long ago, and has not ended.
            UsageError, StorageError, JobError: as `submit` and `JobHandle.result`.
        """
        request = admit(job)
        asked = replying(request, await self.waits.channel())
        future = self.waits.expect(asked.queue, asked.id, is_stored=False)
        try:
            handle = await self.send(asked)
            self.waits.stored(future, is_update=handle.outcome is EnqueueOutcome.UPDATED)
            if handle.outcome is EnqueueOutcome.COMPLETED:
                return await handle.result()
            if handle.outcome is EnqueueOutcome.DUPLICATE and asked.idempotency_key:
                return await handle.result(None if timeout_ms is None else timeout_ms / 1000)
            end = await (
                future if timeout_ms is None else self._in_time(handle, future, timeout_ms)
            )
            return result_of(handle, await whole(self.storage, end))
        finally:
            self.waits.drop(asked.queue, asked.id, future)

    async def _in_time(
        self, handle: JobHandle[Any], future: asyncio.Future[End], timeout_ms: int
    ) -> End:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await future
        except TimeoutError:
            late = await self._overdue(handle.queue, handle.id, timeout_ms)
            late.handle = handle
            raise late from None

    async def _overdue(self, queue: str, job_id: str, timeout_ms: int | None) -> WaitTimeout:
        return await overdue(self.storage, queue, job_id, timeout_ms=timeout_ms or 0)

    async def look(self, queue: str, job_id: str) -> JobRecord | None:
        """Return what is kept of a job."""
        return await self.storage.get(queue, job_id)

    async def why(self, queue: str, job_id: str) -> Situation | None:
        """Return how a job stands, and what may keep it from running."""
        check_tells_why(self.storage)
        return await self.storage.why(queue, job_id)

    async def wait(
        self, queue: str, job_id: str, *, timeout_ms: int | None, is_update: bool = False
    ) -> End:
        """Wait until a job has ended, or raise `WaitTimeout`."""
        try:
            return await self.waits.wait(queue, job_id, timeout_ms=timeout_ms, is_update=is_update)
        except TimeoutError:
            raise await self._overdue(queue, job_id, timeout_ms) from None

    async def cancel(self, queue: str, job_id: str, *, only_next: bool) -> CancelOutcome:
        """Cancel a job, or what is to run after it."""
        return (await self.storage.cancel(queue, [job_id], only_next=only_next))[0]

    async def output(self, queue: str, job_id: str, *, after: str) -> tuple[End, OutputPage]:
        """Return how a job stands, and then what it has put out since a cursor."""
        return await read_output(self.storage, queue, job_id, after=after)

    def decode(self, stored: bytes) -> Any:
        """Return arguments, a result or a piece of output as plain data."""
        return self._decoder_of("")(stored)

    async def aclose(self) -> None:
        """Let what is being sent end, then close everything."""
        async with anyio.create_task_group() as group:
            for batcher in self._batchers.values():
                group.start_soon(batcher.aclose)
        await self.waits.aclose()
        await self.storage.aclose()


class CurrentClient:
    """What handles use: the app's client of the moment, since they may outlive a closed one."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._client = client

    async def look(self, queue: str, job_id: str) -> JobRecord | None:
        """Return what is kept of a job."""
        return await self._client().look(queue, job_id)

    async def why(self, queue: str, job_id: str) -> Situation | None:
        """Return how a job stands, and what may keep it from running."""
        return await self._client().why(queue, job_id)

    async def wait(
        self, queue: str, job_id: str, *, timeout_ms: int | None, is_update: bool = False
    ) -> End:
        """Wait until a job has ended."""
        return await self._client().wait(queue, job_id, timeout_ms=timeout_ms, is_update=is_update)

    async def cancel(self, queue: str, job_id: str, *, only_next: bool) -> CancelOutcome:
        """Cancel a job, or what is to run after it."""
        return await self._client().cancel(queue, job_id, only_next=only_next)

    async def output(self, queue: str, job_id: str, *, after: str) -> tuple[End, OutputPage]:
        """Return how a job stands, and then what it has put out since a cursor."""
        return await self._client().output(queue, job_id, after=after)

    def decode(self, stored: bytes) -> Any:
        """Return arguments, a result or a piece of output as plain data."""
        return self._client().decode(stored)


async def find_record(storage: Storage, job_id: str) -> JobRecord:
    """Return what is kept of a job in whichever queue has it.

    Raises:
        JobNotFound: none has.
        InvalidOption: several have one with this id.
    """
    queues = [name for name in await storage.queues() if is_name(name)]
    found = [record for name in queues if (record := await storage.get(name, job_id))]
    if not found:
        raise JobNotFound(
            f"there is no job {job_id!r} in any queue of tenant {storage.tenant!r}: "
            "it never was, was deleted, or its record is no longer kept",
            job_id=job_id,
            queue="",
        )
    if len(found) > 1:
        names = ", ".join(record.queue for record in found)
        raise InvalidOption(
            f"job {job_id!r} is in several queues ({names}): name one, as in app.job(id, queue=...)"
        )
    return found[0]


async def read_output(
    storage: Storage, queue: str, job_id: str, *, after: str
) -> tuple[End, OutputPage]:
    """Return how a job stands, and then what it has put out since a cursor."""
    # In this order, so that nothing comes after the page of a job that had ended.
    [end] = await storage.watch(queue, [job_id], channel="")
    return end, await storage.output(queue, job_id, after=after)


def replying(request: JobRequest, channel: str) -> JobRequest:
    """Return a request of a job that tells a channel how it ends."""
    return msgspec.structs.replace(request, channel=channel, is_plain=False)


def as_asked(jobs: Iterable[Job], *, replace_ended: bool) -> Iterable[Job]:
    """Return jobs as a bulk enqueue is to send them, see `App.enqueue_many`.

    Raises:
        UsageError: ``replace_ended`` is no bool, or what should be jobs can't be iterated.
    """
    is_replacing = check_flag(replace_ended, name="replace_ended")
    return jobs if is_replacing else map(staying, iterated(jobs))


def iterated(jobs: Iterable[Job]) -> Iterator[Job]:
    """Return an iterator of what should be jobs, or raise `UsageError` if there can be none."""
    if isinstance(jobs, Job):
        # Not shown: it has a payload.
        raise UsageError("one job can't be iterated: pass a list of it, or add or submit it alone")
    if not isinstance(jobs, Iterable):
        raise UsageError(f"{shown(jobs)} can't be iterated: pass jobs as task.job(...) makes them")
    return iter(jobs)


def chunks(source: Iterator[Job]) -> Iterable[Sequence[JobRequest]]:
    """Admit jobs and split them, in order, where the queue changes or a call would be too large."""
    while block := list(map(admit, islice(source, BATCH_LIMIT))):
        for _, jobs in groupby(block, attrgetter("queue")):
            yield from batches(list(jobs), lambda job: len(job.payload))
