"""What one partition writes, and what the driver makes of it; without Spark, on both storages."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyspark import TaskContext

from headrace import (
    InvalidOption,
    InvalidRows,
    StageLost,
    StorageRefused,
    StorageUnavailable,
    SyncApp,
)
from headrace.spark.options import WriteOptions
from headrace.spark.writing import (
    Written,
    check_target,
    finish,
    give_up,
    in_arrow,
    read_written,
    terms_of,
    warn_of_history,
    write_partition,
)
from headrace.storage.connect import open_blocking
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.limits import STAGES_LIMIT
from headrace.storage.steps import at_once
from headrace.storage.values import WriteInfo
from tests.spark.support.stages import stages_left
from tests.support.redis_server import RedisServer


@pytest.fixture
def options(url: str) -> WriteOptions:
    return WriteOptions(url=url, task="load", retry_for_ms=0)


@pytest.fixture
def atomic(options: WriteOptions) -> WriteOptions:
    return replace(options, is_atomic=True)


def rows(*ids: str, payload: str = "{}") -> pa.RecordBatch:
    return pa.record_batch([pa.array(ids), pa.array([payload] * len(ids))], ["id", "payload"])


def many(count: int) -> Iterator[pa.RecordBatch]:
    """Return batches of 700 rows."""
    for first in range(0, count, 700):
        yield rows(*map(str, range(first, min(first + 700, count))))


def queued(app: SyncApp[None], queue: str = "default") -> int:
    return app.queue(queue).stats().queued


def test_a_direct_write_stores_rows_as_they_come(options: WriteOptions, app: SyncApp[None]) -> None:
    assert write_partition(many(1_500), options) == Written(1_500, added=1_500)
    assert queued(app) == 1_500
    assert write_partition(many(1_600), options) == Written(1_600, added=100)
    assert queued(app) == 1_600


def test_ids_that_are_twice_in_a_batch_are_duplicates(
    options: WriteOptions, app: SyncApp[None]
) -> None:
    assert write_partition([rows("1", "2", "1")], options) == Written(3, added=2)
    assert queued(app) == 2


def test_what_is_due_later_is_added_too(options: WriteOptions, app: SyncApp[None]) -> None:
    later = rows("1").append_column("delay", pa.array([60.0]))
    assert write_partition([later], options) == Written(1, added=1)
    assert app.queue("default").stats().scheduled == 1


def test_rows_may_name_their_queues(options: WriteOptions, app: SyncApp[None]) -> None:
    batch = rows("1", "2", "3").append_column("queue", pa.array(["a", None, "b"]))
    assert write_partition([batch], options) == Written(3, added=3)
    assert [queued(app, name) for name in ("a", "b", "default")] == [1, 1, 1]


def test_jobs_are_in_the_lane_that_workers_say(options: WriteOptions, app: SyncApp[None]) -> None:
    worker = IncarnationInfo(
        incarnation="w1",
        name="w",
        host="h",
        pid=1,
        version="1",
        concurrency=1,
        lease_ms=60_000,
        registered_ms=0,
        tasks={"load": "process"},
    )
    storage = open_blocking(options.url)
    at_once(storage.register("default", worker))
    storage.close()
    write_partition([rows("1")], options)
    write_partition([rows("2")], replace(options, task="other"))
    assert app.queue("default").stats().lanes == {"process": 1}


def test_a_bad_row_stops_a_write_before_its_batch(
    options: WriteOptions, app: SyncApp[None]
) -> None:
    bad = pa.concat_batches([rows("7"), rows("8", payload="x")])
    with pytest.raises(InvalidRows, match="the row with id '8' is no JSON object"):
        write_partition([rows("1"), bad], options)
    assert queued(app) == 1


def test_staged_rows_are_jobs_once_the_driver_has_committed(
    atomic: WriteOptions, app: SyncApp[None]
) -> None:
    terms = terms_of(atomic)
    parts = [write_partition(many(1_500), atomic, terms), write_partition([], atomic, terms)]
    assert [part.rows for part in parts] == [1_500, 0]
    assert queued(app) == 0
    seen: list[WriteInfo] = []
    report = finish(atomic, terms, parts, on_progress=seen.append)
    assert (report.rows, report.added, report.duplicates) == (1_500, 1_500, 0)
    assert queued(app) == 1_500
    assert seen[-1].added == 1_500


def test_a_write_of_no_rows_is_known_too(atomic: WriteOptions) -> None:
    terms = terms_of(atomic)
    assert finish(atomic, terms, []).rows == 0
    assert finish(atomic, terms, []).is_known


def test_a_write_that_is_known_reads_its_rows_and_stages_none(
    atomic: WriteOptions, app: SyncApp[None]
) -> None:
    again = replace(atomic, write_id="load-7")
    for is_known in (False, True):
        terms = terms_of(again)
        part = write_partition(many(900), again, terms)
        assert part.rows == 900
        assert (part.stage is None) == is_known
        assert finish(again, terms, [part]).is_known == is_known
    assert queued(app) == 900


@pytest.mark.slow
def test_who_commits_later_drops_what_it_has_staged(
    atomic: WriteOptions, app: SyncApp[None]
) -> None:
    again = replace(atomic, write_id="load-7")
    terms = terms_of(again)
    first, second = (write_partition([rows("1", "2")], again, terms) for _ in range(2))
    assert not finish(again, terms, [first]).is_known
    assert finish(again, terms, [second]).is_known
    assert stages_left(again.url) == 0
    assert queued(app) == 2


def test_a_write_that_failed_is_dropped(atomic: WriteOptions, app: SyncApp[None]) -> None:
    terms = terms_of(atomic)
    part = write_partition([rows("1")], atomic, terms)
    assert stages_left(atomic.url) == 1
    give_up(atomic, terms, [part])
    assert stages_left(atomic.url) == 0
    assert queued(app) == 0


def test_what_is_staged_no_more_fails_the_write(atomic: WriteOptions, app: SyncApp[None]) -> None:
    terms = terms_of(atomic)
    parts = [write_partition([rows(one)], atomic, terms) for one in ("1", "2")]
    give_up(atomic, terms, parts[:1])
    with pytest.raises(StageLost):
        finish(atomic, terms, parts)
    assert queued(app) == 0


def test_a_write_that_failed_after_its_commit_is_finished(
    atomic: WriteOptions, app: SyncApp[None]
) -> None:
    terms = terms_of(atomic)
    part = write_partition(many(1_500), atomic, terms)
    storage = open_blocking(atomic.url)
    assert part.stage is not None
    at_once(storage.commit(terms.queue, terms.write_id, [part.stage], keep_ms=60_000))
    storage.close()
    give_up(atomic, terms, [part])
    assert queued(app) == 1_500


def test_an_attempt_that_fails_drops_its_stage(atomic: WriteOptions) -> None:
    seen = []

    def batches() -> Iterator[pa.RecordBatch]:
        yield rows("1")
        seen.append(stages_left(atomic.url))
        yield rows("2", payload="x")

    with pytest.raises(InvalidRows):
        write_partition(batches(), atomic, terms_of(atomic))
    assert seen == [1]
    assert stages_left(atomic.url) == 0


def test_more_partitions_than_a_commit_may_have_are_refused_by_the_first_too_many(
    atomic: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = SimpleNamespace(partitionId=lambda: STAGES_LIMIT)
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    terms = terms_of(atomic)
    assert write_partition([], atomic, terms) == Written(0)
    with pytest.raises(InvalidRows, match=r"2,000 partitions, .* number 2,001: \.coalesce\(2000\)"):
        write_partition([rows("1")], atomic, terms)


def test_what_map_in_arrow_returns_says_what_was_written(
    options: WriteOptions, atomic: WriteOptions, app: SyncApp[None]
) -> None:
    assert told(in_arrow(options, None)(many(3))) == Written(3, added=3)
    terms = terms_of(atomic)
    assert told(in_arrow(atomic, terms)(iter([]))) == Written(0)
    part = told(in_arrow(atomic, terms)(many(4)))
    assert finish(atomic, terms, [part]).rows == 4
    assert queued(app) == 4


def test_what_has_no_room_yet_is_left_to_workers_and_told(
    redis_server: RedisServer, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    options = WriteOptions(url=redis_url, task="load", is_atomic=True, write_id="load-7")
    terms = terms_of(options)
    part = write_partition(many(700), options, terms)
    with redis_server.client() as client:
        client.config_set("maxmemory", 1)
        try:
            report = finish(options, terms, [part])
        finally:
            client.config_set("maxmemory", 0)
    assert (report.rows, report.added, report.is_published) == (700, 0, False)
    [line] = caplog.messages
    assert line.startswith("spark.publishing_left_to_workers")
    assert "write_id=load-7" in line
    assert finish(options, terms, []).is_published


def test_a_storage_that_is_down_is_seen_before_any_row_is() -> None:
    down = WriteOptions(url="redis://127.0.0.1:1", retry_for_ms=60_000)
    with pytest.raises(StorageUnavailable, match="refused"):
        check_target(down, for_s=0)


def test_a_server_that_may_throw_jobs_away_is_refused(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            with pytest.raises(StorageRefused, match="maxmemory-policy"):
                check_target(WriteOptions(url=f"{redis_server.url}?client_name=new"))
        finally:
            client.config_set("maxmemory-policy", "noeviction")


def test_a_storage_in_the_memory_of_one_process_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"memory://.*Python processes.*redis:// or file://"):
        check_target(WriteOptions(url="memory://"))


def test_a_queue_that_forgets_too_early_is_warned_of(
    options: WriteOptions, app: SyncApp[None]
) -> None:
    app.queue("default").configure(history=10)
    with warnings.catch_warnings():
        warn_of_history(options, 10, ["id", "payload"])
        warn_of_history(options, 11, ["id", "payload", "queue"])
    with pytest.warns(UserWarning, match=r"11 rows .* 'default', .* 10 ended jobs.*--history 11`"):
        warn_of_history(options, 11, ["id", "payload"])


def told(batches: Iterator[pa.RecordBatch]) -> Written:
    [row] = [SimpleNamespace(**row) for batch in batches for row in batch.to_pylist()]
    said: Any = row
    return read_written(said)
