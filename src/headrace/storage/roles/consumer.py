"""The role of what runs jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.job import Claim
from headrace.storage.connections import Beater, Waiter
from headrace.storage.incarnations import ClaimReply, IncarnationInfo, SlotsAsked
from headrace.storage.values import CallId, Report, Settlement
from headrace.storage.verbs import reads, writes


class Consumer(Protocol):
    """What runs jobs.

    An incarnation is one start of a worker on one queue; its name is never used again, and holds no
    ``/``. It is unknown before `register` and after `retire` or `Maintenance.forget`, and condemned
    from `Maintenance.reap` on: then it can do nothing more.
    """

    @writes(is_durable=False)
    async def register(self, queue: str, worker: IncarnationInfo) -> None:
        """Make an incarnation known, with a beat count of 0.

        ``worker.limits`` are declared, see `Limiter`; changed ones are followed as
        `Limiter.set_limit` does.

        ``worker.tasks`` are published for producers that know a task by name only: the lane that
        was said last holds, also after the incarnation has ended. ``worker.channel``, a `Channel`'s
        or "", is told when one of its jobs is asked to stop. It leaves an event, unless it is known
        and not condemned.

        Raises:
            StorageRefused: a newer release has changed how this queue is stored.
        """

    @writes(is_durable=False)
    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
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

        Where the queue's ``max_active`` is set, it takes no more jobs than are missing to that, and
        ``has_more`` says nothing of those that are left for want of it: whatever ends an attempt
        leaves a token in each lane that has ready jobs. What falls due are also gates, see
        `Limiter`, which are opened behind the due jobs, and of which ``next_due_ms`` tells too.

        Where the queue's ``aging`` is n, and n - 1 jobs were taken since the last of a lower tier,
        by all incarnations, the next is the head of another tier than the best that waits in the
        lane: of that whose head is ready longest, and of these of the better one. Where no other
        tier waits there the best goes on, and the next that does is due.

        A job takes `Job.slots` of its lane. One that needs more than are left, but no more than the
        caller has in all, stays where it is: nothing behind it in its lane is taken, ``awaited``
        says how many it needs, and a token is left there for who has them. The caller does well to
        come again when it has them, and not before. One that needs more than the caller has in all
        is passed over and keeps its place; a call passes over at most `SLOTS_LOOKS` of a lane.

        Jobs that a strike meets by their task are not taken, see `Striker`; ``strikes`` tells of
        those that say what arguments are to be.

        A paused queue gives nothing and promotes nothing. For an unknown or condemned incarnation
        it changes nothing and answers ``is_gone``. A repeated call brings the jobs that it claimed
        and that the incarnation still owns by this nonce, in any order, and takes no others.

        Args:
            queue: the queue.
            call: ``client`` is the incarnation; its last number is remembered.
            nonce: the incarnation, ``/`` and a random part; a new one a call.
            slots: free slots by lane, and how many the caller has there in all; a lane that is not
                named gets nothing.

        Raises:
            StaleCall: a later claim of this incarnation has come already.
        """

    @writes()
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
        ``retrying``. ``Snoozed`` waits as ``scheduled``, free of charge; its reason is told by its
        event. ``Failed`` counts one if it ``is_attempt`` and makes a dead letter.
        ``Cancelled`` ends the job; its reason, ``could_not_stop`` for a handler that goes on, is
        kept with the record and told with the end. ``Stalled`` counts a stall and adds to the
        history, as `Maintenance.reap` does: the job goes to the head of its tier, or with
        ``max_stalls`` becomes a dead letter ``stalled``. ``PutBack`` waits as ``scheduled``, free
        of charge, and its error is ``JobRecord.put_back``; more than its limit after the first of a
        row it makes a dead letter of its reason. A handler that has run, and a stall, end the row.
        ``Struck`` is ``blocked`` in the line of its strike, free of charge, before all that stand
        in line by then and behind those that were struck so before; if that strike stands no more,
        the job goes to the head of its tier.

        Args:
            queue: the queue.
            settlements: at most `BATCH_LIMIT`.
            call: ``client`` is the incarnation; its last number and answer are remembered.

        Raises:
            StaleCall: a later settle of this incarnation has come already.
        """

    @writes()
    async def put_back(
        self, queue: str, incarnation: str, jobs: Sequence[tuple[str, Claim]]
    ) -> None:
        """Return claimed jobs to the heads of their tiers, in this order; pass other claims over.

        Neither an attempt nor a stall is counted; the epoch stays, so that the next start has
        another. A job that was asked to stop ends cancelled.
        """

    @writes(grows=True, is_durable=False)
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

    @reads
    async def held(self, queue: str, incarnation: str) -> list[tuple[str, Claim]]:
        """Return which jobs an incarnation owns, in any order, with their claims; none if unknown.

        A worker compares it with what it runs, and puts the rest back.
        """

    @writes()
    async def retire(self, queue: str, incarnation: str) -> int:
        """Put back up to 200 of the jobs that an incarnation owns; forget it when none are left.

        A token that it holds is passed on. The call that forgets it leaves an event. It is no error
        if the incarnation is unknown.

        Returns:
            How many jobs are left; call again until it is 0.
        """

    def open_waiter(self, queue: str, incarnation: str, lane: str) -> Waiter:
        """Return what blocks for this incarnation on one lane; it connects on first use."""

    def open_beater(self, *, timeout_s: float) -> Beater:
        """Return the synchronous side for a thread; one of its calls takes at most ``timeout_s``.

        It may be called, and its `Beater` used, in another thread than the storage's.
        """
