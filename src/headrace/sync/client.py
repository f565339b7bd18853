"""One process's side of a `SyncApp`: its storage, its calls, its waits, for any thread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.admit import admit
from headrace.client import DecoderOf, read_output, replying
from headrace.errors import StorageError, UsageError, WaitTimeout
from headrace.handle import result_of
from headrace.job import CancelOutcome, EnqueueOutcome, Job, JobRecord, Verdict
from headrace.request import JobRequest
from headrace.storage.base import check_tells_why
from headrace.storage.blocking import BlockingStorage
from headrace.storage.situation import Situation
from headrace.storage.steps import at_once
from headrace.storage.values import End, OutputPage
from headrace.sync.asking import BlockingAsker
from headrace.sync.enqueues import Enqueues
from headrace.sync.handle import SyncJobClient, SyncJobHandle
from headrace.sync.waits import ThreadWaits
from headrace.waiting import is_end, whole


class ProcessClient(BlockingAsker):
    """Enqueues, waits and cancels, in the thread that asks.

    Args:
        storage: opened for this process; closed with the client.
        decoder_of: as for `Client`.
        jobs: what handles use, so that they outlive this client.
        retry_for_s: how long calls are repeated while the storage is away.
    """

    def __init__(
        self,
        storage: BlockingStorage,
        *,
        decoder_of: DecoderOf,
        jobs: SyncJobClient,
        retry_for_s: float,
    ) -> None:
        super().__init__(storage, retry_for_s=retry_for_s)
        self._decoder_of = decoder_of
        self._jobs = jobs
        self._enqueues = Enqueues(storage, retry_for_s=retry_for_s, outage=self.outage)
        self._waits = ThreadWaits(storage, self.outage)

    def submit(self, job: Job) -> SyncJobHandle[Any]:
        """Store one job.

        Raises:
            UsageError: it was made by no task and is not valid; nothing was sent.
            StorageError: see `Enqueues`.
        """
        return self._send(admit(job))

    def _send(self, job: JobRequest) -> SyncJobHandle[Any]:
        return self._handle(job, self._enqueues.one(job))

    def _handle(self, job: JobRequest, verdict: Verdict) -> SyncJobHandle[Any]:
        return SyncJobHandle(job.id, job.queue, verdict, self._jobs, self._decoder_of(job.task))

    def submit_many(self, jobs: Iterable[Job]) -> list[SyncJobHandle[Any]]:
        """Store jobs in chunks, each chunk whole or not at all; see `SyncApp.enqueue_many`."""
        handles: list[SyncJobHandle[Any]] = []
        try:
            for chunk, outcomes in self._enqueues.many(jobs):
                handles += map(self._handle, chunk, outcomes)
        except StorageError as error:
            error.accepted = tuple(handles)
            raise
        return handles

    def submit_and_wait(self, job: Job, *, timeout_ms: int | None) -> Any:
        """Store one job and return its result; the storage hears of the wait with the job.

        Raises:
            WaitTimeout: it was stored that long ago, and has not ended.
            UsageError, StorageError, JobError: as `submit` and `SyncJobHandle.result`.
        """
        request = admit(job)
        with self._waits.inbox() as inbox:
            handle = self._send(replying(request, inbox.name))
            if handle.outcome is EnqueueOutcome.COMPLETED:
                return handle.result()
            if handle.outcome is EnqueueOutcome.DUPLICATE and request.idempotency_key:
                return handle.result(None if timeout_ms is None else timeout_ms / 1000)
            try:
                end = self._waits.hear(
                    inbox,
                    handle.queue,
                    handle.id,
                    timeout_ms=timeout_ms,
                    is_new=request.is_new_id,
                    is_update=handle.outcome is EnqueueOutcome.UPDATED,
                )
            except WaitTimeout as error:
                error.handle = handle
                raise
        return result_of(handle, end)

    def look(self, queue: str, job_id: str) -> JobRecord | None:
        """Return what is kept of a job."""
        return at_once(self.storage.get(queue, job_id))

    def why(self, queue: str, job_id: str) -> Situation | None:
        """Return how a job stands, and what may keep it from running."""
        check_tells_why(self.storage)
        return at_once(self.storage.why(queue, job_id))

    def wait(
        self, queue: str, job_id: str, *, timeout_ms: int | None, is_update: bool = False
    ) -> End:
        """Block until a job has ended, or raise `WaitTimeout`."""
        return self._waits.wait(queue, job_id, timeout_ms=timeout_ms, is_update=is_update)

    def cancel(self, queue: str, job_id: str, *, only_next: bool) -> CancelOutcome:
        """Cancel a job, or what is to run after it."""
        [outcome] = at_once(self.storage.cancel(queue, [job_id], only_next=only_next))
        return outcome

    def output(self, queue: str, job_id: str, *, after: str) -> tuple[End, OutputPage]:
        """Return how a job stands, and then what it has put out since a cursor."""
        return at_once(read_output(self.storage, queue, job_id, after=after))

    def close(self) -> None:
        """Close what is not in use; a call that is under way in another thread ends first."""
        self._waits.close()
        self.storage.close()


class DrivenClient(ProcessClient):
    """One whose jobs run when a test says so, and never while a thread blocks for their ends."""

    def submit_and_wait(self, job: Job, *, timeout_ms: int | None) -> Any:
        """Refuse."""
        raise UsageError(
            f"{job.task} is enqueued in a Kit, where jobs run when the test says so: enqueue it, "
            "`await kit.run_until_idle()`, then ask its handle for the result"
        )

    def wait(
        self, queue: str, job_id: str, *, timeout_ms: int | None, is_update: bool = False
    ) -> End:
        """Return the end of a job that has ended."""
        [end] = at_once(self.storage.watch(queue, [job_id], channel=""))
        self._check_end(end)
        return at_once(whole(self.storage, end))

    def output(self, queue: str, job_id: str, *, after: str) -> tuple[End, OutputPage]:
        """Return what a job has put out, if it has ended or there is some."""
        end, page = super().output(queue, job_id, after=after)
        if not page.chunks:
            self._check_end(end)
        return end, page

    def _check_end(self, end: End) -> None:
        if not is_end(end):
            raise UsageError(
                f"job {end.id!r} is {end.state} in a Kit, where jobs run when the test says so: "
                "run it first: `await kit.run_until_idle()`"
            )
