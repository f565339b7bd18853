"""Fairness with real workers on every storage: a key waits for one job of each other key a turn."""

from __future__ import annotations

from collections import Counter

import pytest

from headrace import App, Worker
from headrace.testing import EventLog, running
from tests.support.until import until

MANY = 2_000
TEN = 10


class Began:
    """The keys of the jobs that began, in that order."""

    def __init__(self, app: App[None]) -> None:
        self.keys: list[str] = []

        @app.task(name="serve", fair_by="key", keep=0, result_ttl=0)
        async def serve(key: str, n: int) -> None:
            self.keys.append(key)

        self.serve = serve

    def others_before_each(self, key: str) -> list[int]:
        """Return how many jobs of other keys began before each of a key, since the one before."""
        counts, others = [], 0
        for began in self.keys:
            if began == key:
                counts.append(others)
                others = 0
            else:
                others += 1
        return counts


@pytest.fixture
def began(app: App[None]) -> Began:
    return Began(app)


async def has_begun(began: Began, key: str, n: int) -> None:
    await until(lambda: began.keys.count(key) >= n, within=60, what=f"{n} of {key} have begun")


@pytest.mark.parametrize("keys", [1, 5])
async def test_ten_jobs_wait_for_one_of_each_other_key_a_turn(
    app: App[None], began: Began, keys: int
) -> None:
    async with app:
        await app.enqueue_many(began.serve.job(f"many-{n % keys}", n) for n in range(MANY))
        await app.enqueue_many(began.serve.job("few", n) for n in range(TEN))
        async with running(Worker(app, concurrency=1, emit=EventLog())):
            await has_begun(began, "few", TEN)
    assert max(began.others_before_each("few")) <= keys


async def test_who_comes_while_others_run_waits_for_a_turn_of_each(
    app: App[None], began: Began
) -> None:
    async with app:
        await app.enqueue_many(began.serve.job(f"many-{n % 3}", n) for n in range(MANY))
        async with running(Worker(app, concurrency=1, emit=EventLog())):
            await has_begun(began, "many-0", 5)
            await app.enqueue_many(began.serve.job("few", n) for n in range(TEN))
            await has_begun(began, "few", TEN)
    assert max(began.others_before_each("few")[1:]) <= 3


async def test_with_many_slots_keys_get_as_many_of_them(app: App[None], began: Began) -> None:
    async with app:
        for key in "abcd":
            await app.enqueue_many(began.serve.job(key, n) for n in range(200))
        async with running(Worker(app, concurrency=8, emit=EventLog())):
            await until(lambda: len(began.keys) >= 400, within=60)
    begun = Counter(began.keys[:400])
    assert max(begun.values()) - min(begun.values()) <= 8
