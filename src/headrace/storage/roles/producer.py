"""The role of what brings jobs in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from headrace.job import CancelOutcome, JobState, Verdict
from headrace.request import JobRequest
from headrace.storage.connections import Channel
from headrace.storage.values import CallId, End
from headrace.storage.verbs import writes


class Producer(Protocol):
    """What brings jobs in and asks how they end."""

    @writes(grows=True)
    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        """Store jobs, all or none, and return an outcome for each, in order.

        An id whose job has not ended is a ``duplicate`` and one that is kept completed is
        ``completed``: neither is changed, but a duplicate's ``channel`` is added to the job's
        channels, and its record and result are kept for a minute at least once it has completed or
        been cancelled, whatever the first caller asked for. A failed or cancelled record makes room
        for the new job, with all that belongs to it, unless the job's ``replaces_ended`` is False:
        then it stands, and the job is a ``duplicate``. The second of an id inside one batch is a
        duplicate of the first.

        A job with an ``idempotency_key`` that is known in the queue stores nothing: its verdict is
        a `FirstUse` with the id of the first job that was stored with the key, whatever has become
        of that. A key is known for the ``idempotency_ttl_ms`` of the first, from then on; it is
        looked for before the id, and a job that changes nothing because of its id leaves none.

        A job whose ``delay_ms``, else ``run_at_ms``, lies ahead is ``scheduled``; any other goes to
        the tail of its lane and tier and is ``queued``. Jobs of one call stand in its order, those
        of a later call behind them. With ``lane`` "" it is that which a worker has registered last
        for the task, `default` if none has, and stays so. ``is_new_id`` promises that the id can't
        be there, and ``is_plain`` that nothing after it differs from its default: both may be
        ignored.

        A job with an ``update`` meets the one of its id so; its ``replaces_ended`` is True:

        - It has ended: it makes room, also a completed one.
        - It waits: it is changed in place by the update's parts, and the job is ``updated``. Data
          are task, payload, lane, tier, ``keep_ms`` and the first part of ``options``; retry is
          ``max_stalls`` and the second part. A time is compared with the present one, and none or
          a past one is now. With a new time, which brings its expiry, the job is ``scheduled`` if
          it lies ahead, and else ``queued`` at the tail. A job that was queued and still is keeps
          its place, unless its lane or tier is another: then it goes to the tail of that. One that
          keeps its time keeps its state. The counts that may be reset are failures and stalls,
          with the error history and ``put_back``; never the starts.
        - It is active: a successor is stored, ``blocked``, and the job is ``updated``. That begins
          as a copy of the active one's data and retry, with nothing counted and no time, and is
          changed by the update's parts: it takes the time unless the update never sets it.
          One that is there already is changed likewise, its time by comparison where it has taken
          one, and what all the updates change is remembered together. There is one of an id at
          most.

        The step that ends an active job makes it room for its successor, which is ``queued`` at the
        tail, or ``scheduled`` if its time lies ahead, as a new job; nothing is kept of the ended
        one but what has been told of it. The step that lets an active job wait again changes it by
        its successor, once its own outcome is counted, as a waiting one: by the parts that the
        updates have named together, its time by comparison with the one that it would wait for.
        Then there is no successor. One counts as enqueued once it has entered, and as nothing
        before. The ``channel`` of a job that is ``updated`` is added to those of the one that it
        changes, the waiting one or the successor, whose record and result are kept for a minute at
        least.

        A job with ``gates`` that finds no room is ``blocked`` where it would be ``queued``, see
        `Limiter`. Where the queue's ``max_length`` is set, jobs that would bring those that are
        queued, blocked, scheduled or retrying over it are refused with all of their call.

        A client has two calls in flight at most, which may arrive in either order, so the last two
        numbers of a client and queue are remembered, for ten minutes.

        Raises:
            StaleCall: a call two or more numbers later has come already.
            StorageFull: there is no room; nothing was stored.
            QueueFull: the queue's ``max_length`` would be passed; nothing was stored.
        """

    @writes()
    async def cancel(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        only_next: bool = False,
        states: Collection[JobState] = (),
    ) -> list[CancelOutcome]:
        """Cancel jobs and return an outcome for each id, in order.

        A waiting job ends ``cancelled`` in this step and never starts. An active one is
        ``requested``: it is marked, the owner's beats name it, and whatever would send it back to
        wait (retry, release, stall, put-back, retire, reap) ends it cancelled instead; an attempt
        that completes or fails first keeps that outcome. At every such request the owner's channel,
        if it has one, is told an `End` with ``state`` active. A cancelled job is ``cancelled``
        again, another ended one ``finished``, an unknown id ``not_found``: these change nothing.

        The successor of an active job goes with it, and its channels are told an `End` that is
        cancelled, with the reason ``next``, by which who waits in one process for both can tell
        them apart. With ``only_next`` it goes alone: the id is ``cancelled``, and ``not_found``
        where there is none. Nothing is kept of it.

        With ``states``, which go without ``only_next``, jobs that have not ended and are in none of
        them are spared: ``not_found``. A successor is ``blocked`` and goes alone where that is one
        of them and its active one is spared; else it stays or goes with that one.
        """

    @writes(is_durable=False, repeats=True)
    async def watch(self, queue: str, job_ids: Sequence[str], *, channel: str) -> list[End]:
        """Add a channel to those told of jobs' ends, and return how each job stands, in order.

        Both happen in one step, so that no end falls between. A job that has expired before its
        first start ends here. A job that has ended, or is unknown (``state`` None), is not watched.
        A result of more than 64 KiB is left out (``is_cut``), here and in messages.

        A job has 64 channels at most; others are passed over. Channels outlive retries, and hear
        of one end, or of a purge as of an unknown job. A redriven job has none. Of an active job
        with a successor this tells how the active one stands, and adds the channel to the
        successor's.

        Args:
            queue: the jobs' queue.
            job_ids: at most `BATCH_LIMIT`.
            channel: of a `Channel`; "": only look.
        """

    def open_channel(self) -> Channel:
        """Return a new channel; it connects on first use."""
