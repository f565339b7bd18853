"""``headrace queue delete``: refuses what is in use, and leaves nothing of what it deletes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from anyio import to_thread

from headrace import App, JobNotFound, Worker
from headrace.testing import running
from tests.cli.conftest import Cli


@pytest.fixture
async def app(environment: dict[str, str]) -> AsyncIterator[App[None]]:
    """Return an app on an empty storage."""
    app: App[None] = App(environment["HEADRACE_REDIS_URL"], tenant=environment["HEADRACE_TENANT"])
    async with app:
        yield app


def queues(here: Cli) -> list[str]:
    return [queue["queue"] for queue in here("queue", "list", "-o", "json").json]


def test_f19_a_queue_of_a_mistyped_name_can_be_deleted(here: Cli) -> None:
    """F19: it stayed in the list for ever."""
    here("enqueue", "t", "-q", "emial", "--id", "x")
    here("job", "cancel", "x")
    here("enqueue", "t", "-q", "email")
    ran = here("queue", "delete", "emial", "--yes")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "Queue 'emial' is deleted, with 1 job.\n"
    assert queues(here) == ["email"]
    ran = here("queue", "delete", "emial", "--yes")
    assert ran.code == 1
    assert ran.err.startswith("Error: there is no queue 'emial' in tenant ")


def test_f19_a_queue_that_was_paused_by_a_mistyped_name_is_seen_and_deleted(here: Cli) -> None:
    """F19: it was paused, and not in the list."""
    assert here("queue", "pause", "ghost").code == 0
    [ghost] = here("queue", "list", "-o", "json").json
    assert (ghost["queue"], ghost["paused"]) == ("ghost", True)
    assert here("queue", "delete", "ghost", "--yes").code == 0
    assert queues(here) == []
    here("enqueue", "t", "-q", "ghost")
    [ghost] = here("queue", "list", "-o", "json").json
    assert not ghost["paused"]


@pytest.mark.parametrize("state", ["queued", "scheduled"])
def test_a_queue_with_jobs_is_refused_unless_that_is_forced(here: Cli, state: str) -> None:
    here("enqueue", "t", "-q", "x", *(["--delay", "1h"] if state == "scheduled" else []))
    ran = here("queue", "delete", "x", "--yes")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        f"Error: queue 'x' has 1 {state}: wait for them, or delete them too with --force\n"
    )
    ran = here("queue", "delete", "x", "--force", "--dry-run")
    assert (ran.code, ran.out) == (0, "Dry run: nothing was changed.\n")
    assert ran.err == f"This will delete queue 'x' with 1 {state}, and 0 ended jobs.\n"
    assert queues(here) == ["x"]
    assert here("queue", "delete", "x", "--force").code == 2  # nobody to ask
    ran = here("queue", "delete", "x", "--force", "--yes", "-o", "json")
    assert ran.json == {"queue": "x", "deleted": True, "jobs": 1, "dry_run": False}
    assert queues(here) == []


async def test_a_forced_deletion_ends_active_jobs_and_leaves_nothing(
    app: App[None], cli: Cli
) -> None:
    started, ended = anyio.Event(), anyio.Event()

    @app.task(name="hold", queue="x")
    async def hold() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    @app.task(name="fail", queue="x", max_attempts=1)
    async def fail() -> None:
        raise ValueError

    async with running(Worker(app, lease=2)):
        failed = await fail.enqueue()
        with pytest.raises(Exception, match="ValueError"):
            await failed.result(timeout=20)
        job = await hold.enqueue()
        await started.wait()
        ran = await to_thread.run_sync(cli, "queue", "delete", "x", "--yes")
        assert (ran.code, ran.out) == (1, "")
        assert "queue 'x' has 1 active, 1 dead letter, 1 worker: " in ran.err
        ran = await to_thread.run_sync(cli, "queue", "delete", "x", "--yes", "--force")
        assert (ran.code, ran.err) == (0, "")
        await ended.wait()
        with pytest.raises(JobNotFound):
            await job.status()
        with pytest.raises(JobNotFound):
            await failed.status()
        # The worker serves it anew.
        ok = await app.enqueue("fail")
        with pytest.raises(Exception, match="ValueError"):
            await ok.result(timeout=20)
