"""One queue as its operators see it: counts, listings, pause, purge, dead letters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from headrace.clock import Duration, duration_ms
from headrace.errors import InvalidOption
from headrace.fail_jobs import NamedTask, fail_task_name
from headrace.job import JobState, check_text
from headrace.json_codec import JSON
from headrace.one_process import QUEUE, OfOneProcess
from headrace.plain import plain_text, shown
from headrace.queue_events import Operator
from headrace.queue_limits import QueueLimits
from headrace.settings import check_count
from headrace.storage.batches import batches
from headrace.storage.exports import place_behind
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.values import End
from headrace.views.jobs import JobSummary
from headrace.views.outcomes import ExportedJob, JobOutcome
from headrace.views.queues import QueueStats, QueueWorker

PURGEABLE = (
    JobState.QUEUED,
    JobState.SCHEDULED,
    JobState.RETRYING,
    JobState.BLOCKED,
    JobState.COMPLETED,
    JobState.FAILED,
    JobState.CANCELLED,
)


decode_json: Callable[[bytes], Any] = JSON.decoder(Any)
"""Reads plain data of the codec that there is."""


class Queue(OfOneProcess, QueueLimits, instead=QUEUE):
    """A queue by name; made by `App.queue`. Its methods may raise `StorageError`.

    Args:
        name: its name.
        storage: returns what it is looked at and steered through.
        decode: reads arguments and results as plain data.

    Raises:
        InvalidOption: the name is not valid.
    """

    def __init__(
        self,
        name: str,
        storage: Callable[[], Operator],
        *,
        decode: Callable[[bytes], Any] = decode_json,
    ) -> None:
        super().__init__(name, storage)
        self._decode = decode

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}>"

    async def stats(self) -> QueueStats:
        """Return counts now, the work of the last minute, and what the queue keeps."""
        return QueueStats.of(await self._storage().stats(self.name))

    async def workers(self) -> list[QueueWorker]:
        """Return the workers that serve this queue."""
        return [
            QueueWorker.of(self.name, info) for info in await self._storage().workers(self.name)
        ]

    async def pause(self) -> None:
        """Stop workers from claiming; active jobs go on and enqueueing works. Safe to repeat."""
        await self._storage().pause(self.name)

    async def resume(self) -> None:
        """Let workers claim again, at once. Safe to repeat."""
        await self._storage().resume(self.name)

    async def configure(
        self,
        *,
        history: int | None = None,
        dead_letters: int | None = None,
        dead_letter_ttl: Duration | None = None,
        events: int | None = None,
        events_cap: int | None = None,
        on_failed: NamedTask | str | None = None,
        max_active: int | None = None,
        max_length: int | None = None,
    ) -> QueueStats:
        """Change how the queue is set; None leaves a setting as it is. Returns its `stats` then.

        Args:
            history: completed and cancelled records, default 100,000, 1 to 10,000,000.
            dead_letters: default 10,000, same bounds.
            dead_letter_ttl: how long a dead letter is kept, default 30 days, at least a second.
            events: entries of the event stream (1 to 20 events each), default 5,000, same bounds.
            events_cap: entries of it while a reader has not acknowledged them, default 50,000, same
                bounds.
            on_failed: a task, or its name, of which a job comes with each dead letter whose own job
                names none, default none; "": none any more. The queue's workers must know it.
            max_active: jobs that are active at once, of all its workers together, default 0: no
                bound; at most 10,000,000. What is active beyond a lowered one goes on.
            max_length: jobs that wait at once, whatever for, default 0: no bound; at most
                10,000,000. A call that would bring more in raises `QueueFull`; retries, fail jobs
                and what comes back from a worker are let in.

        Raises:
            InvalidOption: a value is out of bounds.
        """
        counts = {
            "history": history,
            "dead_letters": dead_letters,
            "events": events,
            "events_cap": events_cap,
        }
        changes: dict[str, Any] = {}
        for name, value in counts.items():
            if value is not None:
                changes[name] = check_count(value, name=name, most=10_000_000)
        for name, value in (("max_active", max_active), ("max_length", max_length)):
            if value is not None:
                changes[name] = check_count(value, name=name, most=10_000_000, least=0)
        if dead_letter_ttl is not None:
            changes["dead_letter_ttl_ms"] = duration_ms(
                dead_letter_ttl, name="dead_letter_ttl", least_ms=1000
            )
        if on_failed is not None:
            changes["on_failed"] = "" if on_failed == "" else fail_task_name(on_failed)
        found = await self._storage().stats(self.name)
        settings = msgspec.structs.replace(found.settings, **changes)
        await self._storage().configure(self.name, settings)
        return QueueStats.of(msgspec.structs.replace(found, settings=settings))

    async def jobs(
        self, state: JobState | str, *, task: str | None = None, limit: int | None = None
    ) -> AsyncIterator[JobSummary]:
        """Yield the jobs in ``state``, page by page, without arguments and results.

        Args:
            state: one of `JobState`.
            task: only jobs of this task.
            limit: at most this many, None for all. Jobs that move meanwhile may be missed or
                repeated.
        """
        wanted = check_state(state)
        task = None if task is None else check_text(task, what="task name")
        left = None if limit is None else check_count(limit, name="limit", most=2**62, least=0)
        cursor = ""
        while True:
            page = await self._storage().list_jobs(
                self.name, wanted, cursor=cursor, limit=BATCH_LIMIT
            )
            for row in page.rows:
                if task is None or row.task == task:
                    if left is not None and left <= 0:
                        return
                    yield JobSummary.of(self.name, row)
                    left = None if left is None else left - 1
            cursor = page.cursor
            if not cursor:
                return

    async def outcomes(self, *job_ids: str) -> list[JobOutcome]:
        """Return how jobs have ended, or stand, in the order of their ids; any number of them.

        Nothing is waited for and nothing is changed. 500 jobs share a call; a result over 64 KiB
        takes one of its own.

        Raises:
            InvalidOption: an id is not valid.
        """
        ids = [check_text(job_id, what="job id") for job_id in job_ids]
        return [
            JobOutcome.of(await self._whole(end), self._decode)
            for batch in batches(ids)
            for end in await self._storage().outcomes(self.name, batch)
        ]

    async def _whole(self, end: End) -> End:
        """Return an end with its result, which a look at many leaves out where it is long."""
        record = await self._storage().get(self.name, end.id) if end.is_cut else None
        if record is None:
            return end
        return msgspec.structs.replace(end, result=record.result)

    async def export(self, state: JobState | str, *, after: str = "") -> AsyncIterator[ExportedJob]:
        """Yield the jobs that have ended in ``state``, the first to end first, up to now.

        Each comes with all that is kept of it, arguments and result too. To go on later, pass the
        ``cursor`` of the last one: each end comes once, of whatever was still kept when its page
        was read, unless the storage's clock was set back. Jobs that ended in this very millisecond
        are left to the next time. Up to 200 jobs and 4 MiB are read at once.

        Args:
            state: ``completed``, ``failed`` or ``cancelled``.
            after: the ``cursor`` of a job of this queue and state, "" for all.

        Raises:
            InvalidOption: it is none of those states, or the cursor is not one of such a job.
        """
        wanted = check_state(state)
        place_behind(after, self.name, wanted)
        cursor = after
        while True:
            page = await self._storage().export(self.name, wanted, cursor=cursor)
            for record in page.records:
                yield ExportedJob.of(record, self._decode)
            if not page.has_more:
                return
            cursor = page.cursor

    async def redrive(self, *job_ids: str, task: str | None = None, all_jobs: bool = False) -> int:
        """Queue dead letters again, with counts and error history reset; return how many were.

        Say which: ids, or ``task=`` for those of a task, or ``all_jobs=True``.

        Raises:
            InvalidOption: none or several of them are said, or an id is not valid.
        """
        ids = await self._chosen(JobState.FAILED, job_ids, task, all_jobs=all_jobs)
        done = 0
        for batch in batches(ids):
            done += await self._storage().redrive(self.name, batch)
        return done

    async def purge(
        self,
        state: JobState | str,
        *job_ids: str,
        task: str | None = None,
        all_jobs: bool = False,
    ) -> int:
        """Delete jobs in ``state``, not active ones; who waits for them gets `JobNotFound`.

        Say which as for `redrive`: what is there when it starts, not what comes meanwhile. Returns
        how many were deleted.

        Raises:
            InvalidOption: as for `redrive`, or ``state`` is ``active``.
        """
        wanted = check_state(state)
        if wanted not in PURGEABLE:
            raise InvalidOption(
                f"jobs in state {wanted.value!r} can't be purged: cancel them instead"
            )
        ids = await self._chosen(wanted, job_ids, task, all_jobs=all_jobs)
        done = 0
        for batch in batches(ids):
            done += await self._storage().purge(self.name, wanted, batch)
        return done

    async def _chosen(
        self, state: JobState, job_ids: Sequence[str], task: str | None, *, all_jobs: bool
    ) -> list[str]:
        if sum((bool(job_ids), task is not None, all_jobs)) != 1:
            raise InvalidOption("say which jobs: ids, task=..., or all_jobs=True, one of them")
        if job_ids:
            return [check_text(job_id, what="job id") for job_id in job_ids]
        return [row.id async for row in self.jobs(state, task=task)]


def check_state(state: JobState | str) -> JobState:
    """Return the state of that name, or raise `InvalidOption`."""
    try:
        return JobState(plain_text(state) or "")
    except ValueError:
        known = ", ".join(JobState)
        raise InvalidOption(f"state {shown(state)} is not known: use one of {known}") from None
