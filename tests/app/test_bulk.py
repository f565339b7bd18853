"""Bulk writes: all of the jobs or none, each once, and the same again under the same id."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    App,
    InvalidOption,
    Job,
    JobDraft,
    JobState,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
    Task,
    UsageError,
    Worker,
    WriteReport,
)
from headrace.app import clients_of
from headrace.testing import Kit, running
from tests.storage.foreign import OldStorage
from tests.support.nowhere import unreachable_app
from tests.support.openings import opening
from tests.support.redis_server import RedisServer
from tests.support.until import until

WRITE = "import-7"
ROWS = 1_200


def report(**changes: Any) -> WriteReport:
    """Return what is told of a write of all rows."""
    told: dict[str, Any] = {
        "id": WRITE,
        "queue": "default",
        "batch": 0,
        "rows": ROWS,
        "added": ROWS,
        "duplicates": 0,
        "is_known": False,
        "is_published": True,
    }
    return WriteReport(**{**told, **changes})


@pytest.fixture
def load(app: App[None]) -> Task[[int], int]:
    @app.task(name="load")
    async def load(row: int) -> int:
        return row

    return load


def jobs_of(load: Task[[int], int], rows: int = ROWS) -> Iterator[Job[int]]:
    """Yield the jobs of a file's rows."""
    return (load.options(id=f"row-{row}").job(row) for row in range(rows))


async def queued(app: App[None]) -> int:
    """Return how many jobs wait."""
    return (await app.queue("default").stats()).queued


async def test_all_jobs_are_there_once_the_block_has_ended(
    app: App[None], load: Task[[int], int]
) -> None:
    async with app.bulk(WRITE) as bulk:
        await bulk.add_many(jobs_of(load))
        assert await queued(app) == 0
    assert bulk.report == report()
    assert await queued(app) == ROWS
    assert await app.write_report(WRITE) == report(is_known=True)
    assert [job.id async for job in app.queue("default").jobs("queued", limit=2)] == [
        "row-0",
        "row-1",
    ]


async def test_jobs_are_added_one_by_one_and_without_ids_too(
    app: App[None], load: Task[[int], int]
) -> None:
    async with app.bulk(WRITE) as bulk:
        for row in range(ROWS):
            await bulk.add(load.job(row))
    assert bulk.report == report()
    async with running(Worker(app, concurrency=100)):
        await until(lambda: ended(app, ROWS))


async def ended(app: App[None], n: int) -> bool:
    """Whether so many jobs have ended."""
    return (await app.queue("default").stats()).history == n


async def test_run_again_it_brings_in_nothing_and_reads_nothing(
    app: App[None], load: Task[[int], int]
) -> None:
    async with app.bulk(WRITE) as bulk:
        assert not bulk.is_known
        await bulk.add_many(jobs_of(load))

    unread = map(pytest.fail, ["it is read"])
    async with app.bulk(WRITE) as again:
        assert again.is_known
        await again.add_many(unread)
        await again.add(load.options(id="another").job(1))
    assert again.report == report(is_known=True)
    assert await queued(app) == ROWS


async def test_an_id_that_is_there_is_a_duplicate(app: App[None], load: Task[[int], int]) -> None:
    await app.enqueue_many(jobs_of(load, 10))
    async with app.bulk(WRITE) as bulk:
        await bulk.add_many(jobs_of(load))
        await bulk.add(load.options(id="row-1199").job(1))
    assert bulk.report == report(rows=ROWS + 1, added=ROWS - 10, duplicates=11)


@pytest.mark.parametrize("replace_ended", [True, False])
async def test_a_dead_letter_makes_room_unless_it_is_to_stay(
    app: App[None], load: Task[[int], int], *, replace_ended: bool
) -> None:
    gone = await load.options(id="row-0").enqueue(0)
    await gone.cancel()
    async with app.bulk(WRITE, replace_ended=replace_ended) as bulk:
        await bulk.add_many(jobs_of(load))
    assert bulk.report.duplicates == (0 if replace_ended else 1)
    state = JobState.QUEUED if replace_ended else JobState.CANCELLED
    assert (await gone.status()).state is state


async def test_without_jobs_it_is_known_too(app: App[None]) -> None:
    async with app.bulk(WRITE) as bulk:
        pass
    assert bulk.report == report(rows=0, added=0)
    async with app.bulk(WRITE) as again:
        assert again.is_known


async def test_an_error_in_the_block_leaves_nothing_and_the_id_is_free(
    app: App[None], load: Task[[int], int]
) -> None:
    bulk = app.bulk(WRITE)

    async def write() -> None:
        async with bulk:
            await bulk.add_many(jobs_of(load))
            raise EOFError

    with pytest.raises(EOFError):
        await write()
    with pytest.raises(UsageError, match="has no report"):
        _ = bulk.report
    assert await app.write_report(WRITE) is None
    assert await queued(app) == 0
    async with app.bulk(WRITE) as again:
        await again.add_many(jobs_of(load))
    assert again.report == report()


async def test_a_block_that_is_cancelled_leaves_nothing(
    app: App[None], load: Task[[int], int]
) -> None:
    staged = asyncio.Event()

    async def write() -> None:
        async with app.bulk(WRITE) as bulk:
            await bulk.add_many(jobs_of(load))
            staged.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(write())
    await staged.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    storage = clients_of(app).current().storage
    assert await storage.publish("default") == 0
    assert await app.write_report(WRITE) is None


async def test_batches_of_a_write_are_told_together(app: App[None], load: Task[[int], int]) -> None:
    reports = []
    for batch, first in [(0, 0), (1, 2), (1, 4), (5, 6), (4, 8)]:
        async with app.bulk(WRITE, batch=batch) as bulk:
            await bulk.add_many(load.job(row) for row in (first, first + 1))
        reports.append(bulk.report)
    assert [told.is_known for told in reports] == [False, False, True, False, True]
    assert reports[-1] == report(batch=5, rows=6, added=6, is_known=True)


async def test_of_two_writers_of_one_id_one_brings_in_its_jobs(
    app: App[None], load: Task[[int], int]
) -> None:
    async with app.bulk(WRITE) as late:
        await late.add_many(load.job(row) for row in range(ROWS))
        async with app.bulk(WRITE) as early:
            await early.add_many(jobs_of(load))
        assert not late.is_known
    assert early.report == report()
    assert late.report == report(is_known=True)
    assert await queued(app) == ROWS


async def test_writes_of_several_ids_may_be_nested_and_run_at_once(
    app: App[None], load: Task[[int], int]
) -> None:
    async def write(name: str) -> WriteReport:
        async with app.bulk(name) as bulk:
            await bulk.add_many(load.job(row) for row in range(ROWS))
        return bulk.report

    async with app.bulk("outer") as outer:
        await outer.add(load.job(1))
        reports = await asyncio.gather(*(write(f"w{n}") for n in range(3)))
    assert [told.added for told in (*reports, outer.report)] == [ROWS] * 3 + [1]


async def test_coroutines_may_share_a_write(app: App[None], load: Task[[int], int]) -> None:
    async with app.bulk(WRITE) as bulk, asyncio.TaskGroup() as group:
        for first in range(0, ROWS, 100):
            group.create_task(bulk.add_many(load.job(n) for n in range(first, first + 100)))
    assert bulk.report == report()


async def test_what_is_called_before_an_enqueue_sees_each_job(
    app: App[None], load: Task[[int], int]
) -> None:
    @app.before_enqueue
    async def trace(draft: JobDraft) -> None:
        draft.headers["trace"] = draft.id

    async with app.bulk(WRITE) as bulk:
        await bulk.add(load.options(id="a").job(1))
        await bulk.add_many([load.options(id="b").job(1)])
    storage = clients_of(app).current().storage
    for job_id in ("a", "b"):
        record = await storage.get("default", job_id)
        assert record is not None
        assert f'"trace":"{job_id}"'.encode() in record.options


async def test_options_and_large_arguments_arrive(app: App[None]) -> None:
    @app.task(name="measure")
    async def measure(text: str) -> int:
        return len(text)

    async with app.bulk(WRITE) as bulk:
        await bulk.add_many(
            measure.options(id=f"{n}", priority=n).job("x" * 900_000) for n in range(10)
        )
        await bulk.add(measure.options(id="later", delay=60).job(""))
    assert bulk.report == report(rows=11, added=11)
    assert (await app.job("later").status()).state is JobState.SCHEDULED
    async with running(Worker(app)):
        assert [await app.job(f"{n}").result(timeout=20) for n in range(10)] == [900_000] * 10


async def test_no_more_is_read_ahead_than_a_call_may_bring(app: App[None]) -> None:
    @app.task(name="measure")
    async def measure(text: str) -> None: ...

    jobs = (measure.job("x" * 900_000) for _ in range(100))
    tracemalloc.start()
    try:
        async with app.bulk(WRITE) as bulk:
            await bulk.add_many(jobs)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert bulk.report.rows == 100
    assert peak < 40_000_000


async def test_a_job_of_another_queue_is_refused_and_the_others_are_not_held_up(
    app: App[None], load: Task[[int], int]
) -> None:
    async with app.bulk(WRITE) as bulk:
        await bulk.add(load.job(1))
        with pytest.raises(UsageError, match="of queue 'mail', and write 'import-7' of 'default'"):
            await bulk.add(load.options(queue="mail").job(2))
        with pytest.raises(UsageError, match="is no job"):
            await bulk.add("job")  # type: ignore[arg-type]  # what is tested
        with pytest.raises(UsageError, match="can't be iterated"):
            await bulk.add_many(5)  # type: ignore[arg-type]  # what is tested
        with pytest.raises(UsageError, match="is no job"):
            await bulk.add_many([load(1)])
    assert bulk.report == report(rows=1, added=1)


async def test_outside_of_the_block_nothing_is_added(
    app: App[None], load: Task[[int], int]
) -> None:
    bulk = app.bulk(WRITE)
    with pytest.raises(UsageError, match="has not begun"):
        await bulk.add(load.job(1))
    with pytest.raises(UsageError, match="has no report"):
        _ = bulk.report
    async with bulk:
        pass
    for add in (bulk.add(load.job(1)), bulk.add_many([load.job(1)])):
        with pytest.raises(UsageError, match="has ended"):
            await add
    with pytest.raises(UsageError, match="has begun already"):
        await bulk.__aenter__()
    assert bulk.report == report(rows=0, added=0)
    assert await queued(app) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"write_id": ""}, "write id ''"),
        ({"write_id": "x" * 257}, "write id"),
        ({"write_id": "a\tb"}, "write id"),
        ({"write_id": 7}, "write id 7"),
        ({"queue": "no queue"}, "queue 'no queue'"),
        ({"batch": -1}, "batch=-1"),
        ({"batch": 2**53}, "batch="),
        ({"batch": True}, "batch=True"),
        ({"replace_ended": 1}, "replace_ended=1"),
        ({"stage_ttl": 59}, "stage_ttl=59"),
        ({"keep": 0}, "keep=0"),
        ({"keep": timedelta(days=9_999)}, "keep="),
        ({"keep": "1"}, "keep='1'"),
    ],
    ids=str,
)
async def test_what_is_out_of_bounds_is_refused_before_anything_is_sent(
    options: dict[str, Any], words: str
) -> None:
    async with unreachable_app() as nowhere:
        with pytest.raises(InvalidOption, match=words):
            nowhere.bulk(**{"write_id": WRITE, **options})
        if options.keys() & {"write_id", "queue"}:
            with pytest.raises(InvalidOption, match=words):
                await nowhere.write_report(**{"write_id": WRITE, **options})


async def test_a_storage_that_is_away_is_an_error_before_the_block() -> None:
    async with unreachable_app() as nowhere:
        with pytest.raises(StorageUnavailable):
            async with nowhere.bulk(WRITE):
                raise AssertionError("the block has begun")


async def test_a_storage_without_bulk_writes_refuses_them(
    app: App[None], load: Task[[int], int]
) -> None:
    old = OldStorage(clients_of(app).open_storage())
    with clients_of(app).replaced(opening(lambda: old)):
        with pytest.raises(StorageRefused, match="OldStorage has no bulk writes"):
            async with app.bulk(WRITE):
                raise AssertionError("the block has begun")
        with pytest.raises(StorageRefused, match="OldStorage has no bulk writes"):
            await app.write_report(WRITE)
        await app.aclose()
    assert await queued(app) == 0


async def test_a_storage_that_has_no_room_for_the_stages_has_none_of_them_left() -> None:
    with RedisServer() as server, server.client() as client:
        async with App(server.url) as app:
            bulk = app.bulk(WRITE)

            async def write() -> None:
                async with bulk:
                    await bulk.add_many(large_jobs(app, 1_000))
                    client.config_set("maxmemory", 1_000_000)
                    await bulk.add_many(large_jobs(app, 1_000))

            with pytest.raises(StorageFull):
                await write()
            assert client.keys("hr:*:stage:*") == []
            client.config_set("maxmemory", 0)
            assert await app.write_report(WRITE) is None


async def test_a_storage_that_has_no_room_for_the_jobs_gets_them_later() -> None:
    with RedisServer() as server, server.client() as client:
        async with App(server.url) as app:
            async with app.bulk(WRITE) as bulk:
                await bulk.add_many(large_jobs(app, ROWS))
                # Together full calls, so that nothing is left to stage at the end.
                await bulk.add_many(large_jobs(app, 300))
                client.config_set("maxmemory", 1_000_000)
            assert bulk.report == report(
                rows=ROWS + 300, added=0, duplicates=None, is_published=False
            )
            client.config_set("maxmemory", 0)
            async with app.bulk(WRITE) as again:
                pass
            assert again.report == report(rows=ROWS + 300, added=ROWS + 300, is_known=True)


def large_jobs(app: App[None], rows: int) -> Iterator[Job]:
    """Yield jobs that need some room."""
    return (app.task_ref("load", queue="default").job(row=f"{row}" * 500) for row in range(rows))


async def test_in_a_kit_its_jobs_are_seen_and_run() -> None:
    app = App("memory://")
    ran = []

    @app.task(name="load")
    async def load(row: int) -> None:
        ran.append(row)

    async with Kit(app) as kit:
        async with app.bulk(WRITE) as bulk:
            await bulk.add_many(load.job(row) for row in range(3))
        assert len(kit.enqueued(load)) == 3
        with suppress(UsageError):
            async with app.bulk("other") as other:
                await other.add(load.options(queue="mail").job(5))
        await kit.run_until_idle()
    assert ran == [0, 1, 2]
