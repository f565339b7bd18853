"""Brings jobs to the storage: concurrent enqueues of a queue share calls.

A lost answer is asked for again with the same number. Two calls may be in flight at once: the
server works on one while the next is packed. What several callers share is sent by a task that
outlives them, so that a caller's cancellation disturbs nobody else; `aclose` ends it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from headrace.description import told
from headrace.errors import QueueFull, ReplyLost, StorageError, StorageFault
from headrace.job import Verdict
from headrace.outage import ClientOutage
from headrace.repeat import Doubt, repeat_until_answered
from headrace.request import JobRequest
from headrace.storage.base import Producer
from headrace.storage.batches import fitting
from headrace.storage.values import CallId

WINDOW = 2

Answer = asyncio.Future[list[Verdict]]


class Batcher:
    """The enqueues of one queue from one event loop.

    Args:
        queue: the queue's name.
        storage: where to.
        client: this loop's random id.
        retry_for_s: how long a call is repeated before its error is raised. A refusal is raised at
            once; after a lost answer every error is a `ReplyLost`.
        outage: hears of each call that is not answered.
    """

    def __init__(
        self,
        queue: str,
        storage: Producer,
        *,
        client: str,
        retry_for_s: float,
        outage: ClientOutage,
    ) -> None:
        self._queue = queue
        self._storage = storage
        self._client = client
        self._retry_for_s = retry_for_s
        self._outage = outage
        self._pending: deque[tuple[Sequence[JobRequest], Answer]] = deque()
        # How many of these, the first, go in calls of their own.
        self._alone = 0
        self._number = 0
        # A first call may have to load the library, and the second must not overtake it.
        self._window = 1
        self._in_flight: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_ended = asyncio.Event()
        self._is_due = False
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way, so that nobody can share a call with the next job."""
        return not self._in_flight and not self._pending

    async def send(self, job: JobRequest) -> list[Verdict]:
        """Send one job at once, while `is_idle`.

        Its caller does it: a task and two turns of the loop would add a fifth to the time.
        """
        number = self._next_number()
        try:
            outcomes = await self._repeat(CallId(self._client, number), (job,))
        finally:
            self._end(number)
        self._window = WINDOW
        return outcomes

    def submit(self, jobs: Sequence[JobRequest]) -> Answer:
        """Send up to 500 jobs in one call; await the answer for their outcomes."""
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        self._pending.append((jobs, answer))
        if not self._in_flight:
            self._flush()
        elif not self._is_due:
            # Whatever this turn of the loop still adds goes along.
            self._is_due = True
            loop.call_soon(self._flush)
        return answer

    def _flush(self) -> None:
        self._is_due = False
        # The storage remembers the last two answers, so a new number must wait while an older is
        # open.
        while self._pending and (
            not self._in_flight or self._number + 1 - min(self._in_flight) < self._window
        ):
            sending = self._send(self._next_number(), self._take())
            task = asyncio.create_task(sending, name="headrace-enqueue")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _next_number(self) -> int:
        self._number += 1
        self._in_flight.add(self._number)
        return self._number

    def _end(self, number: int) -> None:
        self._in_flight.remove(number)
        self._has_ended.set()
        self._flush()

    def _take(self) -> list[tuple[Sequence[JobRequest], Answer]]:
        if self._alone:
            self._alone -= 1
            return [self._pending.popleft()]
        count = fitting(
            (len(jobs), sum(len(job.payload) for job in jobs)) for jobs, _ in self._pending
        )
        return [self._pending.popleft() for _ in range(count)]

    async def _send(self, number: int, batch: list[tuple[Sequence[JobRequest], Answer]]) -> None:
        jobs = [job for part, _ in batch for job in part]
        try:
            outcomes = await self._repeat(CallId(self._client, number), jobs)
        except BaseException as error:
            if isinstance(error, QueueFull) and len(batch) > 1:
                # Nothing was stored, and there may be room for some of those who shared the call.
                self._pending.extendleft(reversed(batch))
                self._alone += len(batch)
                return
            failure = _told(error)
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(failure)
                    answer.exception()  # nobody may look: that is no fault of the program
            if not isinstance(error, Exception):
                raise
        else:
            self._window = WINDOW
            at = 0
            for part, answer in batch:
                if not answer.done():
                    answer.set_result(outcomes[at : at + len(part)])
                at += len(part)
        finally:
            self._end(number)

    async def _repeat(self, call: CallId, jobs: Sequence[JobRequest]) -> list[Verdict]:
        doubt = Doubt()

        def on_failure(error: StorageError) -> None:
            doubt.note(error)
            if self._is_closed:
                raise _closed()

        with doubt:
            outcomes = await repeat_until_answered(
                partial(self._storage.enqueue, self._queue, jobs, call=call),
                on_failure=on_failure,
                on_pause=self._outage.waits,
                for_s=self._retry_for_s,
            )
        assert outcomes is not None, "it is never over"  # noqa: S101
        if self._outage.began_at is not None:
            self._outage.ended()
        return outcomes

    async def aclose(self) -> None:
        """Send what waits, give it a moment to be answered, then end what is left."""
        self._flush()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._retry_for_s):
                # Each call that ends sends what waited for its place.
                while self._in_flight:
                    self._has_ended.clear()
                    await self._has_ended.wait()
        # A caller that sends by itself hears of the end when the storage is closed.
        self._is_closed = True
        while self._pending:
            _jobs, answer = self._pending.popleft()
            if not answer.done():
                answer.set_exception(_closed())
                answer.exception()
        late = list(self._tasks)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)


def _told(error: BaseException) -> StorageError:
    """Return what the callers of a shared call hear of its end."""
    if isinstance(error, StorageError):
        return error
    if isinstance(error, Exception):
        fault = StorageFault(f"the jobs could not be sent: {told(error)}")
        fault.__cause__ = error
        return fault
    return _closed()


def _closed() -> ReplyLost:
    return ReplyLost("the app was closed before the storage answered: the jobs may be stored")
