"""``headrace worker --watch``: real files, a real supervisor and its workers."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from headrace import JobState
from tests.apps.operate_app import QUEUE
from tests.cli.conftest import Cli
from tests.cli.workers import APP, Site, log, logged, site_on
from tests.support.jobs import ended
from tests.support.processes import WorkerProcess, kill_all
from tests.support.until import until

CODE = """
import asyncio
from pathlib import Path
from headrace import App

VERSION = {version}
app = App()

@app.task(name="version", queue="work")
async def version() -> int:
    return VERSION

@app.task(name="hold", queue="work")
async def hold(note: str) -> int:
    Path(note).write_text("started")
    while not Path(f"{{note}}.release").exists():
        await asyncio.sleep(0.01)
    return VERSION
"""


class Shop(Site):
    """A site whose app is a file that tests rewrite."""

    def __init__(self, url: str, directory: Path) -> None:
        super().__init__(url, directory)
        self.code = directory / "code"
        self.code.mkdir()
        self.environment["PYTHONPATH"] = os.pathsep.join(
            [str(self.code), *filter(None, [os.environ.get("PYTHONPATH")])]
        )

    def write(self, version: object) -> None:
        """Write the app's file, whole at once as an editor does."""
        new = self.code / "new"
        new.write_text(CODE.format(version=version))
        new.rename(self.code / "shop_app.py")

    @contextmanager
    def watching(self, *words: str, app: str = "shop_app") -> Iterator[WorkerProcess]:
        """Run a supervisor; afterwards nothing of it is left, however the block ends."""
        words = ("--watch", str(self.code), *words)
        with self.start(*words, app=app) as supervisor:
            try:
                yield supervisor
            finally:
                kill_all(processes(self))

    async def serves(self, version: int) -> None:
        """See that a worker runs a job with a version of the code."""
        job = await self.enqueue("version")
        record = await ended(job, within=40)
        assert record.state is JobState.COMPLETED
        assert await job.result(timeout=1) == version


def processes(shop: Shop) -> list[psutil.Process]:
    """Return the processes of a shop, found by its directory in their arguments."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(shop.code) in process.cmdline():
                found.append(process)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


async def worker_pid(supervisor: WorkerProcess, *, count: int = 1) -> int:
    """Wait for the n-th worker, and return its process id."""
    name: str = (await log(supervisor, "worker.started", count=count))["worker"]
    return int(name.rpartition(":")[2])


async def nobody_is_left(shop: Shop) -> None:
    await until(lambda: not processes(shop), within=30, what="no process is left")


@pytest.fixture(params=["redis"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    async with site_on(request, tmp_path, Shop) as shop:
        shop.write(1)
        yield shop


async def test_a_change_starts_the_new_code(shop: Shop) -> None:
    with shop.watching() as supervisor:
        await shop.serves(1)
        shop.write(2)
        line = await log(supervisor, "watch.changed")
        assert any(name.endswith("shop_app.py") for name in line["files"])
        await worker_pid(supervisor, count=2)
        await shop.serves(2)
        assert len(logged(supervisor, "worker.stopped")) == 1, "the old one ended in order"
        assert len(await shop.app.queue(QUEUE).workers()) == 1


async def test_broken_code_keeps_the_old_worker_and_a_repair_replaces_it(shop: Shop) -> None:
    with shop.watching() as supervisor:
        pid = await worker_pid(supervisor)
        shop.write("oops(")
        assert (await log(supervisor, "watch.refused"))["kept"] is True
        assert "Error: the app 'shop_app' can't be imported: SyntaxError" in supervisor.stderr
        await shop.serves(1)
        shop.write("1 / 0")
        await log(supervisor, "watch.refused", count=2)
        assert "ZeroDivisionError" in supervisor.stderr
        await shop.serves(1)
        assert psutil.pid_exists(pid)
        assert len(logged(supervisor, "worker.started")) == 1
        shop.write(3)
        await worker_pid(supervisor, count=2)
        await shop.serves(3)


async def test_code_that_is_broken_at_the_start_is_waited_for(shop: Shop) -> None:
    shop.write("oops")
    with shop.watching() as supervisor:
        assert (await log(supervisor, "watch.refused"))["kept"] is False
        shop.write(2)
        await shop.serves(2)


async def test_other_files_change_nothing(shop: Shop) -> None:
    with shop.watching() as supervisor:
        await worker_pid(supervisor)
        (shop.code / "notes.txt").write_text("no code")
        (shop.code / "__pycache__").mkdir(exist_ok=True)
        (shop.code / "__pycache__" / "x.py").write_text("no code of ours")
        shop.write(2)
        await worker_pid(supervisor, count=2)
        changed = [name for line in logged(supervisor, "watch.changed") for name in line["files"]]
        assert {Path(name).name for name in changed} == {"shop_app.py"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
async def test_a_signal_ends_both_and_gives_jobs_the_grace(
    shop: Shop, number: signal.Signals
) -> None:
    with shop.watching() as supervisor:
        job = await shop.begin("hold")
        # To the whole group, as a terminal sends it: the worker must hear it once.
        os.killpg(supervisor.pid, number)
        await log(supervisor, "worker.stopping")
        shop.release()
        assert await supervisor.wait(30) == 0
        assert await job.result(timeout=1) == 1
        assert "Traceback" not in supervisor.stderr
        await nobody_is_left(shop)


async def test_the_second_signal_hands_jobs_back(shop: Shop) -> None:
    with shop.watching("--shutdown-timeout", "5m") as supervisor:
        job = await shop.begin("hold")
        supervisor.term()
        await log(supervisor, "worker.stopping")
        supervisor.term()
        assert await supervisor.wait(30) == 0
        record = await job.status()
        assert (record.state, record.failures, record.stalls) == (JobState.QUEUED, 0, 0)
        await nobody_is_left(shop)


async def test_a_reload_gives_jobs_the_grace_whatever_changes_meanwhile(shop: Shop) -> None:
    with shop.watching("--shutdown-timeout", "5m") as supervisor:
        job = await shop.begin("hold")
        shop.write(2)
        await log(supervisor, "worker.stopping")
        shop.write(3)
        await log(supervisor, "watch.changed", count=2)
        assert (await job.status()).state is JobState.ACTIVE
        shop.release()
        record = await ended(job, within=30)
        assert (record.state, record.starts) == (JobState.COMPLETED, 1)
        await shop.serves(3)


async def test_a_signal_ends_a_supervisor_that_waits_for_a_change(shop: Shop) -> None:
    shop.write("oops")
    with shop.watching() as supervisor:
        await log(supervisor, "watch.refused")
        supervisor.term()
        assert await supervisor.wait(30) == 4
        await nobody_is_left(shop)


async def test_a_worker_ends_in_order_when_its_supervisor_is_killed(shop: Shop) -> None:
    with shop.watching() as supervisor:
        job = await shop.begin("hold")
        supervisor.kill()
        await log(supervisor, "worker.stopping")
        shop.release()
        await nobody_is_left(shop)
        assert await job.result(timeout=1) == 1
        assert len(logged(supervisor, "worker.stopped")) == 1


async def test_a_blocked_worker_ends_too_when_its_supervisor_is_killed(shop: Shop) -> None:
    with shop.watching("--shutdown-timeout", "0s", app=APP) as supervisor:
        await shop.begin("block")
        supervisor.kill()
        await nobody_is_left(shop)


async def test_a_worker_that_crashes_starts_again(shop: Shop) -> None:
    with shop.watching() as supervisor:
        os.kill(await worker_pid(supervisor), signal.SIGKILL)
        line = await log(supervisor, "worker.process_ended")
        assert (line["signal"], line["restarts"]) == ("SIGKILL", True)
        await worker_pid(supervisor, count=2)
        await shop.serves(1)


async def test_a_worker_that_is_done_starts_again_on_a_change(shop: Shop) -> None:
    job = await shop.enqueue("version")
    with shop.watching("--burst") as supervisor:
        line = await log(supervisor, "worker.process_ended")
        assert (line["code"], line["restarts"]) == (0, False)
        assert await job.result(timeout=1) == 1
        job = await shop.enqueue("version")
        shop.write(2)
        await log(supervisor, "worker.process_ended", count=2)
        assert await job.result(timeout=1) == 2


async def test_a_change_replaces_all_processes(shop: Shop) -> None:
    with shop.watching("--processes", "2") as supervisor:
        await log(supervisor, "worker.started", count=2)
        shop.write("oops(")
        assert (await log(supervisor, "watch.refused"))["kept"] is True
        assert logged(supervisor, "worker.process_ended") == []
        shop.write(2)
        await log(supervisor, "worker.started", count=4)
        await log(supervisor, "worker.stopped", count=2)
        for _ in range(5):
            await shop.serves(2)
        await until(shop.app.queue(QUEUE).workers, what="there are workers")
        assert len(await shop.app.queue(QUEUE).workers()) == 2
        supervisor.term()
        assert await supervisor.wait(30) == 0
        await nobody_is_left(shop)


def test_the_extra_is_named_when_it_is_missing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "watchfiles.py").write_text("raise ImportError('not here')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ran = cli("worker", "no.such.app", "--watch", env={"PYTHONPATH": path})
    assert ran.code == 2
    assert ran.err == (
        "Error: --watch: watchfiles is not installed: pip install watchfiles "
        "(see headrace worker --help)\n"
    )


def test_an_app_in_the_place_of_a_directory_is_told_so(here: Cli) -> None:
    ran = here("worker", "--watch", "shop:app")
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran
    assert "--watch takes directories, an app stands before it" in ran.err
