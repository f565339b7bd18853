"""Bulk writes whose writer dies, or whose answers are lost: all of the rows, and each once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from headrace import App, Worker
from headrace.app import clients_of
from headrace.storage.redis.library import library
from headrace.testing import running
from headrace.testing.contract.steps import ContractIncarnation
from tests.apps.bulk_app import QUEUE, TENANT, WRITE, an_app, write
from tests.crash.crew import SWEEP_S
from tests.support.processes import WorkerProcess
from tests.support.proxy import Proxy
from tests.support.until import until

ROWS = 30_000
STAGES = ROWS // 500
FEW = 1_200
KILLED = -9
MOMENTS = {
    "half staged": STAGES // 2,
    "all staged": 1 + STAGES,
    "committed": 2 + STAGES,
    "half published": 4 + STAGES + STAGES // 2,
    "all published": 4 + 2 * STAGES,
}
"""After how many calls a write of `ROWS` has come so far.

It looks at the write when it begins, when it is committed, and after the first piece.
"""


@pytest.fixture
async def loads(crew_url: str) -> AsyncIterator[App[None]]:
    async with an_app(crew_url) as app:
        yield app


def start(
    url: str,
    directory: Path,
    rows: int,
    *,
    dies_after: int = 0,
    tenant: str = TENANT,
    name: str = "writer",
) -> WorkerProcess:
    """Start a writer."""
    words = (url, tenant, f"{rows}", f"{dies_after}")
    return WorkerProcess.module("tests.apps.bulk_app", *words, directory=directory, name=name)


async def killed_writer(url: str, directory: Path, rows: int, *, dies_after: int) -> None:
    """Let a writer die after so many calls."""
    with start(url, directory, rows, dies_after=dies_after) as writer:
        assert await writer.wait(timeout=20) == KILLED, writer.stderr


async def rows_of(app: App[None]) -> Counter[int]:
    """Claim all jobs of the queue, and return how often each row is there."""
    storage = clients_of(app).current().storage
    worker = await ContractIncarnation(storage, "taker").register()
    found: Counter[int] = Counter()
    while jobs := await worker.claim():
        found.update(msgspec.json.decode(job.payload)["row"] for job in jobs)
    return found


def once(rows: int) -> Counter[int]:
    """Return each row once."""
    return Counter(range(rows))


@pytest.mark.parametrize("moment", MOMENTS)
async def test_after_a_kill_at_any_moment_a_second_run_makes_it_whole(
    crew_url: str, loads: App[None], tmp_path: Path, moment: str
) -> None:
    await killed_writer(crew_url, tmp_path, ROWS, dies_after=MOMENTS[moment])
    is_committed = "staged" not in moment
    queued = (await loads.queue(QUEUE).stats()).queued
    assert (0 < queued < ROWS) == (moment == "half published")
    report = await write(loads, ROWS)
    assert (report["rows"], report["added"], report["is_known"]) == (ROWS, ROWS, is_committed)
    assert await rows_of(loads) == once(ROWS)


async def test_after_a_kill_between_any_two_steps_a_second_run_makes_it_whole(
    crew_url: str, tmp_path: Path
) -> None:
    ends = []
    for step in range(1, 20):
        tenant = f"step-{step}"
        with start(crew_url, tmp_path, FEW, dies_after=step, tenant=tenant) as writer:
            ends.append(await writer.wait(timeout=20))
        async with an_app(crew_url, tenant) as app:
            report = await write(app, FEW)
            assert (report["rows"], report["added"], report["duplicates"]) == (FEW, FEW, 0)
            assert await rows_of(app) == once(FEW)
        if ends[-1] == 0:
            break
    assert ends[-1] == 0
    assert set(ends[:-1]) == {KILLED}
    assert len(ends) > 8


async def test_a_workers_sweep_publishes_what_a_killed_writer_committed(
    crew_url: str, loads: App[None], tmp_path: Path
) -> None:
    await killed_writer(crew_url, tmp_path, FEW, dies_after=5)
    report = await loads.write_report(WRITE, queue=QUEUE)
    assert report is not None
    assert not report.is_published

    async def all_ran() -> bool:
        return (await loads.queue(QUEUE).stats()).history == FEW

    async with running(Worker(loads, queues=[QUEUE], sweep_interval=SWEEP_S, concurrency=100)):
        await until(all_ran)
    report = await loads.write_report(WRITE, queue=QUEUE)
    assert report is not None
    assert (report.is_published, report.added) == (True, FEW)


async def test_of_two_processes_with_one_id_one_brings_its_rows_in(
    crew_url: str, loads: App[None], tmp_path: Path
) -> None:
    with (
        start(crew_url, tmp_path, FEW, name="one") as one,
        start(crew_url, tmp_path, FEW, name="two") as two,
    ):
        for writer in (one, two):
            assert await writer.wait(timeout=20) == 0, writer.stderr
        reports = [msgspec.json.decode(writer.stdout, type=dict[str, Any]) for writer in (one, two)]
    assert sorted(report["is_known"] for report in reports) == [False, True]
    assert [report["added"] for report in reports] == [FEW, FEW]
    assert await rows_of(loads) == once(FEW)


async def test_what_a_killed_writer_staged_ends_by_its_time(
    redis_url: str, client: redis.Redis, tmp_path: Path
) -> None:
    await killed_writer(redis_url, tmp_path, FEW, dies_after=3)
    [stage] = client.keys(f"hr:{{{TENANT}:{QUEUE}}}:stage:*")
    assert 0 < client.pttl(stage) <= 6 * 3_600_000


@pytest.mark.parametrize("verb", ["read_write", "stage", "commit", "publish"])
async def test_a_lost_answer_is_asked_for_again(redis_url: str, proxy: Proxy, verb: str) -> None:
    lost = proxy.drop_next_reply(after=library().function(verb).encode())
    async with an_app(proxy.url) as app:
        report = await write(app, FEW)
        assert lost.is_set()
        assert (report["rows"], report["added"], report["is_known"]) == (FEW, FEW, False)
        assert await rows_of(app) == once(FEW)


async def test_a_lost_answer_to_a_discard_is_asked_for_again_too(
    redis_url: str, proxy: Proxy
) -> None:
    async with an_app(redis_url) as other, an_app(proxy.url) as app:
        late = app.bulk(WRITE, queue=QUEUE)
        async with late:
            await late.add(app.tasks["load"].job(1))
            await write(other, FEW)
            lost = proxy.drop_next_reply(after=library().function("discard").encode())
        assert lost.is_set()
        assert late.report.added == FEW
        assert await rows_of(app) == once(FEW)


async def test_a_write_that_is_given_up_at_any_moment_is_whole_or_not_there(
    redis_url: str,
) -> None:
    for n in range(0, 60, 5):
        async with an_app(redis_url, f"turn-{n}") as app:
            task = asyncio.create_task(write(app, FEW))
            for _ in range(n):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            report = await write(app, FEW)
            assert (report["rows"], report["added"]) == (FEW, FEW)
            assert await rows_of(app) == once(FEW)
