"""The port: what every storage does, in four roles, so that each caller asks for the least.

These rules hold for every verb; `headrace.testing.contract` tests them.

- **One step.** A call is atomic: others see all that it does or nothing, and so does who looks
  after a crash. It concerns one queue of the storage's tenant. No other tenant's data are read,
  changed or counted.
- **Bounded.** Callers pass at most `BATCH_LIMIT` items and `BATCH_LIMIT_BYTES` of payloads,
  results or output: a payload or result at most 1 MiB, a piece of output 64 KiB. A verb that has
  more to do than its bound says so, and is called again.
- **Checked values.** Names, ids and options were checked before they come here: queues and lanes
  match ``[A-Za-z0-9][A-Za-z0-9._-]{0,99}``; job ids and task names are 1 to 256 bytes of UTF-8
  without control characters, and a progress text has none either. Payloads, options, results and
  pieces of output are bytes that come back as they went in.
- **One clock.** The storage's own wall clock, read once a call, is the only one: callers' clocks
  differ. What is due at an instant is due from that millisecond on, and no earlier. It may be
  stepped, so whether a worker lives is never told by it.
- **One owner.** Whatever is written about an attempt shows its claim. It is current if epoch and
  nonce both equal the record's and the job is active. Any other changes nothing.
- **Lanes.** A job waits in the lane of its queue that says which kind of slot it needs: `default`,
  `process`, or another name. Order, claims, tokens and waiters are those of one lane.
- **One end.** The step that makes a state terminal also writes result or error, counters, event
  and retention, and tells the job's channels. No later call changes it, but for a redrive, a new
  job with the id of a failed or cancelled one, a purge, and the end of the retention.
- **Retention.** A completed or cancelled record lives for its ``keep_ms``, a dead letter for the
  queue's ``dead_letter_ttl_ms``; of each kind the oldest go when there are more than the queue
  keeps. With 0 nothing stays. A record whose time is over is as if it had never been, and its id
  is free again. A record that is not terminal never ends by time or number.
- **Tokens are hints.** Whatever makes a job ready, or brings the queue's first due time forward,
  leaves a wake-up token in the job's lane, at most one, for the waiters of that lane. What resumes
  a queue or ends an incarnation leaves one in every lane that has ready jobs, and in that of the
  next due one. A token may be lost or doubled; workers claim every two seconds besides.
- **Repetition.** A call with a `CallId` may come again with the same batch, because its answer was
  lost: it changes nothing and answers the same. A number that is too old to be remembered raises
  `StaleCall` and changes nothing. Other verbs do no harm when they are called twice.
- **Errors.** `StorageUnavailable`: not done, try again. `ReplyLost`: perhaps done. `StorageFull`:
  no room, nothing was written; only `enqueue`, `redrive` and `report` may raise it, so that a full
  storage drains. `StorageRefused`: it can't be used as it is. `StorageFault`: anything else.
  No exception of a driver comes out. A caller may cancel a call: it is done or not, and the
  storage works on.

A storage serves one event loop; only a `Beater` is used in another thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from headrace.job import (
    CancelOutcome,
    Claim,
    EnqueueOutcome,
    ErrorInfo,
    Job,
    JobRecord,
    JobState,
)
from headrace.storage.connections import Beater, Channel, Waiter
from headrace.storage.values import (
    OUTPUT_PAGE_LIMIT,
    Beat,
    CallId,
    ClaimReply,
    End,
    EventPage,
    Finding,
    IncarnationInfo,
    OutputPage,
    Page,
    QueueSettings,
    QueueStats,
    Repaired,
    Report,
    Settlement,
)

__all__ = [
    "Beater",
    "Channel",
    "Consumer",
    "Inspector",
    "Maintenance",
    "Producer",
    "Storage",
    "Waiter",
]


class Producer(Protocol):
    """What brings jobs in and asks how they end."""

    async def enqueue(
        self, queue: str, jobs: Sequence[Job], *, call: CallId
    ) -> list[EnqueueOutcome]:
        """Store jobs, all or none, and return an outcome for each, in order.

        An id whose job has not ended is a ``duplicate`` and one that is kept completed is
        ``completed``: neither is changed, but a duplicate's ``reply_to`` is added to the job's
        channels, and its record and result are kept for a minute at least once it has completed or
        been cancelled, whatever the first caller asked for. A failed or cancelled record makes room
        for the new job, with all that belongs to it. The second of an id inside one batch is a
        duplicate of the first.

        A job whose ``delay_ms``, else ``run_at_ms``, lies ahead is ``scheduled``; any other goes to
        the tail of its lane and tier and is ``queued``. Jobs of one call stand in its order, those
        of a later call behind them. With ``lane`` "" it is that which a worker has registered last
        for the task, `default` if none has, and stays so. ``is_new_id`` promises that the id can't
        be there, and ``is_plain`` that nothing after it differs from its default: both may be
        ignored.

        A client has two calls in flight at most, which may arrive in either order, so the last two
        numbers of a client and queue are remembered, for ten minutes.

        Raises:
            StaleCall: a call two or more numbers later has come already.
            StorageFull: there is no room; nothing was stored.
        """

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> list[CancelOutcome]:
        """Cancel jobs and return an outcome for each id, in order.

        A waiting job ends ``cancelled`` in this step and never starts. An active one is
        ``requested``: it is marked, the owner's beats name it, and whatever would send it back to
        wait (retry, release, stall, put-back, retire, reap) ends it cancelled instead; an attempt
        that completes or fails first keeps that outcome. At every such request the owner's channel,
        if it has one, is told an `End` with ``state`` active. A cancelled job is ``cancelled``
        again, another ended one ``finished``, an unknown id ``not_found``: these change nothing.
        """

    async def watch(self, queue: str, job_ids: Sequence[str], *, channel: str) -> list[End]:
        """Add a channel to those told of jobs' ends, and return how each job stands, in order.

        Both happen in one step, so that no end falls between. A job that has expired before its
        first start ends here. A job that has ended, or is unknown (``state`` None), is not watched.
        A result of more than 64 KiB is left out (``is_cut``), here and in messages.

        A job has 64 channels at most; others are passed over. Channels outlive retries, and hear
        of one end, or of a purge as of an unknown job. A redriven job has none.

        Args:
            queue: the jobs' queue.
            job_ids: at most `BATCH_LIMIT`.
            channel: of an `Channel`; "": only look.
        """

    def open_channel(self) -> Channel:
        """Return a new channel; it connects on first use."""


class Consumer(Protocol):
    """What runs jobs.

    An incarnation is one start of a worker on one queue; its name is never used again, and holds no
    ``/``. It is unknown before `register` and after `retire` or `Maintenance.forget`, and condemned
    from `Maintenance.reap` on: then it can do nothing more.
    """

    async def register(self, queue: str, worker: IncarnationInfo) -> None:
        """Make an incarnation known, with a beat count of 0.

        ``worker.tasks`` are published for producers that know a task by name only: the lane that
        was said last holds, also after the incarnation has ended. ``worker.channel``, a `Channel`'s
        or "", is told when one of its jobs is asked to stop.

        Raises:
            StorageRefused: a newer release has changed how this queue is stored.
        """

    async def claim(
        self, queue: str, *, call: CallId, nonce: str, slots: Mapping[str, int]
    ) -> ClaimReply:
        """Make due jobs ready, then give up to ``slots[lane]`` jobs of each lane to an incarnation.

        In order: up to 500 due jobs go to the tails of their tiers, by their due time, and those of
        the same due time that have not started yet in the order of their creation. Ready jobs
        are taken tier 9 first to 0 last, each from its head; jobs of other lanes are passed. One
        that has expired (``expires`` reached before its first start) becomes a dead letter
        ``expired`` instead; one that has ever been taken does not expire. It takes at most
        `BATCH_LIMIT`, and none after the one that makes `BATCH_LIMIT_BYTES` of payloads full. Of
        jobs that one more stall would end, an incarnation has one at a time: others go to the tail
        of their tier, so that a job that kills its workers takes no other along.

        A job that is taken is active, its epoch one higher, its nonce ``nonce``. ``has_more``
        says that ready jobs were left behind in a named lane which the caller should come for at
        once: not in one of which it took nothing although it had room, since those are for others.
        A token is left in each such lane, and without any slot in every lane that has ready jobs,
        for the next waiter. It takes bounded work to pass what cancelled jobs left
        behind: a reply may bring nothing and ``has_more``.

        A paused queue gives nothing and promotes nothing. For an unknown or condemned incarnation
        it changes nothing and answers ``is_gone``. A repeated call brings the jobs that it claimed
        and that the incarnation still owns by this nonce, in any order, and takes no others.

        Args:
            queue: the queue.
            call: ``client`` is the incarnation; its last number is remembered.
            nonce: the incarnation, ``/`` and a random part; a new one a call.
            slots: free slots by lane; a lane that is not named gets nothing.

        Raises:
            StaleCall: a later claim of this incarnation has come already.
        """

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        """Write outcomes of attempts, each for itself, and return which claims were current.

        False: another claim owns the job, or none; nothing changed. True too: the job has ended
        under this very claim, whatever its outcome, or nothing is kept of it; the first outcome
        stands. A claim is of no use to another incarnation than its own. None: the incarnation is
        unknown or condemned, and nothing changed.

        ``Completed`` keeps the result for its TTL, at most as long as the record. ``Retried``
        counts an attempt, adds to the error history (the last ten are kept) and waits as
        ``retrying``. ``Failed`` counts one if it ``is_attempt`` and makes a dead letter.
        ``Cancelled`` ends the job; its reason, ``could_not_stop`` for a handler that goes on, is
        kept with the record and told with the end. ``Stalled`` counts a stall and adds to the
        history, as `Maintenance.reap` does: the job goes to the head of its tier, or with
        ``max_stalls`` becomes a dead letter ``stalled``. ``PutBack`` waits as ``scheduled``, free
        of charge; more than 24 hours after the first of a row it makes a dead letter
        ``unknown_task``.

        Args:
            queue: the queue.
            settlements: at most `BATCH_LIMIT`.
            call: ``client`` is the incarnation; its last number and answer are remembered.

        Raises:
            StaleCall: a later settle of this incarnation has come already.
        """

    async def put_back(
        self, queue: str, incarnation: str, jobs: Sequence[tuple[str, Claim]]
    ) -> None:
        """Return claimed jobs to the heads of their tiers, in this order; pass other claims over.

        Neither an attempt nor a stall is counted; the epoch stays, so that the next start has
        another. A job that was asked to stop ends cancelled.
        """

    async def report(self, queue: str, reports: Sequence[Report]) -> list[bool]:
        """Store progress and output of running attempts, and return which claims were current.

        False: nothing changed. Progress replaces what was said before, and leaves an event
        ``progress`` unless it is the same. Pieces of output come in rising numbers: one that is not
        behind the last is there already, and is passed. So a repetition changes nothing. The first
        piece of an attempt deletes those of the one before; of each attempt the newest 1,000 are
        kept. Nothing of it changes a job's state, place or claim.

        Args:
            queue: the queue.
            reports: at most `BATCH_LIMIT`, with at most 1,000 pieces of output together.

        Raises:
            StorageFull: there is no room; nothing was written.
        """

    async def held(self, queue: str, incarnation: str) -> list[tuple[str, Claim]]:
        """Return which jobs an incarnation owns, in any order, with their claims; none if unknown.

        A worker compares it with what it runs, and puts the rest back.
        """

    async def retire(self, queue: str, incarnation: str) -> int:
        """Put back up to 500 of the jobs that an incarnation owns; forget it when none are left.

        A token that it holds is passed on. It is no error if the incarnation is unknown.

        Returns:
            How many jobs are left; call again until it is 0.
        """

    def open_waiter(self, queue: str, incarnation: str, lane: str) -> Waiter:
        """Return what blocks for this incarnation on one lane; it connects on first use."""

    def open_beater(self, *, timeout_s: float) -> Beater:
        """Return the synchronous side for a thread; one of its calls takes at most ``timeout_s``.

        It may be called, and its `Beater` used, in another thread than the storage's.
        """


class Maintenance(Protocol):
    """What keeps a queue in order when others died. Any worker may call these at any time."""

    async def beats(self, queue: str) -> dict[str, Beat]:
        """Return the beat count and lease of every incarnation that is known or condemned."""

    async def reap(
        self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo
    ) -> int | None:
        """Condemn an incarnation whose beat count still is ``seen``, and take its jobs back.

        The count decides in this step: a beat in between wins, and nothing changes. A condemned one
        stays so, whatever its count was, and is listed until `forget`.

        Up to 200 of its jobs a call each get one stall and ``error`` in their history, with the
        storage's time and the attempt. One that was asked to stop ends cancelled, one with
        ``max_stalls`` becomes a dead letter ``stalled``, any other goes to the head of its tier. A
        token that the incarnation holds is passed on.

        Returns:
            How many jobs are left for another call; None: it has beaten, or is unknown.
        """

    async def forget(self, queue: str, incarnation: str) -> bool:
        """Delete a condemned incarnation with all that is kept of it; whether it is gone.

        False, and nothing changed: it is not condemned, or owns jobs. True also for an unknown one.
        """

    async def prune(self, queue: str, *, cursor: str = "") -> str:
        """Delete up to 200 ended records of each kind that are over their time, and old calls.

        `Inspector.stats` counts ended records until they are pruned. It never touches a record that
        is in time or not terminal, nor a new job with the id of an old one.

        Args:
            queue: the queue; it need not be there.
            cursor: what the last call returned, "" for the first.

        Returns:
            The cursor for the next call, "" at the end.
        """

    async def repair(
        self,
        queue: str,
        *,
        cursor: str = "",
        lanes: Collection[str] = (),
        is_full: bool = False,
    ) -> Repaired:
        """Bring what is derived from records back to what is there.

        Where records were lost behind the storage's back, places that stand for no job go, with
        what lies beside the record, and counts are those of the jobs that are there. A queue in
        order is not changed. A call looks at 500 places at most. A count is set by a call that has
        seen all that it counts, or at the end of a walk during which no job moved.

        One walk of a queue goes on at a time, and rests for five seconds; a call that would begin
        another one meanwhile does nothing. A walk looks at all active jobs, and at delayed and
        ready ones where there are more or fewer places than their count says: those of lost records
        come to light when their time or turn comes.

        Args:
            queue: the queue; it need not be there.
            cursor: what the last call returned, "" for the first.
            lanes: those that the caller knows of.
            is_full: with the first call, begin now and look at all that is stored: a queued or
                delayed job that has lost its place waits again, an active one goes back to its
                worker's, or to the head of its tier where nobody knows that worker.
        """


class Inspector(Protocol):
    """What operators see and steer. Reading changes nothing, and knows queues that never were."""

    async def queues(self) -> list[str]:
        """Return the queues that ever had a job or a worker, sorted."""

    async def get(self, queue: str, job_id: str) -> JobRecord | None:
        """Return all that is kept of a job, None if nothing; errors newest first."""

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

    async def list_jobs(
        self, queue: str, state: JobState, *, cursor: str = "", limit: int = 50
    ) -> Page:
        """Return a page of the jobs in a state.

        Queued ones come lane by lane, the default lane first and the others by name, and in each in
        the order of their claims; delayed ones by their due time, ended ones newest first, active
        ones in any. A job that stays where it is is listed
        once, however many others come and go; one that moves may be missed or repeated.

        Args:
            queue: the queue; it need not be there.
            state: which state.
            cursor: what the last page said, "" for the first.
            limit: most rows, from 1 on.

        Raises:
            InvalidOption: the cursor is not one of a page of this state.
        """

    async def stats(self, queue: str) -> QueueStats:
        """Return counts now, and what was done in the last 50 to 60 seconds (``window_ms``).

        A histogram's bounds are at most a tenth above what was measured.
        """

    async def workers(self, queue: str) -> list[IncarnationInfo]:
        """Return the incarnations that are known or condemned; the latter have lost their info."""

    async def events(self, queue: str, *, after: str = "0", limit: int = 100) -> EventPage:
        """Return events in the order in which they came: every transition of a job, and progress.

        They are kept in entries of up to 20 events of one call. At least the number of entries that
        the queue's settings say is kept, and not many times as many.

        Args:
            queue: the queue; it need not be there.
            after: a ``stream_id``: read on behind its entry; "0": from the first that is kept.
            limit: most entries.
        """

    async def pause(self, queue: str) -> None:
        """Let claims bring nothing. Active jobs go on, and jobs are taken in."""

    async def resume(self, queue: str) -> None:
        """Let claims bring jobs again, and leave tokens."""

    async def configure(self, queue: str, settings: QueueSettings) -> None:
        """Set what the queue keeps of ended jobs.

        A lowered number is reached in steps: each call that ends jobs deletes at most 100 records
        more than it ends.
        """

    async def redrive(self, queue: str, job_ids: Sequence[str]) -> int:
        """Send dead letters to the tails of their tiers, in this order; return how many were.

        Attempts, stalls, error history, expiry, reason, the request to stop and channels are gone;
        the epoch stays, and so does what the last attempt said of itself. Ids of other jobs are
        passed over.

        Raises:
            StorageFull: there is no room; nothing changed.
        """

    async def purge(self, queue: str, state: JobState, job_ids: Sequence[str]) -> int:
        """Delete jobs that are in ``state``, with all that belongs to them; return how many.

        Jobs that have moved on are spared, and active ones always. Channels of jobs that had not
        ended are told, with ``state`` None.
        """

    async def check(self) -> None:
        """Connect and see that the storage can be used as it is.

        Raises:
            StorageUnavailable: it can't be reached.
            StorageRefused: it can't be used, and why.
        """

    async def diagnose(self) -> list[Finding]:
        """Look the storage over, for ``headrace doctor``; an empty list if there is nothing to say.

        It raises only where nothing could be looked at.
        """

    async def tidy(self) -> list[str]:
        """Remove code that other releases left in the storage; return its names, mostly none.

        A worker of such a release loads its own again when it needs it.
        """


class Storage(Producer, Consumer, Maintenance, Inspector, Protocol):
    """All four roles over one connection string. Making one does no I/O.

    Attributes:
        tenant: whose queues these are.
    """

    tenant: str

    async def aclose(self) -> None:
        """Close every connection. Later calls connect again; a second call is no error."""
