"""What ``headrace schedule`` stores is fired by ``headrace scheduler``, and told of."""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread

from headrace import App
from tests.cli.conftest import Cli
from tests.cli.schedules import add
from tests.support.processes import WorkerProcess
from tests.support.until import until


async def test_what_was_added_is_fired_and_its_history_names_the_jobs(
    cli: Cli, environment: dict[str, str], tmp_path: Path
) -> None:
    await to_thread.run_sync(add, cli, "--every", "100ms")
    app: App[None] = App(environment["HEADRACE_REDIS_URL"], tenant=environment["HEADRACE_TENANT"])

    async def has_fired() -> bool:
        return len(await app.schedules.history("mondays")) >= 3

    async with app:
        with WorkerProcess.module(
            "headrace", "scheduler", directory=tmp_path, env=environment
        ) as scheduler:
            await until(has_fired, within=15)
            scheduler.term()
            assert await scheduler.wait() == 0
    ran = await to_thread.run_sync(cli, "schedule", "history", "mondays", "-o", "json")
    told = [entry["job_id"] for entry in ran.json if entry["outcome"] == "enqueued"]
    jobs = await to_thread.run_sync(cli, "job", "list", "-n", "1000", "-o", "json")
    stored = {job["id"] for job in jobs.json}
    assert len(told) >= 3
    assert len(told) == len(set(told))
    assert set(told) <= stored
    assert all(job_id.startswith("mondays:20") for job_id in stored)
