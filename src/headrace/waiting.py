"""Waits for the ends of jobs: one channel a client, and a slow poll behind it.

A word on a channel may be lost, so each wait first registers, then reads how the job stands, and
all open waits are read again every few seconds and after each reconnect. The two tasks outlive any
one waiter; `aclose` ends them.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from headrace import background
from headrace.backoff import Backoff
from headrace.description import told
from headrace.errors import (
    ReplyLost,
    StorageError,
    StorageFault,
    StorageRefused,
    StorageUnavailable,
)
from headrace.guard import Guard
from headrace.job import JobState
from headrace.outage import ClientOutage
from headrace.repeat import repeat_until_answered
from headrace.storage.base import Channel, Inspector, Producer
from headrace.storage.batches import batches
from headrace.storage.values import End

POLL_S = 3.0
RETRY_FOR_S = 10.0
LOOK_S = 1.0

Key = tuple[str, str]


def is_end(end: End) -> bool:
    """Whether there is nothing more to wait for."""
    return end.state is None or end.state.is_terminal


def is_of_next(end: End) -> bool:
    """Whether it is that of a job that was blocked by the active one of its id."""
    return end.state is JobState.CANCELLED and end.reason == "next"


async def whole(storage: Inspector, end: End) -> End:
    """Return an end with its result, read if it was too large for a message."""
    if not end.is_cut:
        return end
    record = await storage.get(end.queue, end.id)
    if record is None or record.state is not JobState.COMPLETED:
        return End(queue=end.queue, id=end.id, state=record.state if record else None)
    return End(queue=end.queue, id=end.id, state=record.state, result=record.result)


class WaitStorage(Producer, Inspector, Protocol):
    """What ends are waited for through: channels of the one role, looks of the other."""


class Waits:
    """All waits of one event loop.

    Args:
        storage: where the jobs are.
        outage: hears of each look that is not answered.
    """

    def __init__(self, storage: WaitStorage, outage: ClientOutage) -> None:
        self._storage = storage
        self._outage = outage
        self._channel: Channel | None = None
        self._open: defaultdict[Key, list[asyncio.Future[End]]] = defaultdict(list)
        self._unborn: set[asyncio.Future[End]] = set()
        self._told_early: set[asyncio.Future[End]] = set()
        self._unsure: set[asyncio.Future[End]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._has_answer = asyncio.Event()  # of whoever was asked to subscribe
        self._refusal: StorageError | None = None
        self._guard = Guard()
        self._is_stale = asyncio.Event()
        self._is_closed = False

    async def channel(self) -> str:
        """Return this client's channel, once it is subscribed or can't be just now.

        Raises:
            StorageRefused: this client may not subscribe.
        """
        if self._channel is None and not self._is_closed:
            self._channel = self._storage.open_channel()
            listen, poll = partial(self._listen, self._channel), partial(self._poll, self._channel)
            self._tasks = [
                background.start(self._guard.keep("channel", listen), name="headrace-channel"),
                background.start(self._guard.keep("poll", poll), name="headrace-poll"),
            ]
        if not self._has_answer.is_set():
            # Without it the poll alone brings the ends, later.
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._has_answer.wait()
        if self._channel is None:
            raise _closed()
        if self._refusal is not None:
            raise type(self._refusal)(str(self._refusal))
        return self._channel.name

    def expect(self, queue: str, job_id: str, *, is_stored: bool = True) -> asyncio.Future[End]:
        """Return a future of the job's end; pass it to `drop` when it is not needed any more.

        Args:
            queue: the job's queue.
            job_id: the job's id.
            is_stored: False: the job is about to be, so that what is heard of its id until you say
                `stored` may be of an earlier job.
        """
        future: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._open[queue, job_id].append(future)
        if not is_stored:
            self._unborn.add(future)
        return future

    def stored(self, future: asyncio.Future[End], *, is_update: bool = False) -> None:
        """Note that an expected job is in the storage now.

        Args:
            future: of its end.
            is_update: it may run after another of its id, so that what is heard of the id may be of
                that one.
        """
        self._unborn.discard(future)
        if is_update:
            self._unsure.add(future)
        if future in self._told_early:
            # Only a look can tell whose end that was.
            self._told_early.discard(future)
            self._is_stale.set()

    def drop(self, queue: str, job_id: str, future: asyncio.Future[End]) -> None:
        """Forget a future."""
        waiters = self._open.get((queue, job_id))
        if waiters and future in waiters:
            waiters.remove(future)
            if not waiters:
                del self._open[queue, job_id]
        for kind in (self._unborn, self._told_early, self._unsure):
            kind.discard(future)

    async def wait(
        self, queue: str, job_id: str, *, timeout_ms: int | None, is_update: bool = False
    ) -> End:
        """Wait until a job has ended; with ``is_update`` one that may run after another of its id.

        Raises:
            TimeoutError: it has not in time.
            StorageUnavailable: the storage was away for ten seconds at the start.
            StorageRefused, StorageFault: it can't tell how the job stands.
        """
        future = self.expect(queue, job_id)
        self.stored(future, is_update=is_update)
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        started_at = asyncio.get_running_loop().time()
        try:
            # However short the time-out, one look at a job that has ended is answered.
            async with asyncio.timeout(None if timeout_s is None else max(timeout_s, LOOK_S)):
                end = await self._look(queue, job_id)
            async with asyncio.timeout_at(None if timeout_s is None else started_at + timeout_s):
                if not is_end(end):
                    end = await future
            return await whole(self._storage, end)
        finally:
            self.drop(queue, job_id, future)

    async def _look(self, queue: str, job_id: str) -> End:
        channel = await self.channel()
        ends = await repeat_until_answered(
            partial(self._storage.watch, queue, [job_id], channel=channel),
            on_failure=self._check_open,
            on_pause=self._outage.waits,
            for_s=RETRY_FOR_S,
        )
        assert ends is not None, "it is never over"  # noqa: S101
        self._outage.ended()
        return ends[0]

    def _check_open(self, _error: StorageError) -> None:
        if self._is_closed:
            raise _closed() from None

    def _resolve(self, end: End, *, is_seen: bool) -> None:
        """End the waits for a job whose end was heard of, or seen by a look."""
        if not is_end(end):
            return
        key = (end.queue, end.id)
        waiters = self._open.pop(key, [])
        unborn = self._unborn.intersection(waiters)
        others = set() if is_seen else self._not_meant(end, waiters)
        if left := [future for future in waiters if future in unborn or future in others]:
            self._open[key] = left
            self._told_early.update(unborn)
        for future in waiters:
            if future not in unborn and future not in others and not future.done():
                future.set_result(end)

    def _not_meant(self, end: End, waiters: Sequence[asyncio.Future[End]]) -> set[Any]:
        """Return who of those that wait for a job of this id may be waiting for another one."""
        unsure = self._unsure.intersection(waiters)
        if is_of_next(end):
            return set(waiters) - unsure
        if unsure:
            self._is_stale.set()  # only a look can tell whose end that was
        return unsure

    def _fail(self, queue: str, job_id: str, error: Exception) -> None:
        """End the waits for a job of which the storage can't tell how it stands."""
        if not isinstance(error, StorageError):
            fault = StorageFault(f"how job {job_id!r} stands can't be read: {told(error)}")
            fault.__cause__ = error
            error = fault
        for future in self._open.get((queue, job_id), []):
            if future not in self._unborn and not future.done():
                future.set_exception(error)
                future.exception()  # who has given up never looks

    async def _listen(self, channel: Channel) -> None:
        backoff = Backoff()
        while True:
            try:
                end = await channel.receive()
            except (StorageUnavailable, ReplyLost) as error:
                self._has_answer.clear()
                pause_s = backoff.next_s()
                self._outage.waits(error, pause_s)
                await asyncio.sleep(pause_s)
                continue
            except StorageError as error:
                self._refusal = error
                self._has_answer.set()
                await backoff.pause()
                continue
            if end is None:
                self._outage.ended()
                backoff.reset()
                self._refusal = None
                self._has_answer.set()
                self._is_stale.set()
            else:
                self._resolve(end, is_seen=False)

    async def _poll(self, channel: Channel) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._is_stale.wait()
            self._is_stale.clear()
            with suppress(StorageUnavailable, ReplyLost):
                await self._read_all(channel.name)

    async def _read_all(self, channel: str) -> None:
        by_queue: defaultdict[str, list[str]] = defaultdict(list)
        for (queue, job_id), waiters in self._open.items():
            if not self._unborn.issuperset(waiters):
                by_queue[queue].append(job_id)
        for queue, ids in by_queue.items():
            for batch in batches(ids):
                await self._read(queue, batch, channel)

    async def _read(self, queue: str, ids: Sequence[str], channel: str) -> None:
        """Read how some jobs stand; an error that is no outage ends the waits for who causes it."""
        try:
            ends = await self._storage.watch(queue, ids, channel=channel)
        except (StorageUnavailable, ReplyLost):
            raise
        except Exception as error:  # whatever it was, nobody must wait for ever
            if len(ids) == 1 or isinstance(error, StorageRefused):
                for job_id in ids:
                    self._fail(queue, job_id, error)
                return
            for job_id in ids:
                await self._read(queue, [job_id], channel)
        else:
            for end in ends:
                self._resolve(end, is_seen=True)

    async def aclose(self) -> None:
        """End the tasks; open waits, and those that begin later, raise `StorageUnavailable`."""
        self._is_closed = True
        self._has_answer.set()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tasks = []
        if self._channel is not None:
            await self._channel.aclose()
            self._channel = None
        for waiters in self._open.values():
            for future in waiters:
                if not future.done():
                    future.set_exception(_closed())
                    future.exception()
        self._open.clear()


def _closed() -> StorageUnavailable:
    return StorageUnavailable("the app was closed while waiting")
