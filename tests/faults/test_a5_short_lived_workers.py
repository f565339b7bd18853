"""Workers that live for a few jobs each: every queue still gets its share."""

from __future__ import annotations

from headrace import App, Worker
from tests.apps.operate_app import nap

QUEUES = [f"q{number}" for number in range(5)]
JOBS = 100
NAP_S = 0.02
"""Long enough that a worker of two jobs ends after two or three."""
WORKERS = 40
"""So many that chance passes over one of five queues once in 100 million times."""


async def served(app: App[None], weights: dict[str, int]) -> dict[str, int]:
    """Let one short-lived worker run after another; return the jobs that each queue had run."""
    task = app.task(name="nap", queue=QUEUES[0])(nap.function)
    for queue in weights:
        await app.enqueue_many(task.options(queue=queue).job(NAP_S) for _ in range(JOBS))
    for _ in range(WORKERS):
        await Worker(app, weights, concurrency=1, max_jobs=2).run()
    return {queue: (await app.queue(queue).stats()).history for queue in weights}


async def test_short_lived_workers_serve_every_queue(app: App[None]) -> None:
    counts = await served(app, dict.fromkeys(QUEUES, 1))
    assert all(counts.values()), counts


async def test_short_lived_workers_serve_the_heaviest_queue_most(app: App[None]) -> None:
    counts = await served(app, {queue: 10 if queue == "q2" else 1 for queue in QUEUES})
    assert max(counts, key=counts.__getitem__) == "q2", counts
