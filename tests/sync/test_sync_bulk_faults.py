"""Bulk writes of threads that are interrupted, in each other's way, cut off or wrong."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace import (
    App,
    InvalidOption,
    Job,
    JobDraft,
    StorageUnavailable,
    SyncApp,
    SyncTask,
    UsageError,
    WriteReport,
)
from headrace.storage.redis.library import library
from headrace.testing import Kit
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

WRITE = "import-7"
ROWS = 1_200


@pytest.fixture
def load(app: SyncApp[None]) -> SyncTask[[int], int]:
    @app.task(name="load")
    def load(row: int) -> int:
        return row

    return load


def jobs_of(load: SyncTask[[int], int]) -> Iterator[Job[int]]:
    return (load.options(id=f"row-{row}").job(row) for row in range(ROWS))


def queued(app: SyncApp[Any]) -> int:
    return app.queue("default").stats().queued


def test_an_interrupt_in_the_block_leaves_nothing(
    app: SyncApp[None], load: SyncTask[[int], int]
) -> None:
    def write() -> None:
        with app.bulk(WRITE) as bulk:
            bulk.add_many(jobs_of(load))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert app.write_report(WRITE) is None
    assert queued(app) == 0
    with app.bulk(WRITE) as again:
        again.add_many(jobs_of(load))
    assert again.report.added == ROWS


def test_of_two_writers_of_one_id_one_brings_in_its_jobs(
    app: SyncApp[None], load: SyncTask[[int], int]
) -> None:
    with app.bulk(WRITE) as late:
        late.add(load.job(1))
        with app.bulk(WRITE) as early:
            early.add_many(jobs_of(load))
    assert (early.report.is_known, late.report.is_known) == (False, True)
    assert queued(app) == ROWS


def test_what_is_called_before_an_enqueue_sees_each_job(
    app: SyncApp[None], load: SyncTask[[int], int]
) -> None:
    seen = []

    @app.before_enqueue
    async def note(draft: JobDraft) -> None:
        seen.append(draft.id)

    with app.bulk(WRITE) as bulk:
        bulk.add_many(load.options(id=name).job(1) for name in "ab")
    assert seen == ["a", "b"]


def test_an_async_app_and_its_twin_know_each_others_writes(storage_url: str) -> None:
    inner = App(storage_url, tenant=f"test-{secrets.token_hex(6)}")

    @inner.task(name="load")
    async def load(row: int) -> int:
        return row

    with SyncApp(inner) as app:
        with app.bulk(WRITE) as bulk:
            bulk.add(load.job(1))
        assert bulk.report.added == 1


WRONG: dict[str, Callable[[SyncApp[None], SyncTask[[int], int]], Any]] = {
    "has not begun": lambda app, load: app.bulk(WRITE).add(load.job(1)),
    "has ended": lambda app, load: ended(app).add_many([load.job(1)]),
    "of queue 'mail'": lambda app, load: within(app, load.options(queue="mail").job(1)),
    "is no job": lambda app, load: within(app, load),
}


def ended(app: SyncApp[None]) -> Any:
    with app.bulk(WRITE) as bulk:
        pass
    return bulk


def within(app: SyncApp[None], job: Any) -> None:
    with app.bulk(WRITE) as bulk:
        bulk.add(job)


@pytest.mark.parametrize("words", WRONG)
def test_what_can_not_be_added_is_refused(
    app: SyncApp[None], load: SyncTask[[int], int], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        WRONG[words](app, load)
    assert queued(app) == 0


def test_what_is_out_of_bounds_is_refused_before_anything_is_sent() -> None:
    with SyncApp("redis://localhost:1", retry_for=0) as nowhere:
        with pytest.raises(InvalidOption, match="batch=-1"):
            nowhere.bulk(WRITE, batch=-1)
        with pytest.raises(InvalidOption, match="write id ''"):
            nowhere.write_report("")
        with pytest.raises(StorageUnavailable), nowhere.bulk(WRITE):
            pytest.fail("the block has begun")


async def test_in_a_kit_its_jobs_are_seen_and_run() -> None:
    app = SyncApp("memory://")
    ran = []

    @app.task(name="load")
    def load(row: int) -> None:
        ran.append(row)

    async with Kit(app) as kit:
        with app.bulk(WRITE) as bulk:
            bulk.add_many(load.job(row) for row in range(3))
        assert len(kit.enqueued("load")) == 3
        await kit.run_until_idle()
    assert sorted(ran) == [0, 1, 2]


@pytest.mark.parametrize("verb", ["read_write", "stage", "commit", "publish"])
async def test_a_lost_answer_is_asked_for_again(
    redis_server: RedisServer, redis_url: str, verb: str
) -> None:
    async with Proxy(redis_server.port) as proxy:
        lost = proxy.drop_next_reply(after=library().function(verb).encode())
        with SyncApp(proxy.url) as app:
            jobs = (app.task_ref("load", queue="default").job(row=row) for row in range(ROWS))

            def write() -> WriteReport:
                with app.bulk(WRITE) as bulk:
                    bulk.add_many(jobs)
                return bulk.report

            report = await asyncio.to_thread(write)
        assert lost.is_set()
        assert (report.rows, report.added, report.is_known) == (ROWS, ROWS, False)
