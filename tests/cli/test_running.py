"""What commands show of running jobs: progress, lanes, processes, what could not be stopped."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from headrace import App, Context, JobState, Worker
from headrace.testing import EventLog, running
from tests.apps import slots_app
from tests.cli.conftest import Cli
from tests.support.jobs import ended
from tests.support.until import patience, until

START_S = 30.0


@asynccontextmanager
async def worker_on(environment: dict[str, str], **options: Any) -> AsyncIterator[App[Any]]:
    """Run a worker with handlers of every kind while the block runs."""
    app: App[Any] = App(environment["HEADRACE_REDIS_URL"], tenant=environment["HEADRACE_TENANT"])
    slots_app.adopt(app)
    async with app, running(Worker(app, ["cpu"], name="w1", emit=EventLog(), **options)):
        yield app


async def shown(cli: Cli, *words: str) -> str:
    """Run a command beside the worker in this loop."""
    result = await anyio.to_thread.run_sync(lambda: cli(*words))
    return result.out


async def document(cli: Cli, *words: str) -> Any:
    """Return the JSON of a command, likewise."""
    result = await anyio.to_thread.run_sync(lambda: cli(*words, "-o", "json"))
    return result.json


async def test_a_job_is_shown_with_its_progress(here: Cli, environment: dict[str, str]) -> None:
    let_go = anyio.Event()
    async with worker_on(environment, process_slots=0) as app:

        @app.task(queue="cpu")
        async def work(context: Context) -> None:
            context.progress(0.657, "page 2\x1b[31m")
            await let_go.wait()

        job = await work.enqueue()

        async def is_told() -> bool:
            return (await job.status()).progress is not None

        await until(is_told, within=10)
        assert "progress     [#############.......] 66% page 2 [31m\n" in await shown(
            here, "job", "show", job.id
        )
        told = await document(here, "job", "show", job.id)
        assert (told["progress"], told["progress_text"]) == (0.657, "page 2 [31m")
        let_go.set()
        await job.result(timeout=patience(10))


async def test_a_job_that_could_not_be_stopped_says_so(
    here: Cli, environment: dict[str, str]
) -> None:
    let_go = threading.Event()
    begun = threading.Event()
    async with worker_on(environment, process_slots=0) as app:

        @app.task(queue="cpu")
        def hold() -> None:
            begun.set()
            let_go.wait(START_S)

        job = await hold.enqueue()
        await until(begun.is_set, within=10)
        await job.cancel()
        assert (await ended(job)).state is JobState.CANCELLED
        assert "cancelled (could_not_stop)" in await shown(here, "job", "show", job.id)
        assert (await document(here, "job", "show", job.id))["reason"] == "could_not_stop"
        let_go.set()


async def test_a_job_that_is_enqueued_by_its_name_goes_to_the_lane_of_its_task(
    here: Cli, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    args = f'{{"path": "{tmp_path}/first", "go": "{tmp_path}/go"}}'
    async with worker_on(environment, process_slots=1):
        words = ("-q", "cpu", "--id", "by-name", "--args", args, "--wait")
        await shown(here, "enqueue", "wait_for", *words)
        assert (await document(here, "job", "show", "by-name"))["lane"] == "process"


async def test_workers_and_queues_show_processes_and_their_lane(
    here: Cli, environment: dict[str, str], tmp_path: Path
) -> None:
    async with worker_on(environment, process_slots=1, concurrency=7) as app:
        call = {"go": str(tmp_path / "go")}
        first = await app.enqueue("wait_for", str(tmp_path / "first"), **call)
        await until((tmp_path / "first").exists, within=START_S)
        second = await app.enqueue("wait_for", str(tmp_path / "second"), **call)

        lines = (await shown(here, "workers")).splitlines()
        at = lines[0].index("PROCESS SLOTS")
        assert lines[1][at : at + len("PROCESS SLOTS")].split() == ["1"]
        [worker] = await document(here, "workers")
        assert (worker["concurrency"], worker["process_slots"], worker["active"]) == (7, 1, 1)

        assert "  lanes        1 queued for process\n" in await shown(here, "queue", "stats", "cpu")
        [stats] = await document(here, "queue", "stats", "cpu")
        assert (stats["queued"], stats["lanes"]) == (1, {"process": 1})
        job = await shown(here, "job", "show", second.id)
        assert ["lane", "process"] in [line.split() for line in job.splitlines()]
        (tmp_path / "go").touch()
        await first.result(timeout=patience(START_S))
        await second.result(timeout=patience(START_S))
