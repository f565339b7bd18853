"""What a kit gives an app in place of its own storage and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any
from weakref import WeakSet

import anyio

from headrace.app import App, clients_of
from headrace.clients import Opening
from headrace.errors import UsageError, WaitTimeout
from headrace.job import Job, JobState
from headrace.storage.base import Channel
from headrace.storage.incarnations import BeatReply
from headrace.storage.schedules import Occurrence
from headrace.storage.values import End
from headrace.testing.attempts import FinishedAttempt, raise_first
from headrace.testing.client import KitClient
from headrace.testing.clock import ManualClock
from headrace.testing.crash import DeadWorkers
from headrace.testing.enqueued import EnqueuedJob, read_job
from headrace.testing.events import EventLog
from headrace.testing.passage import Passage
from headrace.testing.schedules import KitSchedules
from headrace.testing.storage import KitStorage
from headrace.testing.worker import Incarnations, KitWorker, inside
from headrace.waiting import is_end

LOOK_S = 0.005
LIMIT = 10_000
WAITS_FOR_OTHERS = (JobState.ACTIVE, JobState.BLOCKED)
"""Where time may bring a job on that is due at no time of its own: by a sweep, or a token."""

_in_kits: WeakSet[App[Any]] = WeakSet()


class Simulation:
    """An app's jobs and time while a kit lasts: work goes on, and time passes, when it is told to.

    Args:
        app: the app under test.
        clock: its time.
        events: told every worker event.
        state: the handlers' state; UNSET: what the lifespan yields.
        is_inline: whether to run jobs as they are enqueued.
    """

    def __init__(
        self, app: App[Any], *, clock: ManualClock, events: EventLog, state: Any, is_inline: bool
    ) -> None:
        self.app = app
        self.clock = clock
        self.events = events
        self.enqueued: list[EnqueuedJob] = []
        self.storage: KitStorage = KitStorage(
            tenant=app.tenant, clock=clock, stored=self._stored, stopping=self._stopping
        )
        self.dead: DeadWorkers = DeadWorkers(app, self.storage, clock, emit=events)
        self.schedules: KitSchedules = KitSchedules(app, self.storage, emit=events)
        self._state = state
        self._is_inline = is_inline
        self._incarnations: Incarnations = {}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have the app use this storage and time while the block runs.

        What was connected before rests meanwhile, and is used again afterwards.

        Raises:
            UsageError: another kit has the app already.
        """
        app = self.app
        if app in _in_kits:
            raise UsageError(f"{app!r} is in a Kit already: leave that one first")
        _in_kits.add(app)
        try:
            opening = Opening(
                storage=lambda: self.storage,
                blocking=self.storage.blocking,
                make=partial(KitClient, self),
                clock=self.clock,
                is_driven=True,
            )
            with clients_of(app).replaced(opening):
                yield
        finally:
            _in_kits.discard(app)

    def _stored(self, job: Job, occurrence: Occurrence | None) -> None:
        self.enqueued.append(read_job(self.app, job, occurrence))

    def _stopping(self, queue: str, job_ids: list[str]) -> None:
        """Ask running attempts to stop, each in its own loop."""
        reply = BeatReply(is_gone=False, cancel_ids=job_ids)
        for incarnation, loop in list(self._incarnations.items()):
            if incarnation.queue == queue:
                loop.call_soon_threadsafe(incarnation.lease.on_beat_reply, reply)

    # Work

    @asynccontextmanager
    async def worker(self, *, concurrency: int = 1, limit: int = LIMIT) -> AsyncIterator[KitWorker]:
        """Have a worker while the block runs."""
        worker = KitWorker(
            self.app,
            self.storage,
            emit=self.events,
            incarnations=self._incarnations,
            state=self._state,
            concurrency=concurrency,
            limit=limit,
        )
        async with worker:
            yield worker

    async def queues(self) -> list[str]:
        """Return the queues that hold jobs of the app's tasks, by name.

        A queue that only other programs serve stays as it is.
        """
        tasks = self.app.tasks
        served = {task.settings.queue for task in tasks.values()}
        served.update(job.queue for job in self.enqueued if job.task in tasks)
        return [queue for queue in await self.storage.queues() if queue in served]

    async def run(
        self,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int = 1,
        limit: int = LIMIT,
        advances: bool = False,
    ) -> list[FinishedAttempt]:
        """Run what is ready, and with ``advances`` what falls due.

        Raises:
            AssertionError: the limit of attempts, or of instants of schedules, is reached.
        """

        async def chosen() -> Sequence[str]:
            return await self.queues() if queues is None else queues

        passage = self._passage(limit)
        async with self.worker(concurrency=concurrency, limit=limit) as worker:
            while True:
                await worker.work_off(chosen)
                if await self.schedules.fire():  # a clock may also move without the kit
                    await worker.work_off(chosen)
                next_ms = await self._next_ms(worker) if advances else None
                if next_ms is None:
                    break
                await passage.step(next_ms)
            return worker.finished

    async def _next_ms(self, worker: KitWorker) -> int | None:
        """Return how long until a job falls due or is found with a dead worker."""
        waits = list(worker.due_in_ms.values())
        if await self.dead.hold_any():
            pause_ms = await self.dead.look()
            waits += [] if pause_ms is None else [pause_ms]
        return min(waits, default=None)

    # Time

    def _passage(self, limit: int = LIMIT) -> Passage:
        return Passage(
            self.clock, self.storage, dead=self.dead, schedules=self.schedules, limit=limit
        )

    async def advance(self, ms: int, *, limit: int) -> None:
        """Let time pass; in inline mode run what schedules bring in at its instant.

        Raises:
            AssertionError: schedules have fallen due at more instants than the limit.
        """
        passage = self._passage(limit)
        finished: list[FinishedAttempt] = []
        known, left_ms = len(self.enqueued), ms
        await passage.arrive()
        while True:
            if self._is_inline and len(self.enqueued) > known:
                finished += await self.run()
                known = len(self.enqueued)
            if left_ms <= 0:
                break
            left_ms -= await passage.step(left_ms)
        raise_first(finished)

    # What the client does in place of waiting

    async def run_inline(self, jobs: Iterable[Job]) -> None:
        """In inline mode, run what was just enqueued; a handler's own jobs run after it."""
        worker = inside.get(None)
        if not self._is_inline or (
            worker is not None and worker.is_open and worker.app is self.app
        ):
            return
        finished = await self.run()
        for job in jobs:
            await self._until_idle(job)
        raise_first(finished)

    async def _until_idle(self, job: Job) -> None:
        """Wait for a job that another run at the same time has claimed."""
        while not await self.dead.holds(job.queue, job.id):
            [end] = await self.storage.watch(job.queue, [job.id], channel="")
            if end.state is not JobState.ACTIVE:
                break
            await anyio.sleep(LOOK_S)

    async def run_to_end(
        self, queue: str, job_id: str, channel: Channel, *, timeout_ms: int | None
    ) -> End:
        """Run what is ready, and let time pass while nothing is, until a job has ended.

        Raises:
            WaitTimeout: it has not when the time is over, or can't end.
            AssertionError: ten thousand attempts have not brought it there.
        """

        async def look() -> End:
            [end] = await self.storage.watch(queue, [job_id], channel=channel.name)
            told: End | None = None
            with anyio.move_on_after(0):
                told = await channel.receive()
            return told or end  # a record that is not kept is gone, but its end was told

        end = await look()
        give_up_at = None if timeout_ms is None else self.clock() + timeout_ms
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        passage = self._passage()
        try:
            # Handlers run in real time, so this bounds them as well.
            async with asyncio.timeout(timeout_s), self.worker() as worker:
                while not is_end(end):
                    await self._go_on(worker, passage, end, give_up_at)
                    end = await look()
        except WaitTimeout:
            raise
        except TimeoutError:
            raise WaitTimeout(
                f"job {job_id!r} has not ended within {timeout_s:g} s; it goes on",
                job_id=job_id,
                queue=queue,
            ) from None
        return end

    async def run_towards(self, end: End) -> None:
        """Run what is ready, or let time pass, so that a job comes nearer to its end.

        Raises:
            WaitTimeout: nothing will ever run it.
        """
        async with self.worker() as worker:
            await self._go_on(worker, self._passage(), end, None)

    async def _go_on(
        self, worker: KitWorker, passage: Passage, end: End, give_up_at: int | None
    ) -> None:
        """Run something, or else let time pass."""
        if give_up_at is not None and self.clock() >= give_up_at:
            raise TimeoutError
        if await worker.work_off(self.queues):
            return
        record = await self.storage.get(end.queue, end.id)
        if record is None or record.state.is_terminal:
            return
        if record.state is JobState.ACTIVE and not await self.dead.holds(end.queue, end.id):
            await anyio.sleep(LOOK_S)  # another run has it
            return
        waits = [] if give_up_at is None else [give_up_at - self.clock()]
        if record.state in WAITS_FOR_OTHERS or record.due_ms > self.clock():
            next_ms = await self._next_ms(worker)
            waits += [] if next_ms is None else [next_ms]
            waits += [record.due_ms - self.clock()] if record.due_ms else []
        if not waits:
            raise WaitTimeout(
                f"job {end.id!r} is {record.state} and nothing in this kit will ever run it: is "
                f"queue {end.queue!r} paused, or the task another program's? Its why() tells",
                job_id=end.id,
                queue=end.queue,
            )
        await passage.step(min(waits))
