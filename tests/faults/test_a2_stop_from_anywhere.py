"""`Worker.stop` and `Worker.quiet` work wherever they are called."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headrace import App, Worker
from headrace.events import WorkerQuiet, WorkerStopped, WorkerStopping
from headrace.testing import EventLog
from tests.support.until import patience, until


class Aside:
    """A worker of two queues that runs in a thread of its own."""

    def __init__(self, app: App[None]) -> None:
        self.log = EventLog()
        self.worker = Worker(app, ["one", "two"], shutdown_timeout=3_600, emit=self.log)
        self.errors: list[BaseException] = []
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            asyncio.run(self.worker.run())
        except BaseException as error:  # noqa: BLE001, RUF100 (the test looks at it)
            self.errors.append(error)

    async def ended(self) -> None:
        await until(lambda: not self.thread.is_alive(), within=15, what="the worker has ended")
        assert self.errors == []
        assert len(self.log.of(WorkerStopping)) == len(self.log.of(WorkerStopped)) == 1


@pytest.fixture
def aside(storage_url: str) -> Aside:
    app: App[None] = App(storage_url, tenant="aside")

    @app.task(name="hold", queue="one")
    async def hold() -> None:
        await asyncio.Event().wait()

    return Aside(app)


async def test_another_thread_can_stop_a_worker(aside: Aside) -> None:
    aside.thread.start()
    await until(lambda: aside.worker.is_ready, within=15, what="it is ready")
    await asyncio.to_thread(aside.worker.stop)
    assert not aside.worker.is_ready
    await aside.ended()


async def test_another_thread_can_end_the_grace(aside: Aside, storage_url: str) -> None:
    async with App(storage_url, tenant="aside") as app:
        await app.enqueue("hold", queue="one")
        aside.thread.start()
        await until(lambda: aside.worker.active, within=15, what="the job runs")
        await asyncio.to_thread(aside.worker.stop)
        await aside.log.wait(WorkerStopping, within=patience(15))
        await asyncio.to_thread(aside.worker.stop)
        await aside.ended()
        assert aside.log.of(WorkerStopped)[0].put_back == 1


async def test_another_thread_can_make_it_quiet(aside: Aside) -> None:
    aside.thread.start()
    await until(lambda: aside.worker.is_ready, within=15, what="it is ready")
    await asyncio.to_thread(aside.worker.quiet)
    await aside.log.wait(WorkerQuiet, within=patience(15))
    await asyncio.to_thread(aside.worker.stop)
    await aside.ended()


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_many_threads_can_stop_it_before_and_while_it_starts(
    aside: Aside, times: int
) -> None:
    threads = [threading.Thread(target=aside.worker.stop) for _ in range(times)]
    threads[0].start()
    aside.thread.start()
    for thread in threads[1:]:
        thread.start()
    await aside.ended()
    await asyncio.to_thread(aside.worker.stop)
    await asyncio.to_thread(aside.worker.quiet)


async def test_a_signal_handler_can_stop_it(storage_url: str) -> None:
    log = EventLog()
    worker = Worker(App(storage_url), ["one", "two"], emit=log)
    with handled(worker.stop):
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run())
            await until(lambda: worker.is_ready, within=15, what="it is ready")
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR1)
    assert len(log.of(WorkerStopping)) == len(log.of(WorkerStopped)) == 1


@contextmanager
def handled(call: Callable[[], None]) -> Iterator[None]:
    """Call it at SIGUSR1 meanwhile, between any two instructions of the loop."""
    before = signal.signal(signal.SIGUSR1, lambda _number, _frame: call())
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)
