"""The weights of queues that are set while workers run."""

from __future__ import annotations

from collections import Counter
from functools import partial

from headrace import App, Worker
from headrace.testing import running
from tests.support.until import until

JOBS = 800
SET_AT, FOLLOWED_AT = 300, 400
"""The start at which weights are set anew, and that from which on workers follow."""


async def test_workers_follow_a_weight_that_is_set_while_they_run(app: App[None]) -> None:
    ran: list[str] = []

    async def weigh(**weights: int) -> None:
        for queue, weight in weights.items():
            assert (await app.queue(queue).configure(weight=weight)).weight == weight

    async def note(queue: str) -> None:
        ran.append(queue)
        if len(ran) == SET_AT:
            await weigh(a=9, b=1)

    @app.task(name="a", queue="a")
    async def in_a() -> None:
        await note("a")

    @app.task(name="b", queue="b")
    async def in_b() -> None:
        await note("b")

    async def has_run(n: int) -> bool:
        return len(ran) >= n

    for task in (in_a, in_b):
        await app.enqueue_many(task.job() for _ in range(JOBS))
    await weigh(a=1, b=9)
    # Over what the worker is started with.
    async with running(Worker(app, {"a": 5, "b": 5}, concurrency=10)):
        await until(partial(has_run, 2 * JOBS), within=20)
    before, behind = Counter(ran[:SET_AT]), Counter(ran[FOLLOWED_AT : FOLLOWED_AT + SET_AT])
    assert before["b"] > 3 * before["a"]
    assert behind["a"] > 3 * behind["b"]
