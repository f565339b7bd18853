"""``headrace worker`` and the signals that stop it; G14."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace import App, JobState, Worker
from headrace.app import clients_of
from headrace.events import WorkerQuiet
from headrace.testing import EventLog
from headrace.worker.signals import Signals
from tests.cli.conftest import APP
from tests.support.ports import closed_port
from tests.support.processes import ROOT, WorkerProcess
from tests.support.until import patience, until

LONG = 300.0


class Crew:
    """Workers of the command line, and jobs for them."""

    def __init__(self, environment: dict[str, str], directory: Path) -> None:
        self.environment = environment
        self.directory = directory
        self.app: App[None] = App(
            environment["HEADRACE_REDIS_URL"], tenant=environment["HEADRACE_TENANT"]
        )
        self.note = directory / "note"

    def start(self, *words: str) -> WorkerProcess:
        """Start a worker with a short lease."""
        return WorkerProcess.module(
            "headrace", "worker", APP, "--lease", "2s", *words,
            directory=self.directory, env=self.environment,
        )  # fmt: skip

    async def begin(self, task: str, seconds: float) -> str:
        """Enqueue a job that writes to the note, and wait until it runs; return its id."""
        handle = await self.app.enqueue(task, queue="slow", seconds=seconds, note=str(self.note))
        await until(lambda: self.said() == "started", within=15, what="the handler runs")
        return handle.id

    def said(self) -> str:
        return self.note.read_text() if self.note.exists() else ""

    async def state(self, job_id: str) -> JobState:
        return (await self.app.job(job_id, queue="slow").status()).state


@pytest.fixture
async def crew(environment: dict[str, str], tmp_path: Path) -> AsyncIterator[Crew]:
    crew = Crew(environment, tmp_path)
    async with crew.app:
        yield crew


async def ended(worker: WorkerProcess, code: int, *, within: float = 10.0) -> None:
    """Wait for a worker's end and see that nothing in its log is a traceback."""
    assert await worker.wait(within) == code
    assert "Traceback" not in worker.stderr
    assert worker.stdout == ""


async def test_the_first_signal_lets_running_jobs_end(crew: Crew, loop: str) -> None:
    with crew.start("--loop", loop) as worker:
        job_id = await crew.begin("nap", 1.0)
        worker.term()
        await ended(worker, 0)
        assert crew.said() == "done"
        assert await crew.state(job_id) is JobState.COMPLETED
        assert f"loop={loop}" in worker.stderr
        for event in ("worker.started", "worker.stopping", "worker.stopped"):
            assert event in worker.stderr


async def test_the_second_signal_hands_jobs_back_at_once(crew: Crew) -> None:
    with crew.start("--shutdown-timeout", "5m", "--log-format", "json") as worker:
        job_id = await crew.begin("nap", LONG)
        worker.term()
        await until(lambda: "worker.stopping" in worker.stderr, what="the worker is stopping")
        worker.term()
        await ended(worker, 0)
        assert crew.said() == "cancelled"
        record = await crew.app.job(job_id, queue="slow").status()
        # Free of charge (G9): neither an attempt nor a stall.
        assert (record.state, record.failures, record.stalls) == (JobState.QUEUED, 0, 0)
        assert '"put_back":1' in worker.stderr.replace(" ", "")


@pytest.mark.usefixtures("redis_url")
async def test_the_grace_ends_by_itself(crew: Crew) -> None:
    with crew.start("--shutdown-timeout", "200ms") as worker:
        job_id = await crew.begin("nap", LONG)
        worker.term()
        await ended(worker, 0)
        assert await crew.state(job_id) is JobState.QUEUED


@pytest.mark.usefixtures("redis_url")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
async def test_the_third_signal_ends_a_worker_whose_loop_is_blocked(
    crew: Crew, loop: str, number: signal.Signals, code: int
) -> None:
    with crew.start("--loop", loop) as worker:
        await crew.begin("block", LONG)
        # Signals that are not yet taken merge, so they are sent until the process has ended.
        await until(lambda: signalled(worker, number), within=10, what="the worker has ended")
        assert worker.returncode == code
        assert "Traceback" not in worker.stderr


def signalled(worker: WorkerProcess, number: signal.Signals) -> bool:
    """Send a signal to a worker; return whether it has ended."""
    if worker.returncode is None:
        os.kill(worker.pid, number)
    return worker.returncode is not None


async def test_an_interrupt_from_the_terminal_reaches_the_whole_group(crew: Crew) -> None:
    with crew.start() as worker:
        job_id = await crew.begin("nap", 1.0)
        os.killpg(worker.pid, signal.SIGINT)
        await ended(worker, 0)
        assert await crew.state(job_id) is JobState.COMPLETED


async def test_a_quiet_worker_finishes_what_it_has_and_claims_no_more(crew: Crew) -> None:
    with crew.start() as worker:
        running_id = await crew.begin("nap", 1.0)
        os.kill(worker.pid, signal.SIGTSTP)
        await until(lambda: "worker.quiet" in worker.stderr, what="the worker is quiet")
        waiting = await crew.app.enqueue("nap", queue="slow", seconds=0, note="unused")
        await until(lambda: crew.said() == "done", what="the running job has ended")
        # A worker whose claims went on would have taken it before it was asked to stop.
        assert worker.returncode is None
        worker.term()
        await ended(worker, 0)
        assert await crew.state(running_id) is JobState.COMPLETED
        record = await waiting.status()
        assert (record.state, record.starts) == (JobState.QUEUED, 0)


async def test_a_worker_that_is_made_quiet_while_it_starts_claims_nothing(crew: Crew) -> None:
    log = EventLog()
    job = await crew.app.enqueue("nap", queue="slow", seconds=0, note=str(crew.note))
    worker = Worker(crew.app, ["slow"], lease=1, sweep_interval=0.2, emit=log)
    worker.quiet()
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await until(lambda: crew.app.queue("slow").workers(), what="the worker is registered")
        # A look at the queue after several of the worker's beats: it had the time to claim.
        await until(lambda: beats(crew.app), what="the worker beats")
        worker.stop()
    assert log.of(WorkerQuiet)
    assert (await job.status()).starts == 0


async def beats(app: App[None]) -> bool:
    """Return whether the worker has beaten a few times."""
    found = await clients_of(app).current().storage.beats("slow")
    return any(beat.count >= 3 for beat in found.values())


async def test_idle_workers_end_at_once_and_leave_no_name(crew: Crew) -> None:
    with crew.start("--name", "idle") as worker:
        await until(lambda: "worker.started" in worker.stderr, within=15, what="it has started")
        await until(lambda: crew.app.queue("slow").workers(), what="it is registered")
        worker.term()
        await ended(worker, 0)
        assert await crew.app.queue("slow").workers() == []


@pytest.mark.usefixtures("redis_url")
async def test_handlers_of_signals_are_put_back(crew: Crew) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGTSTP)]
    worker = Worker(crew.app, ["slow"], lease=1)
    with Signals() as signals:
        signals.obey(worker)
        signal.raise_signal(signal.SIGTERM)
        await worker.run()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGTSTP)] == before


@pytest.mark.usefixtures("redis_url")
async def test_a_worker_gives_up_when_redis_is_away_for_ten_seconds_at_its_start(
    crew: Crew,
) -> None:
    url = f"redis://:pa55word@127.0.0.1:{closed_port()}"
    with crew.start("--url", url, "--log-level", "warning") as worker:
        await ended(worker, 3, within=40)
        waiting, error = worker.stderr.splitlines()
        assert "storage.waiting" in waiting
        assert error.startswith("Error: Redis: ")
        assert "pa55word" not in worker.stderr


@pytest.mark.usefixtures("redis_url")
async def test_a_worker_that_waits_for_redis_can_be_stopped(crew: Crew) -> None:
    url = f"redis://127.0.0.1:{closed_port()}"
    with crew.start("--url", url) as worker:
        await until(lambda: "worker.connecting" in worker.stderr, within=15, what="it connects")
        worker.term()
        # It may come a moment before the worker handles signals.
        assert await worker.wait(15) in (0, -signal.SIGTERM)
        assert "Traceback" not in worker.stderr


@pytest.mark.usefixtures("redis_url")
async def test_a_worker_goes_on_when_nobody_reads_its_log(crew: Crew) -> None:
    read, write = os.pipe()
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headrace", "worker", APP, "--lease", "2s"),
        cwd=ROOT,
        env={**os.environ, **crew.environment},
        stderr=write,
    )
    os.close(write)
    try:
        job = await crew.app.enqueue("add", queue="quick", a=1)
        assert await job.result(timeout=patience(15)) == 2
        os.close(read)
        job = await crew.app.enqueue("add", queue="quick", a=2)
        assert await job.result(timeout=patience(15)) == 3
        assert worker.returncode is None
    finally:
        worker.terminate()
        await worker.wait()
    # It ended in order: a worker that died would be listed still.
    assert await crew.app.queue("quick").workers() == []
