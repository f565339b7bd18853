"""A job from the producer's side: look at it, wait for it, cancel it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, Protocol, TypeVar

import anyio
import msgspec

from headrace.clock import Duration, duration_ms
from headrace.errors import (
    JobCancelled,
    JobFailed,
    JobNotFound,
    ResultExpired,
    ResultMismatch,
    WaitTimeout,
)
from headrace.foreign import OF_HANDLES, WithForeignWords
from headrace.job import (
    CancelOutcome,
    EnqueueOutcome,
    FirstUse,
    JobRecord,
    JobState,
    Verdict,
    outcome_of,
)
from headrace.one_process import OfOneProcess
from headrace.storage.situation import Situation
from headrace.storage.values import End, OutputPage
from headrace.views.jobs import JobStatus
from headrace.views.why import Why

R_co = TypeVar("R_co", covariant=True)
Asked = TypeVar("Asked")

STREAM_LOOK_S = (0.01, 0.25)
"""Pauses between two looks at a job's output: the first and the longest."""


class JobClient(Protocol):
    """What a handle needs of the app."""

    async def look(self, queue: str, job_id: str) -> JobRecord | None:
        """Return what is kept of the job."""

    async def why(self, queue: str, job_id: str) -> Situation | None:
        """Return how the job stands, and what may keep it from running."""

    async def wait(
        self, queue: str, job_id: str, *, timeout_ms: int | None, is_update: bool = False
    ) -> End:
        """Wait until the job has ended, or raise `WaitTimeout` without a handle.

        With ``is_update`` it may run after another one of its id.
        """

    async def cancel(self, queue: str, job_id: str, *, only_next: bool) -> CancelOutcome:
        """Cancel the job, or what is to run after it."""

    async def output(self, queue: str, job_id: str, *, after: str) -> tuple[End, OutputPage]:
        """Return how the job stands, and then what it has put out since a cursor."""

    def decode(self, stored: bytes) -> Any:
        """Return arguments, a result or a piece of output as plain data."""


class LookPauses:
    """The pauses between two looks at a job's output: longer while nothing comes."""

    def __init__(self) -> None:
        self._pause_s = STREAM_LOOK_S[0]

    def after(self, end: End, page: OutputPage) -> float | None:
        """Return how long to wait after a look, None when there is no more to come."""
        if page.chunks:
            self._pause_s = STREAM_LOOK_S[0]
            return 0.0
        if end.state is None or end.state.is_terminal:
            return None
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, STREAM_LOOK_S[1])
        return pause_s


class HandledJob(
    OfOneProcess,
    Generic[R_co, Asked],
    instead="send its id and queue, and call app.job(id, queue=...) there",
):
    """What every handle is: which job, and what an end of it comes to; asks the storage nothing.

    Attributes:
        id: the job's id; where its idempotency key was known, that of the first job with the key.
        queue: its queue.
        outcome: what enqueueing came to: ``queued``, ``scheduled``, ``duplicate`` (an earlier job
            with this id waits or runs), ``completed`` (it is done and its result kept) or
            ``updated`` (the call said so: what it asked for was set in the job that waits, or
            follows the one that runs); ``unknown`` to a handle that enqueued nothing.
    """

    __slots__ = ("_client", "_decode", "id", "outcome", "queue")

    def __init__(
        self,
        job_id: str,
        queue: str,
        verdict: Verdict,
        client: Asked,
        decode: Callable[[bytes], Any],
    ) -> None:
        self.id: str = verdict.id if isinstance(verdict, FirstUse) else job_id
        self.queue: str = queue
        self.outcome: EnqueueOutcome = outcome_of(verdict)
        self._client = client
        self._decode = decode

    def __repr__(self) -> str:
        # Without a state: whatever it was once, it may be another by now.
        return f"<{type(self).__name__} {self.id!r} in {self.queue!r}>"

    def _status_of(self, record: JobRecord | None, decode: Callable[[bytes], Any]) -> JobStatus:
        if record is None:
            raise self._not_found()
        return JobStatus.of(record, decode)

    def _why_of(self, situation: Situation | None) -> Why:
        if situation is None:
            raise self._not_found()
        return Why.of(situation)

    def _pieces_of(self, end: End, page: OutputPage) -> list[bytes]:
        if end.state is None:
            raise self._not_found()
        return page.chunks

    def _result_of(self, end: End) -> R_co:
        if end.state is JobState.COMPLETED and end.result is not None:
            return self._decoded(end.result)
        if end.state is JobState.COMPLETED:
            raise ResultExpired(
                f"job {self.id!r} completed, but its result is not kept any more: "
                "raise result_ttl to keep it longer",
                job_id=self.id,
                queue=self.queue,
            )
        if end.state is JobState.FAILED:
            raise self._failed(end)
        if end.state is JobState.CANCELLED:
            raise JobCancelled(f"job {self.id!r} was cancelled", job_id=self.id, queue=self.queue)
        raise self._not_found()

    def _decoded(self, data: bytes) -> R_co:
        try:
            result: R_co = self._decode(data)
        except msgspec.MsgspecError as error:
            raise ResultMismatch(
                f"job {self.id!r} completed, but its result is not of the type that its task "
                f"declares: {error}. Correct what the handler returns or its annotation; "
                "validate=True on the task has the worker refuse such results",
                job_id=self.id,
                queue=self.queue,
            ) from error
        return result

    def _failed(self, end: End) -> JobFailed:
        error = end.error
        told = f": {error.type}: {error.message}" if error else ""
        return JobFailed(
            f"job {self.id!r} failed ({end.reason}){told}",
            job_id=self.id,
            queue=self.queue,
            reason=end.reason,
            error_type=error.type if error else "",
            error_message=error.message if error else "",
            traceback=error.traceback if error else "",
        )

    def _not_found(self) -> JobNotFound:
        return JobNotFound(
            f"there is no job {self.id!r} in queue {self.queue!r}: it never was, was deleted, "
            "or its record is no longer kept",
            job_id=self.id,
            queue=self.queue,
        )


class JobHandle(WithForeignWords, HandledJob[R_co, JobClient], words=OF_HANDLES):
    """One job, by its id and queue.

    Attributes:
        id: the job's id.
        queue: its queue.
        outcome: what enqueueing came to, see `HandledJob`.
    """

    __slots__ = ()

    async def status(self) -> JobStatus:
        """Return what is kept of the job now: state, counts, times, progress and error history.

        Its ``state`` is a `JobState`, which equals its name: ``status.state == "queued"``. The
        status itself equals no text.

        Raises:
            JobNotFound: there is no record.
            StorageError: the storage can't be reached.
        """
        record = await self._client.look(self.queue, self.id)
        return self._status_of(record, self._client.decode)

    async def why(self) -> Why:
        """Return why the job does not run: all that is in its way at one instant, and what to do.

        ``print(await handle.why())`` tells people; `Why` has the same for programs. Of a job that
        runs or has ended it says so. It is a short call however long the queue is: what would
        take longer to count or find is told in part, and that says so.

        Raises:
            JobNotFound: there is no record.
            StorageRefused: the storage is another distribution's, and can't tell.
            StorageError: the storage can't be reached.
        """
        return self._why_of(await self._client.why(self.queue, self.id))

    async def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for the job to end and return its result. Safe to cancel and to repeat.

        Who begins to wait while the job runs and another of its id is to follow, waits for that.

        Args:
            timeout: seconds or a `timedelta`; None waits as long as the job takes.

        Raises:
            JobFailed: it became a dead letter.
            JobCancelled: it was cancelled.
            JobNotFound: there is no record of it, or it was deleted.
            ResultExpired: it completed, but the result is no longer kept.
            ResultMismatch: it completed, but the result is not of the type that its task declares.
            WaitTimeout: it has not ended in time; a look, of a second at most, says how it stands.
        """
        timeout_ms = None if timeout is None else duration_ms(timeout, name="timeout")
        try:
            is_update = self.outcome is EnqueueOutcome.UPDATED
            end = await self._client.wait(
                self.queue, self.id, timeout_ms=timeout_ms, is_update=is_update
            )
        except WaitTimeout as error:
            error.handle = self
            raise
        return self._result_of(end)

    async def stream(self) -> AsyncIterator[Any]:
        """Yield what the handler passes on by ``context.emit``, until the job has ended.

        A piece comes within a quarter of a second, the first ones after a pause sooner. A new
        attempt begins anew, and its pieces follow. Whoever reads more slowly than 1,000 pieces are
        emitted misses some. How the job has ended tells `result`.

        Raises:
            JobNotFound: there is no record of it.
            StorageError: the storage can't be reached; iterating anew begins at the first piece.
        """
        cursor = ""
        pauses = LookPauses()
        while True:
            end, page = await self._client.output(self.queue, self.id, after=cursor)
            for chunk in self._pieces_of(end, page):
                yield self._client.decode(chunk)
            cursor = page.cursor
            pause_s = pauses.after(end, page)
            if pause_s is None:
                return
            await anyio.sleep(pause_s)

    async def cancel(self, *, only_next: bool = False) -> CancelOutcome:
        """Cancel the job: a waiting one never starts, an active one is asked to stop.

        What follows an active one under its id goes with it.

        Args:
            only_next: leave the active one alone, and cancel what is to run after it.

        Returns:
            ``cancelled``, ``requested`` (it is active), ``finished`` or ``not_found``. Repeating is
            safe.
        """
        return await self._client.cancel(self.queue, self.id, only_next=only_next)


def result_of(handle: HandledJob[R_co, Any], end: End) -> R_co:
    """Return the result that the end of the handle's job carries, or raise as its `result` does."""
    return handle._result_of(end)  # noqa: SLF001 (this is its door for clients)
