"""The role of what looks at queues and jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.job import JobRecord, JobState
from headrace.storage.exports import ExportPage
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.limits import EXPORT_PAGE_LIMIT, OUTPUT_PAGE_LIMIT
from headrace.storage.queues import QueueCounts
from headrace.storage.readers import ReaderInfo
from headrace.storage.situation import Situation
from headrace.storage.values import End, EventPage, OutputPage, Page
from headrace.storage.verbs import reads


class Inspector(Protocol):
    """What operators see. Looking changes nothing, and knows queues that never were."""

    @reads
    async def queues(self) -> list[str]:
        """Return the queues that ever had a job or a worker or were paused, sorted.

        `Admin.delete_queue` takes one off.
        """

    @reads
    async def get(self, queue: str, job_id: str) -> JobRecord | None:
        """Return all that is kept of a job, None if nothing; errors newest first."""

    @reads
    async def why(self, queue: str, job_id: str) -> Situation | None:
        """Return how a job stands and what may keep it from running, None where there is none.

        All of it was so at one instant, and it is a short call whatever is in the queue: it looks
        at `HOLDERS_LOOKS` jobs that run and as many that are ready, at `BEFORE_LOOKS` entries of a
        line, and at `WHY_BEATS` workers. What is more is told in part, and that says so: see
        `Situation`.

        Args:
            queue: the queue; it need not be there.
            job_id: the job. One that is blocked by the active one of its id is told with that.
        """

    @reads
    async def outcomes(self, queue: str, job_ids: Sequence[str]) -> list[End]:
        """Return how jobs stand, one for each id and in their order; ids may repeat.

        It says what `Producer.watch` does, for less, and of a cancelled job the reason too: a
        result is cut where it is over 64 KiB, and the error is a dead letter's last. Nobody is
        told of later ends. A waiting job whose time to start is over reads as it stands.

        Args:
            queue: the queue; it need not be there.
            job_ids: at most `BATCH_LIMIT`.
        """

    @reads
    async def export(
        self,
        queue: str,
        state: JobState,
        *,
        cursor: str = "",
        limit: int = EXPORT_PAGE_LIMIT,
    ) -> ExportPage:
        """Return a page of the jobs that have ended in a state, with all that is kept of each.

        Those that ended first come first, of one millisecond by their ids as bytes. Jobs that ended
        in this very millisecond wait for a later call, so that none is missed by who goes on from
        the last cursor, however much later: each job comes once for each of its ends, unless it was
        purged, redriven, replaced or pruned before its page, or the clock was set back meanwhile. A
        result that is no longer kept is None.

        Args:
            queue: the queue; it need not be there.
            state: ``completed``, ``failed`` or ``cancelled``.
            cursor: what a page of the same queue and state said, "" for the first. That behind one
                of its jobs has the state, the queue, when the job ended in milliseconds and its id,
                with colons between them: `cursor_behind` returns it.
            limit: most jobs, 1 to `EXPORT_PAGE_LIMIT`; more is taken for that. Together they have
                `BATCH_LIMIT_BYTES` at most, unless it is one.

        Raises:
            InvalidOption: the state is no terminal one, or the cursor is not one of such a page.
        """

    @reads
    async def output(
        self, queue: str, job_id: str, *, after: str = "", limit: int = OUTPUT_PAGE_LIMIT
    ) -> OutputPage:
        """Return pieces of a job's output behind a cursor, in order.

        There are those of the newest attempt that had any: they outlive it, and a retry and a
        redrive, until the next one has some. They are kept for an hour after the last of them at
        least, but no longer than the record; there are none of an unknown job. A reader that goes
        on while a new attempt begins reads that one's pieces from the first.

        Args:
            queue: the queue; it need not be there.
            job_id: the job.
            after: what the last page said, "" for the first. A page without pieces is no end while
                the job has not ended: ask again with its cursor.
            limit: most pieces, 1 to `OUTPUT_PAGE_LIMIT`; more is taken for that.

        Raises:
            InvalidOption: the cursor is not one of a page of output.
        """

    @reads
    async def list_jobs(
        self, queue: str, state: JobState, *, cursor: str = "", limit: int = 50
    ) -> Page:
        """Return a page of the jobs in a state.

        Queued ones come lane by lane, the default lane first and the others by name, and in each in
        the order of their claims; delayed ones by their due time, ended ones newest first, blocked
        ones oldest first, active ones in any. A job that stays where it is is listed
        once, however many others come and go; one that moves may be missed or repeated.

        Args:
            queue: the queue; it need not be there.
            state: which state.
            cursor: what the last page said, "" for the first.
            limit: most rows, from 1 on.

        Raises:
            InvalidOption: the cursor is not one of a page of this state.
        """

    @reads
    async def stats(self, queue: str) -> QueueCounts:
        """Return counts now, and what was done in the last 50 to 60 seconds (``window_ms``).

        A histogram's bounds are at most a tenth above what was measured.
        """

    @reads
    async def workers(self, queue: str) -> list[IncarnationInfo]:
        """Return the incarnations that are known or condemned; the latter have lost their info."""

    @reads
    async def events(self, queue: str, *, after: str = "0", limit: int = 100) -> EventPage:
        """Return events in the order in which they came: every transition of a job, and progress.

        Incarnations that join or leave have one too. What each says, `EventRecord` tells; no text
        of it has control characters.

        They are kept in entries of up to 20 events of one call. At least the number of entries that
        the queue's settings say is kept, and not many times as many, but for those that a reader
        holds. Each has a number, one higher than that of the event before it: a gap is what was
        trimmed. Where the events were lost or the queue was deleted they begin anew with 1.

        Args:
            queue: the queue; it need not be there.
            after: a ``stream_id``: read on behind its entry; "0": from the first that is kept.
            limit: most entries.

        Raises:
            InvalidOption: that is no id of an entry.
        """

    @reads
    async def readers(self, queue: str) -> list[ReaderInfo]:
        """Return the readers that have acknowledged events, by name; `Admin.acknowledge`."""
