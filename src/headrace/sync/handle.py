"""A job from the side of a producer without an event loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from headrace.clock import Duration, duration_ms
from headrace.errors import WaitTimeout
from headrace.foreign import OF_HANDLES, WithForeignWords, without_await
from headrace.handle import HandledJob, LookPauses
from headrace.job import CancelOutcome, EnqueueOutcome, JobRecord
from headrace.storage.situation import Situation
from headrace.storage.values import End, OutputPage
from headrace.views.jobs import JobStatus
from headrace.views.why import Why

R_co = TypeVar("R_co", covariant=True)


class SyncJobClient(Protocol):
    """What a handle needs of the app."""

    def look(self, queue: str, job_id: str) -> JobRecord | None:
        """Return what is kept of the job."""

    def why(self, queue: str, job_id: str) -> Situation | None:
        """Return how the job stands, and what may keep it from running."""

    def wait(
        self, queue: str, job_id: str, *, timeout_ms: int | None, is_update: bool = False
    ) -> End:
        """Block until the job has ended, or raise `WaitTimeout` without a handle.

        With ``is_update`` it may run after another one of its id.
        """

    def cancel(self, queue: str, job_id: str, *, only_next: bool) -> CancelOutcome:
        """Cancel the job, or what is to run after it."""

    def output(self, queue: str, job_id: str, *, after: str) -> tuple[End, OutputPage]:
        """Return how the job stands, and then what it has put out since a cursor."""

    def decode(self, stored: bytes) -> Any:
        """Return arguments, a result or a piece of output as plain data."""


class SyncJobHandle(
    WithForeignWords, HandledJob[R_co, SyncJobClient], words=without_await(OF_HANDLES)
):
    """One job, by its id and queue; any thread may use it, and it outlives ``app.close()``.

    Attributes:
        id: the job's id.
        queue: its queue.
        outcome: what enqueueing came to, see `HandledJob`.
    """

    __slots__ = ()

    def status(self) -> JobStatus:
        """Return what is kept of the job now, see `JobHandle.status`.

        Raises:
            JobNotFound: there is no record.
            StorageError: the storage can't be reached.
        """
        record = self._client.look(self.queue, self.id)
        return self._status_of(record, self._client.decode)

    def why(self) -> Why:
        """Return why the job does not run, see `JobHandle.why`.

        Raises:
            JobNotFound: there is no record.
            StorageRefused: the storage is another distribution's, and can't tell.
            StorageError: the storage can't be reached.
        """
        return self._why_of(self._client.why(self.queue, self.id))

    def result(self, timeout: Duration | None = None) -> R_co:
        """Block until the job has ended and return its result. Safe to interrupt and to repeat.

        Args:
            timeout: seconds or a `timedelta`; None waits as long as the job takes. A call to the
                storage that is under way is not cut short.

        Raises:
            JobError: as `JobHandle.result`.
            StorageError: the storage was away for ten seconds at the start, or refuses.
            UsageError: the app is in a test's `Kit`, which runs jobs when the test says so, and
                this one has not ended.
        """
        timeout_ms = None if timeout is None else duration_ms(timeout, name="timeout")
        try:
            is_update = self.outcome is EnqueueOutcome.UPDATED
            end = self._client.wait(self.queue, self.id, timeout_ms=timeout_ms, is_update=is_update)
        except WaitTimeout as error:
            error.handle = self
            raise
        return self._result_of(end)

    def stream(self) -> Iterator[Any]:
        """Yield what the handler passes on by ``context.emit``, until the job has ended.

        Otherwise as `JobHandle.stream`.

        Raises:
            JobNotFound: there is no record of it.
            StorageError: the storage can't be reached; iterating anew begins at the first piece.
        """
        cursor = ""
        pauses = LookPauses()
        while True:
            end, page = self._client.output(self.queue, self.id, after=cursor)
            for chunk in self._pieces_of(end, page):
                yield self._client.decode(chunk)
            cursor = page.cursor
            pause_s = pauses.after(end, page)
            if pause_s is None:
                return
            time.sleep(pause_s)

    def cancel(self, *, only_next: bool = False) -> CancelOutcome:
        """Cancel the job, or what is to run after it, see `JobHandle.cancel`."""
        return self._client.cancel(self.queue, self.id, only_next=only_next)
