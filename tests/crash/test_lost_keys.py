"""Keys of a live worker vanish, and workers of different releases share a queue."""

from __future__ import annotations

import pytest
import redis

from headrace import App, JobState
from tests.apps.crash_app import QUEUE
from tests.crash.crew import ROOT, Crew
from tests.support.ledger import check_ledger
from tests.support.until import patience, until


@pytest.mark.parametrize("lost", ["worker", "beats", "both"])
@pytest.mark.parametrize("others", [[], ["other"]], ids=["alone", "with-others"])
async def test_the_jobs_of_a_worker_whose_keys_vanished_are_found(
    lost: str, others: list[str], crew: Crew, app: App[None], client: redis.Redis
) -> None:
    """BC-11: evicted, deleted, or not in the backup that was restored; counts agree afterwards."""
    await crew.worker("owner").ready()
    jobs = [await app.enqueue("hold", gate="gate") for _ in range(3)]
    for job in jobs:
        await crew.ledger.started(job.id)
    for name in others:
        await crew.worker(name).ready()
    (owner,) = [w for w in await app.queue(QUEUE).workers() if w.name == "owner"]
    keys = {"worker": f"{ROOT}:worker:{owner.incarnation}", "beats": f"{ROOT}:beats"}
    client.delete(*(key for what, key in keys.items() if lost in (what, "both")))
    late = await app.enqueue("echo", value=1)
    assert await late.result(timeout=patience(8)) == 1
    crew.open("gate")
    ids = [job.id for job in (*jobs, late)]
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE, within=10)
    assert {record.state for record in records.values()} == {JobState.COMPLETED}
    assert {record.failures for record in records.values()} == {0}

    async def is_clean() -> bool:
        return not list(client.scan_iter(f"{ROOT}:processing:*"))

    await until(is_clean, within=8)


async def test_a_worker_that_dies_with_its_keys_leaves_its_jobs_to_others(
    crew: Crew, app: App[None], client: redis.Redis
) -> None:
    """BC-11: only the beat is gone, and nobody writes it again."""
    owner = await crew.worker("owner").ready()
    job = await app.enqueue("hold", gate="gate")
    await crew.ledger.started(job.id)
    owner.kill()
    (listed,) = await app.queue(QUEUE).workers()
    client.delete(f"{ROOT}:worker:{listed.incarnation}")
    await crew.worker("heir").ready()
    crew.open("gate")
    assert await job.result(timeout=patience(8)) == "heir"
    await check_ledger(app, crew.ledger, [job.id], queue=QUEUE)


async def test_a_task_that_only_newer_workers_know_waits_for_them(
    crew: Crew, app: App[None], client: redis.Redis
) -> None:
    """BC-48: during a rolling deploy it is released free of charge, and not dropped."""
    old = await crew.worker("old", without="echo").ready()
    job = await app.enqueue("echo", value=1)

    async def is_released() -> bool:
        return (await job.status()).state is JobState.SCHEDULED

    await until(is_released)
    await crew.worker("new").ready()

    async def has_run() -> bool:
        # Time passes: the release is over at once.
        for member, _ in client.zscan_iter(f"{ROOT}:delayed"):
            client.zadd(f"{ROOT}:delayed", {member: 0}, xx=True)
        client.rpush(f"{ROOT}:wake:default", "1")
        return (await job.status()).state is JobState.COMPLETED

    await until(has_run, within=10)
    record = await job.status()
    assert (record.failures, record.stalls) == (0, 0)
    assert {entry.worker for entry in crew.ledger.starts()} == {"new"}
    assert await app.tasks["hold"].options(id="known").enqueue("gate")
    crew.open("gate")
    assert await app.job("known", queue=QUEUE).result(timeout=patience(5)) in ("old", "new")
    assert old.returncode is None
