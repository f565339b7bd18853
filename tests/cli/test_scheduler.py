"""``headrace scheduler``, and ``headrace worker --no-scheduler``."""

from __future__ import annotations

import http.client
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace import Every
from tests.apps.ticking_app import QUEUE
from tests.cli.conftest import Cli
from tests.cli.workers import START_S, Site, log, logged, site_on
from tests.support.processes import WorkerProcess
from tests.support.until import until

APP = "tests.apps.ticking_app"


@pytest.fixture(params=["redis", "file"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with site_on(request, tmp_path, Site) as site:
        yield site


def schedule(site: Site, *words: str) -> WorkerProcess:
    """Start ``headrace scheduler`` with JSON logs of all that happens."""
    return WorkerProcess.module(
        "headrace", "scheduler", "--log-format", "json", "--log-level", "debug", *words,
        directory=site.directory, name="scheduler", env=site.environment,
    )  # fmt: skip


async def stop(process: WorkerProcess) -> None:
    """Send SIGTERM, and see that it ends well."""
    process.term()
    assert await process.wait(START_S) == 0
    assert "Traceback" not in process.stderr


async def test_it_stores_what_an_app_declares_and_fires_it(site: Site) -> None:
    with schedule(site, APP, "--name", "alone") as process:
        fired = await log(process, "schedule.fired")
        assert (fired["schedule"], fired["queue"], fired["outcome"]) == ("tick", QUEUE, "enqueued")
        await stop(process)
    [connecting] = logged(process, "scheduler.connecting")
    assert (connecting["scheduler"], connecting["app"]) == ("alone", APP)
    [synced] = logged(process, "schedules.synced")
    assert (synced["app"], synced["declared"], synced["added"]) == ("ticking", 1, 1)
    [stopped] = logged(process, "scheduler.stopped")
    assert stopped["scheduler"] == "alone"
    job = await site.app.job(fired["job_id"], queue=QUEUE).status()
    assert job.starts == 0


async def test_without_an_app_it_fires_what_is_stored(site: Site) -> None:
    job = site.app.task_ref("tick", queue=QUEUE).job()
    await site.app.schedules.put("stored", job, Every(0.2))
    with schedule(site) as process:
        fired = await log(process, "schedule.fired")
        assert fired["schedule"] == "stored"
        await stop(process)
    assert logged(process, "schedules.synced") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
async def test_other_signals_end_it_too(site: Site, number: signal.Signals) -> None:
    with schedule(site, APP) as process:
        await log(process, "schedule.fired")
        os.kill(process.pid, number)
        assert await process.wait(START_S) == 0


async def test_probes_are_told_how_it_is(site: Site) -> None:
    with schedule(site, APP, "--health-port", "0", "--health-host", "127.0.0.1") as process:
        port = (await log(process, "health.listening"))["port"]

        def status(path: str) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path)
            return connection.getresponse().status

        await until(lambda: status("/readyz") == 200, within=START_S)
        assert [status(path) for path in ("/livez", "/startupz", "/else")] == [200, 200, 404]
        await stop(process)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--import", "shop"], "--import goes with an app"),
        ([APP, "--health-host", "::1"], "--health-host goes with --health-port"),
        (["--url", "memory://"], "is the memory of one process"),
        (["--name", "a\tb"], "scheduler name"),
    ],
    ids=["import", "host", "memory", "name"],
)
@pytest.mark.parametrize("cli_url", ["file"], indirect=True)
def test_what_makes_no_sense_is_refused(here: Cli, words: list[str], says: str) -> None:
    ran = here("scheduler", *words)
    assert ran.code == 2
    assert says in ran.err


async def test_a_worker_may_leave_schedules_to_others(site: Site) -> None:
    with site.start("--no-scheduler", app=APP) as worker:
        await log(worker, "worker.started")
        job = await site.app.enqueue("tick", queue=QUEUE)
        assert await job.result(timeout=START_S) == 1
        assert [each.id async for each in site.app.schedules.list()] == []
        worker.term()
        await worker.wait(START_S)
    with site.start(app=APP, HEADRACE_SCHEDULER="1") as worker:
        await log(worker, "schedules.synced")
        assert [each.id async for each in site.app.schedules.list()] == ["tick"]
