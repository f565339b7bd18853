"""A storage that can be read and refuses all writes: nobody can beat, and nobody has died."""

from __future__ import annotations

from headrace import App
from tests.apps.crash_app import QUEUE
from tests.crash.crew import LEASE_S, NOISE_S, Crew
from tests.support.ledger import check_ledger
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until


async def test_jobs_that_ran_when_all_writes_were_refused_are_charged_with_nothing(
    own_crew: Crew, own_app: App[None], own_server: RedisServer
) -> None:
    """G9: both workers are fenced, and hand back what they ran when they can write again."""
    workers = [await own_crew.worker(name, lease=3 * LEASE_S).ready() for name in ("a", "b")]
    jobs = [await own_app.enqueue("hold", gate="gate") for _ in range(6)]
    for job in jobs:
        await own_crew.ledger.started(job.id)
    client = own_server.client()
    client.config_set("min-replicas-to-write", 1)
    await until(
        lambda: all(worker.count("QueueFenced") for worker in workers), within=3 * LEASE_S + NOISE_S
    )
    # By now each has stopped its handlers and tried to hand their jobs back.
    await until(lambda: all(is_cut(own_crew, job.id) for job in jobs), within=NOISE_S)
    client.config_set("min-replicas-to-write", 0)
    own_crew.open("gate")
    for job in jobs:
        assert await job.result(timeout=patience(10)) in ("a", "b")
    records = await check_ledger(own_app, own_crew.ledger, [job.id for job in jobs], queue=QUEUE)
    assert {(r.starts, r.failures, r.stalls) for r in records.values()} == {(2, 0, 0)}


def is_cut(crew: Crew, job_id: str) -> bool:
    """Whether a handler was left by a cancellation."""
    return any(entry.kind == "cut" for entry in crew.ledger.entries(job_id))
