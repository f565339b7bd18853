"""The worker: wires fetching, running, settling, beating and sweeping for each of its queues."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import anyio

from headrace.app import App
from headrace.backoff import Backoff
from headrace.clock import Duration, duration_ms
from headrace.errors import (
    InvalidOption,
    ReplyLost,
    StorageError,
    StorageFault,
    StorageRefused,
    StorageUnavailable,
    UsageError,
)
from headrace.events import (
    Emit,
    LoopFailed,
    WorkerQuiet,
    WorkerStarted,
    WorkerStopped,
    WorkerStopping,
)
from headrace.job import check_name, check_text, new_job_id
from headrace.logs import log_events
from headrace.release import VERSION
from headrace.settings import check_count
from headrace.storage.base import Storage
from headrace.storage.values import WorkerInfo
from headrace.worker.beat import Beats
from headrace.worker.execute import Executor
from headrace.worker.fetch import Fetcher
from headrace.worker.session import Session
from headrace.worker.slots import Slots
from headrace.worker.sweep import Sweeper

STARTUP_RETRY_S = 10.0
LAST_WORDS_S = 3.0


class Worker:
    """Runs the jobs of some queues in this process, until it is stopped.

    Args:
        app: the tasks, and where the jobs are.
        queues: names with weights, or names of equal weight; default: the queues of the app's
            tasks. While several have jobs, free slots go to them in proportion to their weights, 1
            to 1,000.
        concurrency: attempts at once, 1 to 10,000, default 100.
        lease: how long the worker may be silent before others take its jobs, 0.5 seconds to an
            hour, default 15 seconds. It beats three times in it.
        shutdown_timeout: how long running jobs may go on once it was asked to stop, default 25
            seconds; then they go back to the head of the queue, free of charge.
        sweep_interval: time between looks for dead workers, default 5 seconds.
        max_loop_stall: how long the event loop may stand still before the worker gives its jobs up,
            default four leases.
        name: shown to operators, default ``host:pid``.
        emit: called with every worker event, default: warnings and errors to structlog.

    Raises:
        UsageError: there is no queue to serve.
        InvalidOption: a value is out of bounds.
    """

    def __init__(
        self,
        app: App[Any],
        queues: Mapping[str, int] | Sequence[str] | None = None,
        *,
        concurrency: int = 100,
        lease: Duration = 15.0,
        shutdown_timeout: Duration = 25.0,
        sweep_interval: Duration = 5.0,
        max_loop_stall: Duration | None = None,
        name: str | None = None,
        emit: Emit | None = None,
    ) -> None:
        self._app = app
        self.queues: dict[str, int] = _weights(app, queues)
        self.concurrency: int = check_count(concurrency, name="concurrency", most=10_000)
        self._lease_ms = duration_ms(lease, name="lease", least_ms=500)
        if self._lease_ms > 3_600_000:
            raise InvalidOption(f"lease={lease!r} is out of bounds: use 0.5 seconds to an hour")
        self._grace_s = duration_ms(shutdown_timeout, name="shutdown_timeout") / 1000
        self._sweep_s = duration_ms(sweep_interval, name="sweep_interval", least_ms=10) / 1000
        stall = 4 * self._lease_ms / 1000 if max_loop_stall is None else max_loop_stall
        self._max_loop_stall_s = duration_ms(stall, name="max_loop_stall", least_ms=1) / 1000
        self.name: str = check_text(
            name or f"{socket.gethostname()}:{os.getpid()}", what="worker name"
        )
        self._emit = emit or log_events("warning")
        self._is_closing = anyio.Event()
        self._hurries = False
        self._is_quiet = False
        self._sessions: dict[str, Session] = {}
        self._fetchers: dict[str, Fetcher] = {}
        self._put_back = 0

    @property
    def is_ready(self) -> bool:
        """Whether it can consume: each queue's last claim was answered, and it is not stopping."""
        return (
            not self._is_closing.is_set()
            and len(self._fetchers) == len(self.queues)
            and all(fetcher.is_consuming for fetcher in self._fetchers.values())
        )

    @property
    def active(self) -> int:
        """How many attempts run."""
        return sum(len(session.attempts) for session in self._sessions.values())

    def quiet(self) -> None:
        """Claim no more, but go on running and beating until `stop`."""
        self._is_quiet = True
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._emit(WorkerQuiet(worker=self.name))

    def stop(self) -> None:
        """Claim no more, give running jobs the grace, then hand back the rest and end.

        A second call ends the grace: what runs is cancelled and handed back now.
        """
        if self._is_closing.is_set():
            self._hurries = True
            for session in self._sessions.values():
                session.hurry()
            return
        self._is_closing.set()
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._emit(WorkerStopping(worker=self.name, active=self.active, grace_s=self._grace_s))

    async def run(self) -> None:
        """Run until `stop`; one call a worker.

        Raises:
            StorageUnavailable: the storage could not be reached for ten seconds at the start.
            StorageRefused: it can't be used, at the start or any more.
            StorageFault: it failed, and nothing that it says can be relied on.
        """
        storage = self._app.open_storage()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(storage.aclose)
            await self._connect(storage)
            # What handlers and the lifespan enqueue goes through the app's own client.
            await stack.enter_async_context(self._app)
            state = None
            if self._app.lifespan is not None:
                state = await stack.enter_async_context(self._app.lifespan())
            executor = Executor(self._app.tasks, middleware=self._app.middlewares, state=state)
            await self._serve(storage, executor)
        self._emit(WorkerStopped(worker=self.name, put_back=self._put_back))

    async def _connect(self, storage: Storage) -> None:
        backoff = Backoff()
        give_up_at = anyio.current_time() + STARTUP_RETRY_S
        while not self._is_closing.is_set():
            try:
                return await storage.check()
            except StorageUnavailable:
                if anyio.current_time() > give_up_at:
                    raise
                await backoff.pause()
        return None

    async def _serve(self, storage: Storage, executor: Executor) -> None:
        interval_s = self._lease_ms / 3000
        beats = Beats(
            lambda: storage.open_beater(timeout_s=min(interval_s, 5.0)),
            interval_s=interval_s,
            max_loop_stall_s=self._max_loop_stall_s,
            worker=self.name,
            emit=self._emit,
        )
        slots = Slots(self.concurrency, self.queues)
        beats.start()
        self._emit(
            WorkerStarted(
                worker=self.name,
                queues=self.queues,
                concurrency=self.concurrency,
                tasks=len(self._app.tasks),
            )
        )
        try:
            async with anyio.create_task_group() as group:
                for queue in self.queues:
                    group.start_soon(self._serve_queue, storage, executor, slots, beats, queue)
        finally:
            beats.stop()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(beats.join, 1.0)

    async def _serve_queue(
        self, storage: Storage, executor: Executor, slots: Slots, beats: Beats, queue: str
    ) -> None:
        """Hold one session after another until the worker is stopped."""
        while not self._is_closing.is_set():
            session = Session(
                storage,
                queue=queue,
                incarnation=new_job_id(),
                lease_s=self._lease_ms / 1000,
                executor=executor,
                slots=slots,
                emit=self._emit,
            )
            if not await self._register(session):
                return
            beats.add(session)
            self._sessions[queue] = session
            try:
                await self._hold(session)
            finally:
                beats.remove(session)
                del self._sessions[queue]

    async def _register(self, session: Session) -> bool:
        """Make the session known, however long that takes; False: the worker was stopped."""
        info = WorkerInfo(
            incarnation=session.incarnation,
            name=self.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=VERSION,
            concurrency=self.concurrency,
            lease_ms=self._lease_ms,
            registered_ms=0,
        )
        backoff = Backoff()
        while not self._is_closing.is_set():
            sent_at = time.monotonic()
            try:
                await session.storage.register(session.queue, info)
            except (StorageUnavailable, ReplyLost):
                await backoff.pause()
            else:
                session.acked_at = sent_at
                return True
        return False

    async def _hold(self, session: Session) -> None:
        """Run one session to its end: stopped or fenced."""
        fetcher = Fetcher(session, session.storage.open_waiter(session.queue, session.incarnation))
        self._fetchers[session.queue] = fetcher
        if self._is_quiet or self._is_closing.is_set():
            fetcher.close()  # said before this session was there
        sweeper = Sweeper(session, interval_s=self._sweep_s)
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep, "settle", session.settler.run)
            group.start_soon(self._keep, "sweep", lambda: _sweep_forever(sweeper))
            group.start_soon(_guard, session)
            try:
                await self._keep("fetch", fetcher.run)
                if not session.is_gone.is_set():
                    await self._is_closing.wait()
                    await session.finish(0.0 if self._hurries else self._grace_s)
                else:
                    await self._reconnect(session)
            finally:
                # Also when the caller cancels `run`: claimed jobs must not wait for their lease.
                with anyio.CancelScope(shield=True):
                    await self._wind_up(session)
            group.cancel_scope.cancel()

    async def _reconnect(self, session: Session) -> None:
        """Wait until a fenced session's last outcomes are written or refused, or the worker stops.

        After an outage the storage still knows the incarnation, and nobody is charged for it. One
        that can't be used any more ends the worker, as it does at the start.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when, self._is_closing, group.cancel_scope)
            backoff = Backoff()
            while not session.is_condemned:
                await session.settler.drain()
                try:
                    await session.storage.check()
                    break
                except (StorageRefused, StorageFault):
                    raise
                except StorageError:
                    await backoff.pause()
            group.cancel_scope.cancel()

    async def _wind_up(self, session: Session) -> None:
        """Hand back what still runs, record what has ended, and forget the incarnation."""
        await session.stop()
        with suppress(StorageError), anyio.move_on_after(LAST_WORDS_S):
            with suppress(StorageError):
                self._put_back += await session.hand_back()
            await session.settler.drain()
            while await session.storage.retire(session.queue, session.incarnation):
                pass

    async def _keep(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """Run a loop; one that dies of an error starts again, and says so."""
        backoff = Backoff()
        while True:
            try:
                return await loop()
            except Exception as error:  # whatever it was, a dead loop would go unseen
                self._emit(LoopFailed(loop=name, error=f"{type(error).__name__}: {error}"))
                await backoff.pause()


async def _cancel_when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _sweep_forever(sweeper: Sweeper) -> None:
    while True:
        try:
            next_s = await sweeper.sweep_once()
        except (StorageUnavailable, ReplyLost):
            next_s = 1.0
        # A little early or late, so that workers don't sweep in step.
        await anyio.sleep(next_s * random.uniform(0.9, 1.0))  # noqa: S311


async def _guard(session: Session) -> None:
    """Fence the session when its beats went unanswered for nearly its lease."""
    while not session.is_gone.is_set():
        left_s = session.fence_at - time.monotonic()
        if left_s <= 0:
            session.fence(f"no beat was answered for {session.lease_s:g} s less the margin")
            return
        await anyio.sleep(left_s)


def _weights(app: App[Any], queues: Mapping[str, int] | Sequence[str] | None) -> dict[str, int]:
    if queues is not None and (isinstance(queues, str) or not isinstance(queues, Iterable)):
        raise InvalidOption(f"queues={queues!r}: pass a list of names or a dict of weights")
    if queues is None:
        weights = dict.fromkeys(sorted({t.settings.queue for t in app.tasks.values()}), 1)
    elif isinstance(queues, Mapping):
        weights = dict(queues)
    else:
        weights = dict.fromkeys(queues, 1)
    if not weights:
        raise UsageError("there is no queue to serve: the app has no tasks and no queues are named")
    for queue, weight in weights.items():
        check_name(queue, what="queue")
        check_count(weight, name=f"the weight of queue {queue!r}", most=1000)
    return weights
