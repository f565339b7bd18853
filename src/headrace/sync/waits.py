"""Waits of threads for the ends of jobs: each borrows an inbox, with a slow poll behind it.

A word in an inbox may be lost, so each wait first registers, then reads how the job stands, and
does so again every few seconds and after each reconnect.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from headrace.backoff import Backoff
from headrace.errors import StorageError, WaitTimeout
from headrace.job import JobState
from headrace.outage import ClientOutage
from headrace.overdue import Seen, look, told_late
from headrace.repeat import NOT_ANSWERED, repeat_blocking
from headrace.storage.blocking import BlockingStorage
from headrace.storage.connections import Inbox
from headrace.storage.steps import at_once
from headrace.storage.values import End
from headrace.waiting import LOOK_S, POLL_S, RETRY_FOR_S, is_end, is_of_next, whole

MOST_IDLE = 8
"""Inboxes that stay open when nobody waits; each is a connection."""


class ThreadWaits:
    """All waits of one process.

    Args:
        storage: where the jobs are.
        outage: hears of each look that is not answered.
    """

    def __init__(self, storage: BlockingStorage, outage: ClientOutage) -> None:
        self._storage = storage
        self._outage = outage
        self._idle: deque[Inbox] = deque()

    @contextmanager
    def inbox(self) -> Iterator[Inbox]:
        """Lend an inbox that is subscribed, unless it can't be just now.

        Raises:
            StorageRefused: this client may not subscribe.
        """
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = self._storage.open_inbox()
        is_kept = False
        try:
            # What was left in it for an earlier wait is read; without it the poll brings the ends.
            with suppress(*NOT_ANSWERED):
                while inbox.receive(0) is not None:
                    pass
            yield inbox
            is_kept = len(self._idle) < MOST_IDLE
        finally:
            if is_kept:
                self._idle.append(inbox)
            else:
                inbox.close()

    def wait(
        self, queue: str, job_id: str, *, timeout_ms: int | None, is_update: bool = False
    ) -> End:
        """Block until a job has ended; with ``is_update`` one that may run after another of its id.

        Raises:
            WaitTimeout: it has not in time.
            StorageUnavailable, ReplyLost: the storage was away for ten seconds at the start.
            StorageRefused, StorageFault: it can't tell how the job stands.
        """
        with self.inbox() as inbox:
            left = _Time(timeout_ms)
            # However short the time-out, one look at a job that has ended is answered.
            for_s = min(RETRY_FOR_S, max(left.seconds(), LOOK_S))
            watch = partial(self._watch, inbox, queue, job_id)
            try:
                end = repeat_blocking(watch, on_pause=self._outage.waits, for_s=for_s)
            except NOT_ANSWERED as error:
                if left.seconds() > 0:
                    raise
                raise told_late(error, queue, job_id, timeout_ms=timeout_ms or 0) from None
            return self._ended(inbox, end, left, is_meant=is_of_next if is_update else _never)

    def hear(
        self,
        inbox: Inbox,
        queue: str,
        job_id: str,
        *,
        timeout_ms: int | None,
        is_new: bool,
        is_update: bool,
    ) -> End:
        """Block until a job has ended that was stored with the name of an inbox.

        Args:
            inbox: lent from before the job was stored.
            queue: the job's queue.
            job_id: the job's id.
            timeout_ms: for how long, None without limit.
            is_new: whether no earlier job can have had that id.
            is_update: whether it may run after another of its id.

        Raises:
            WaitTimeout, StorageRefused, StorageFault: as `wait`.
        """
        is_meant = _always if is_new else is_of_next if is_update else _never
        stored = End(queue, job_id, state=JobState.QUEUED)
        return self._ended(inbox, stored, _Time(timeout_ms), is_meant=is_meant)

    def _ended(
        self, inbox: Inbox, end: End, left: _Time, *, is_meant: Callable[[End], bool]
    ) -> End:
        backoff = Backoff()
        key = end.queue, end.id
        while not is_end(end):
            left_s = left.seconds()
            if left_s <= 0:
                raise self._late(*key, left.timeout_ms)
            try:
                told = inbox.receive(min(POLL_S, left_s))
                if told is not None and (told.queue, told.id) != key:
                    continue  # an earlier wait was given up
                if told is not None and is_meant(told):
                    end = told
                elif left.seconds() > 0 or told is not None:
                    # A word may be of an earlier job of this id, and silence of a lost word.
                    end = self._watch(inbox, *key)
                backoff.reset()
            except NOT_ANSWERED as error:
                pause_s = min(backoff.next_s(), max(left.seconds(), 0.0))
                self._outage.waits(error, pause_s)
                time.sleep(pause_s)
        return at_once(whole(self._storage, end))

    def _watch(self, inbox: Inbox, queue: str, job_id: str) -> End:
        [end] = at_once(self._storage.watch(queue, [job_id], channel=inbox.name))
        self._outage.ended()
        return end

    def close(self) -> None:
        """Close the inboxes that are not lent."""
        while self._idle:
            self._idle.pop().close()

    def _late(self, queue: str, job_id: str, timeout_ms: int | None) -> WaitTimeout:
        try:
            seen: Seen | Exception = at_once(look(self._storage, queue, job_id))
        except StorageError as error:
            seen = error
        return told_late(seen, queue, job_id, timeout_ms=timeout_ms or 0)


def _always(_told: End) -> bool:
    return True


def _never(_told: End) -> bool:
    return False


class _Time:
    """How much is left of a time-out."""

    def __init__(self, timeout_ms: int | None) -> None:
        self.timeout_ms: int | None = timeout_ms
        self._ends_at = math.inf if timeout_ms is None else time.monotonic() + timeout_ms / 1000

    def seconds(self) -> float:
        return self._ends_at - time.monotonic()
