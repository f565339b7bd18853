"""A producer of the chaos soak: it enqueues in every way there is, and notes what it hears.

Run as ``python -m tests.apps.chaos_producer ASSIGNMENT``, which is JSON, with the environment of
`tests.apps.chaos_app`. It goes on waiting for results until the run is drained.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any

import msgspec

from headrace import JobCancelled, JobError, JobFailed, JobHandle, StorageFull
from headrace.app import sender_of
from tests.apps.chaos_app import app, name, notes
from tests.apps.chaos_jobs import (
    Assignment,
    is_drained,
    is_first,
    job_of,
    labels_of,
    note_error,
    note_odd,
    note_sent_all,
    note_stored,
)
from tests.apps.chaos_writes import AGAIN_S, SIZES, Writer, run
from tests.chaos.plan import REPEATABLE, TO_BE_CANCELLED, Kind, answer, kind_of, plan_of, queue_of

WAITS_AT_ONCE = 20
HANGS_S = 10.0
"""How long a wait may take once everything has ended."""


class Load:
    """The labels of one producer, and how it sends them.

    Args:
        assignment: what to do.
    """

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._random = random.Random(assignment.seed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._waits = asyncio.Semaphore(WAITS_AT_ONCE)
        self._writer = Writer()
        self._stored: list[str] = []
        self._sent = 0

    async def send_all(self) -> None:
        """Send everything, as evenly as outages allow, then wait for what is open."""
        began = time.monotonic()
        pace = self._assignment.seconds / max(1, self._assignment.jobs)
        labels = labels_of(self._assignment, self._random)
        ways: list[tuple[Callable[[list[str]], Awaitable[None]], int]] = [
            (self.in_bulk, self._random.randrange(50, 400)),
            (self.at_once, 30),
            (self.one_by_one, 4),
            (self.and_wait, 4),
            (self.as_write, min(self._random.choice(SIZES), self._assignment.jobs // 4 + 1)),
        ]
        if is_first():
            await self.as_write(list(islice(labels, SIZES[0])))
        while True:
            way, size = self._random.choices(ways, (4, 3, 2, 2, 2))[0]
            group = list(islice(labels, size))
            if not group:
                break
            await way(group)
            await self.again()
            await self.write_again()
            self._sent += len(group)
            await asyncio.sleep(max(0.0, began + self._sent * pace - time.monotonic()))
        while self._writer.is_open:
            await self.write_again()
            await asyncio.sleep(AGAIN_S)

    # Ways

    async def in_bulk(self, labels: list[str]) -> None:
        """By `enqueue_many`, half of them with ids of their own."""
        for queue in {queue_of(label) for label in labels}:
            group = [label for label in labels if queue_of(label) == queue]
            jobs = [job_of(label, has_id=n % 2 == 0) for n, label in enumerate(group)]
            notes.sent("want", *((job.id, label) for job, label in zip(jobs, group, strict=True)))
            try:
                handles = await app.enqueue_many(jobs)
            except Exception as error:
                note_error(error, [job.id for job in jobs])
            else:
                note_stored(handles)
                for handle, label in zip(handles, group, strict=True):
                    self._follow(handle, label)

    async def at_once(self, labels: list[str]) -> None:
        """Each by a call of its own, at the same time."""
        await asyncio.gather(*(self._send(label) for label in labels))

    async def one_by_one(self, labels: list[str]) -> None:
        """Each after the other."""
        for label in labels:
            await self._send(label)

    async def and_wait(self, labels: list[str]) -> None:
        """As requests whose answers are waited for, later."""
        for label in labels:
            if kind_of(label) in REPEATABLE:
                await self._waits.acquire()
                self._start(self._request(label))
            else:
                await self._send(label)

    async def as_write(self, labels: list[str]) -> None:
        """By a bulk write for each queue, but for what is to be cancelled: it has no handles."""
        await self.one_by_one([label for label in labels if kind_of(label) in TO_BE_CANCELLED])
        rest = [label for label in labels if kind_of(label) not in TO_BE_CANCELLED]
        for attempt in self._writer.begin(rest):
            await run(app, attempt)

    async def write_again(self) -> None:
        """Run each write again that has not come to its end."""
        for attempt in self._writer.again():
            await run(app, attempt)

    async def again(self) -> None:
        """Send an id that was stored before."""
        if self._stored and self._random.random() < 0.2:
            await self._send(self._random.choice(self._stored))

    async def _send(self, label: str) -> None:
        job = job_of(label, has_id=True)
        notes.sent("want", (job.id, label))
        try:
            handle = await sender_of(app).submit(job)
        except Exception as error:
            note_error(error, [job.id])
            return
        note_stored([handle])
        if kind_of(label) in REPEATABLE and len(self._stored) < 1000:
            self._stored.append(label)
        self._follow(handle, label)

    # What follows

    async def _request(self, label: str) -> None:
        try:
            notes.sent("want", (label, label))
            call = app.tasks[plan_of(label).task].options(
                id=label, queue=queue_of(label), **plan_of(label).options
            )
            await self._hear(label, label, call.enqueue_and_wait(label), is_request=True)
        finally:
            self._waits.release()

    def _follow(self, handle: JobHandle[Any], label: str) -> None:
        match kind_of(label):
            case Kind.CANCEL:
                self._start(self._cancel(handle, self._random.uniform(0, 1.5)))
            case Kind.WITHDRAWN:
                self._start(self._cancel(handle, 0))
            case Kind.PLAIN | Kind.BRIEF:
                pass
            case _ if not self._waits.locked():
                self._start(self._await_result(handle, label))

    async def _await_result(self, handle: JobHandle[Any], label: str) -> None:
        async with self._waits:
            await self._hear(handle.id, label, handle.result())

    async def _cancel(self, handle: JobHandle[Any], later: float) -> None:
        await asyncio.sleep(later)
        notes.sent("cancel", (handle.id, "-"))
        try:
            outcome = await handle.cancel()
        except Exception as error:
            note_odd(error, handle.id)
            return
        notes.sent("cancelled", (handle.id, outcome.value))

    async def _hear(
        self, job_id: str, label: str, result: Awaitable[Any], *, is_request: bool = False
    ) -> None:
        """Note how a wait ends; a request's end tells also that it was stored."""
        notes.sent("waits", (job_id, label))
        try:
            word = "right" if await result == answer(label) else "wrong"
        except JobFailed as failure:
            word = failure.reason
        except JobCancelled:
            word = "cancelled"
        except JobError as error:
            word = type(error).__name__
        except Exception as error:
            if is_request:
                # All but this may come of the wait.
                note_error(error, [job_id], no=(StorageFull,))
            else:
                note_odd(error, job_id)
            notes.sent("got", (job_id, "error"))
            return
        if is_request:
            notes.sent("ok", (job_id, "waited"))
        notes.sent("got", (job_id, word))

    def _start(self, following: Any) -> None:
        task = asyncio.create_task(following)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait until all has ended, and note the waits that go on then."""
        while not is_drained():  # noqa: ASYNC110 (a file gives no event)
            await asyncio.sleep(0.05)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=HANGS_S)
        open_tasks = list(self._tasks)
        for task in open_tasks:
            notes.sent("hung", (name, "-"))
            task.cancel()


async def produce(assignment: Assignment) -> None:
    """Send all, and wait for the end."""
    load = Load(assignment)
    async with app:
        await load.send_all()
        note_sent_all()
        await load.finish()


if __name__ == "__main__":
    asyncio.run(produce(msgspec.json.decode(sys.argv[1], type=Assignment)))
