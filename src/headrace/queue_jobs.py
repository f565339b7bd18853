"""The jobs of a queue as its operators see them: listings, ends, cancel, redrive, purge."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from headrace.cancelling import cancel_filter, cancel_jobs
from headrace.clock import Duration, WallClock, wall_clock
from headrace.errors import InvalidOption
from headrace.job import JobState, check_text
from headrace.json_codec import JSON
from headrace.named_task import NamedTask, task_name
from headrace.plain import plain_text, shown
from headrace.queue_events import Operator
from headrace.queue_strikes import QueueStrikes
from headrace.settings import check_count, check_flag
from headrace.storage.batches import batches, moved
from headrace.storage.exports import place_behind
from headrace.storage.limits import BATCH_LIMIT
from headrace.storage.values import End
from headrace.views.cancelled import CancelReport
from headrace.views.jobs import JobSummary
from headrace.views.outcomes import ExportedJob, JobOutcome

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


class QueueJobs(QueueStrikes):
    """The jobs of a queue: a part of `Queue`.

    Args:
        name: the queue's.
        storage: returns what it is looked at and steered through.
        decode: reads arguments and results as plain data.
        clock: the time where the storage is, as far as it can be told without asking it.

    Raises:
        InvalidOption: the name is not valid.
    """

    def __init__(
        self,
        name: str,
        storage: Callable[[], Operator],
        *,
        decode: Callable[[bytes], Any] = decode_json,
        clock: WallClock = wall_clock,
    ) -> None:
        super().__init__(name, storage)
        self._decode = decode
        self._clock = clock

    async def jobs(
        self,
        state: JobState | str,
        *,
        task: NamedTask | str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[JobSummary]:
        """Yield the jobs in ``state``, page by page, without arguments and results.

        Args:
            state: one of `JobState`.
            task: only jobs of this task, itself or its name.
            limit: at most this many, None for all. Jobs that move meanwhile may be missed or
                repeated.
        """
        wanted = check_state(state)
        name = None if task is None else task_name(task)
        left = None if limit is None else check_count(limit, name="limit", most=2**62, least=0)
        cursor = ""
        while True:
            page = await self._storage().list_jobs(
                self.name, wanted, cursor=cursor, limit=BATCH_LIMIT
            )
            for row in page.rows:
                if name is None or row.task == name:
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

    async def redrive(
        self, *job_ids: str, task: NamedTask | str | None = None, all_jobs: bool = False
    ) -> int:
        """Queue dead letters again, with counts and error history reset; return how many were.

        Say which: ids, or ``task=`` for those of a task, or ``all_jobs=True``.

        Raises:
            InvalidOption: none or several of them are said, or an id is not valid.
        """
        ids = await self._chosen(JobState.FAILED, job_ids, task, all_jobs=all_jobs)
        done = 0
        for batch in moved(ids):
            done += await self._storage().redrive(self.name, batch)
        return done

    async def cancel(
        self,
        *job_ids: str,
        task: NamedTask | str | None = None,
        all_jobs: bool = False,
        states: Iterable[JobState | str] | None = None,
        older_than: Duration | None = None,
        limit: int | None = None,
        dry_run: bool = False,
    ) -> CancelReport:
        """Cancel many jobs: waiting ones never start, active ones are asked to stop.

        Say which as for `redrive`: what is there when it starts, not what comes meanwhile. A job
        that goes back to wait just then may be missed. Repeating is safe, also after an error, and
        goes on with what is left. 500 share a call; each that is answered is done, for good,
        whether a worker runs or not.

        Args:
            *job_ids: of any number of jobs, in whatever state; the rest is not said then.
            task: those of this task, itself or its name.
            all_jobs: all of the queue.
            states: only those in one of these; default: all in which a job has not ended. What
                follows an active job under its id is ``blocked``; it goes with that one, or alone
                where only that is cancelled. Jobs in other states are spared, also if they have
                just gone on to one.
            older_than: only those that were enqueued longer ago than this, seconds or a
                `timedelta`, by this machine's clock; default: of any age.
            limit: at most so many, 1 or more; default: all.
            dry_run: change nothing, and return how many there are.

        Raises:
            InvalidOption: none or several of ids, ``task`` and ``all_jobs`` are said, an option
                goes with ids, or a value is out of bounds.
            StorageError: its ``report`` says what is done.
        """
        if job_ids and (states, older_than, limit) != (None, None, None):
            raise InvalidOption("states, older_than and limit go with task or all_jobs, not ids")
        among = cancel_filter(states=states, older_than=older_than, limit=limit, clock=self._clock)
        is_dry = check_flag(dry_run, name="dry_run")
        chosen: list[tuple[JobState | None, str]] = []
        if check_which(job_ids, task, all_jobs=all_jobs):
            chosen += ((None, job_id) for job_id in checked_ids(job_ids))
        else:
            chosen += await among.choose(partial(self.jobs, task=task))
        if is_dry:
            return CancelReport.of(self.name, len(chosen), {})
        return await cancel_jobs(self._storage(), self.name, chosen, among)

    async def purge(
        self,
        state: JobState | str,
        *job_ids: str,
        task: NamedTask | str | None = None,
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
        for batch in moved(ids):
            done += await self._storage().purge(self.name, wanted, batch)
        return done

    async def _chosen(
        self,
        state: JobState,
        job_ids: Sequence[str],
        task: NamedTask | str | None,
        *,
        all_jobs: bool,
    ) -> list[str]:
        if check_which(job_ids, task, all_jobs=all_jobs):
            return checked_ids(job_ids)
        return [row.id async for row in self.jobs(state, task=task)]


def check_which(job_ids: Sequence[str], task: NamedTask | str | None, *, all_jobs: bool) -> bool:
    """Return whether ids are said; raise `InvalidOption` unless it is that, a task or all."""
    if sum((bool(job_ids), task is not None, all_jobs)) != 1:
        raise InvalidOption("say which jobs: ids, task=..., or all_jobs=True, one of them")
    return bool(job_ids)


def checked_ids(job_ids: Sequence[str]) -> list[str]:
    """Return the ids as plain text, or raise `InvalidOption`."""
    return [check_text(job_id, what="job id") for job_id in job_ids]


def check_state(state: JobState | str) -> JobState:
    """Return the state of that name, or raise `InvalidOption`."""
    try:
        return JobState(plain_text(state) or "")
    except ValueError:
        known = ", ".join(JobState)
        raise InvalidOption(f"state {shown(state)} is not known: use one of {known}") from None
