"""Events and dead letters are archived once each, whatever happens to the archiver."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

from headrace import EventsLost, InvalidOption, JobEvent, SyncApp
from headrace.spark.pipeline import archive, compact, dead_letters, events, follow, intake, runs
from headrace.spark.pipeline.archiver import ArchiveReport
from headrace.storage.connect import open_blocking
from headrace.storage.steps import at_once
from tests.spark.support.worked import DEAD, DONE, dead, done, payload_of, work

ON_REDIS = pytest.mark.parametrize("url", ["redis"], indirect=True)
"""Of what the storage has no part in."""

FIELDS = (
    *("number", "stream_id", "kind", "job_id", "task", "start", "incarnation", "detail"),
    *("error", "message", "frame", "worker", "host", "version", "app_version"),
)


def run(
    spark: SparkSession, root: Path, url: str, *, queues: Sequence[str] = ("orders",), **more: Any
) -> ArchiveReport:
    return archive(spark, root, queues=queues, url=url, **more)


def told(url: str, queue: str = "orders", tenant: str = "default") -> list[JobEvent]:
    """Return all events that a queue keeps."""
    with SyncApp[None](url, tenant=tenant) as app:
        return list(app.queue(queue).events())


def numbers(frame: DataFrame) -> list[tuple[str, int]]:
    """Return the keys of rows, in their order; one that is twice there is twice among them."""
    return sorted((row["queue"], row["number"]) for row in frame.collect())


def keys(events: Sequence[JobEvent]) -> list[tuple[str, int]]:
    return sorted((event.queue, event.number) for event in events)


def test_what_is_archived_is_what_the_queue_tells(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    work(url, {"a": DONE, "b": DEAD})
    report = run(spark, tmp_path, url)
    kept = told(url)
    assert (report.run, report.events, report.dead_letters) == (1, len(kept), 1)
    assert (report.lost, report.until) == (0, kept[-1].at)
    rows = events(spark, tmp_path).orderBy("number").collect()
    for row, event in zip(rows, kept, strict=True):
        assert {name: row[name] or None for name in FIELDS} == {
            name: getattr(event, name) or None for name in FIELDS
        }
        assert (row["tenant"], row["queue"]) == ("default", event.queue)
        assert row["at"].astimezone(UTC) == event.at
        assert (row["date"], row["hour"]) == (event.at.date(), event.at.hour)
        assert row["run_ms"] == (None if event.run_s is None else round(event.run_s * 1000))
    [row] = dead_letters(spark, tmp_path).collect()
    assert (row["job_id"], bytes(row["payload"])) == ("b", payload_of("b"))


def test_a_second_run_adds_what_is_new_and_a_third_nothing(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    work(url, dead("a"))
    first = run(spark, tmp_path, url)
    work(url, dead("b"))
    second = run(spark, tmp_path, url)
    kept = told(url)
    assert (second.run, first.events + second.events) == (2, len(kept))
    assert (first.dead_letters, second.dead_letters) == (1, 1)
    third = run(spark, tmp_path, url)
    assert third == ArchiveReport(run=2, events=0, dead_letters=0, lost=0, until=kept[-1].at)
    assert numbers(events(spark, tmp_path)) == keys(kept)
    assert sorted(row["job_id"] for row in dead_letters(spark, tmp_path).collect()) == ["a", "b"]


def test_until_when_nothing_more_can_come_is_noted(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    assert runs.tenants(spark, tmp_path) == []
    work(url, {"a": DONE})
    run(spark, tmp_path, url)
    before = runs.read_state(spark, tmp_path, "default").until_ms["orders"]
    assert before >= told(url)[-1].at.timestamp() * 1000
    run(spark, tmp_path, url)
    until = runs.read_state(spark, tmp_path, "default").until_ms["orders"]
    assert until > before
    work(url, {"b": DONE})
    later = [event for event in told(url) if event.job_id == "b"]
    assert min(event.at.timestamp() * 1000 for event in later) >= until
    assert runs.tenants(spark, tmp_path) == ["default"]


def test_queues_forget_what_is_archived_and_keep_what_is_not(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    work(url, done("a"))
    run(spark, tmp_path, url)
    with SyncApp[None](url) as app:
        queue = app.queue("orders")
        [reader] = queue.readers()
        assert (reader.name, reader.behind) == ("archive", 0)
        queue.configure(events=1)
        for number in range(5):
            work(url, done([f"job-{number}"]))
        report = run(spark, tmp_path, url)
        assert report.lost == 0
        [reader] = queue.readers()
        assert reader.behind == 0
    assert numbers(events(spark, tmp_path)) == [("orders", n) for n in range(1, reader.number + 1)]


@ON_REDIS
def test_queues_and_tenants_share_a_root(spark: SparkSession, url: str, tmp_path: Path) -> None:
    work(url, dead("a"))
    work(url, dead("b"), queue="mails")
    work(url, dead("c"), tenant="shop")
    run(spark, tmp_path, url, queues=["orders", "mails"])
    run(spark, tmp_path, url, tenant="shop")
    found = events(spark, tmp_path)
    ours, shops = found.where("tenant = 'default'"), found.where("tenant = 'shop'")
    assert numbers(ours) == keys([*told(url), *told(url, "mails")])
    assert numbers(shops) == keys(told(url, tenant="shop"))
    letters = dead_letters(spark, tmp_path).select("tenant", "queue", "job_id").collect()
    assert sorted(map(tuple, letters)) == [
        ("default", "mails", "b"),
        ("default", "orders", "a"),
        ("shop", "orders", "c"),
    ]


@ON_REDIS
def test_a_queue_may_join_later(spark: SparkSession, url: str, tmp_path: Path) -> None:
    work(url, done("a"))
    run(spark, tmp_path, url)
    work(url, done("b"), queue="mails")
    report = run(spark, tmp_path, url, queues=["mails"])
    assert (report.run, report.events) == (2, len(told(url, "mails")))
    assert run(spark, tmp_path, url).events == 0


def trim(url: str, count: int, *, entries: int = 1) -> None:
    """Let a queue keep only its last entries of events, whoever has not read them."""
    with SyncApp[None](url) as app:
        app.queue("orders").configure(events=entries, events_cap=entries)
    for number in range(count):
        work(url, done([f"trims-{number}"]))


def test_what_was_trimmed_before_it_came_fails_and_is_counted(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    work(url, done("a"))
    run(spark, tmp_path, url)
    last = told(url)[-1].number
    trim(url, 60)
    kept = told(url)
    lost = kept[0].number - 1 - last
    assert lost > 0
    with pytest.raises(EventsLost, match=f"^{lost} events of queue 'orders' after number {last} "):
        run(spark, tmp_path, url)
    report = run(spark, tmp_path, url, fail_on_data_loss=False)
    assert (report.lost, report.events) == (lost, len(kept))
    assert run(spark, tmp_path, url).lost == 0


@ON_REDIS
def test_what_a_queue_had_forgotten_before_its_first_run_is_told_and_no_failure(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    trim(url, 60)
    kept = told(url)
    report = run(spark, tmp_path, url)
    assert report.lost == kept[0].number - 1 > 0
    assert report.events == len(kept)


def test_numbers_that_begin_anew_fail_and_can_be_gone_on_with(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    work(url, dead("a"))
    run(spark, tmp_path, url)
    first = told(url)
    with SyncApp[None](url) as app:
        app.queue("orders").purge("failed", all_jobs=True)
        with closing(open_blocking(url)) as storage:
            while at_once(storage.delete_queue("orders", is_forced=True)):
                pass
    work(url, dead("b"))
    with pytest.raises(EventsLost, match=f"do not go on behind number {first[-1].number}: numbers"):
        run(spark, tmp_path, url)
    run(spark, tmp_path, url, fail_on_data_loss=False)
    found = {(row["stream_id"], row["number"]) for row in events(spark, tmp_path).collect()}
    assert found == {(event.stream_id, event.number) for event in [*first, *told(url)]}
    letters = dead_letters(spark, tmp_path).collect()
    assert sorted(row["job_id"] for row in letters) == ["a", "b"]


@ON_REDIS
def test_a_dead_letter_that_is_redriven_and_fails_again_comes_again(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    work(url, dead("ab"))
    run(spark, tmp_path, url)
    with SyncApp[None](url) as app:
        app.queue("orders").redrive("b")
    work(url, {"b": DEAD})
    report = run(spark, tmp_path, url)
    assert report.dead_letters == 1
    letters = dead_letters(spark, tmp_path).collect()
    assert sorted(row["job_id"] for row in letters) == ["a", "b", "b"]


@ON_REDIS
def test_the_cap_of_events_is_raised_and_never_lowered(
    spark: SparkSession, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    work(url, done("a"))
    caplog.set_level("INFO", logger="headrace")
    with SyncApp[None](url) as app:
        queue = app.queue("orders")
        run(spark, tmp_path, url, events_cap=70_000)
        assert queue.stats().keeps_events_cap == 70_000
        run(spark, tmp_path, url, events_cap=60_000)
        assert queue.stats().keeps_events_cap == 70_000
    [line] = [text for text in caplog.messages if text.startswith("spark.events_cap_raised")]
    assert line.endswith("queue=orders events_cap=70000 bytes=147000000")


@ON_REDIS
def test_following_goes_on_with_what_comes(spark: SparkSession, url: str, tmp_path: Path) -> None:
    work(url, done("a"))
    reports = follow(spark, tmp_path, queues=["orders"], url=url, every=0.1)
    assert next(reports).run == 1
    work(url, done("b"))
    assert next(reports).run == 2
    assert next(reports).events == 0
    assert numbers(events(spark, tmp_path)) == keys(told(url))


@ON_REDIS
def test_the_files_are_read_without_spark(spark: SparkSession, url: str, tmp_path: Path) -> None:
    work(url, dead("a"))
    run(spark, tmp_path, url)
    work(url, dead("b"))
    run(spark, tmp_path, url)
    table = ds.dataset(f"{tmp_path}/events", partitioning="hive").to_table()
    found = sorted(zip(*(table[name].to_pylist() for name in ("queue", "number")), strict=True))
    assert found == keys(told(url))
    assert set(table["tenant"].to_pylist()) == {"default"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"queues": []}, r"queues=\[\] is not valid"),
        ({"queues": "orders"}, "queues='orders' is not valid: use a list"),
        ({"queues": ["a b"]}, "queue 'a b' is not valid"),
        ({"tenant": "a b"}, "tenant 'a b' is not valid"),
        ({"reader": ""}, "reader '' is not valid"),
        ({"events_cap": 0}, "events_cap=0 is out of bounds"),
    ],
    ids=["no queue", "no list", "queue", "tenant", "reader", "cap"],
)
def test_arguments_are_checked_before_anything_happens(
    changes: dict[str, Any], said: str, spark: SparkSession, tmp_path: Path
) -> None:
    arguments = {"queues": ["orders"], "url": "redis://127.0.0.1:1", **changes}
    with pytest.raises(InvalidOption, match=said):
        archive(spark, tmp_path, **arguments)
    with pytest.raises(InvalidOption, match="every=0 is out of bounds"):
        next(follow(spark, tmp_path, queues=["orders"], every=0))


def test_a_state_that_cannot_be_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "runs/tenant=default/plan=0"
    path.mkdir(parents=True)
    (path / "part-0.txt").write_text(json.dumps({"type": "RunPlan"}))
    with pytest.raises(InvalidOption, match=r"state of the archive in .* can't be read"):
        run(spark, tmp_path, f"file://{tmp_path}/data")


def cut_off(spark: SparkSession, root: Path, kind: str, left: str) -> None:
    """Leave of the first run what a kill leaves: not done, and with a part of the rows in place."""
    shutil.rmtree(root / "runs/tenant=default/done=1")
    [folder] = root.glob(f"{kind}/tenant=default/date=*/hour=*/run=1")
    spark.read.parquet(str(folder)).where(left).write.parquet(f"{root}/left")
    shutil.rmtree(folder)
    (root / "left").rename(folder)


def test_a_run_that_was_cut_off_is_gone_on_with(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    work(url, dead("abc"))
    whole = run(spark, tmp_path, url)
    cut_off(spark, tmp_path, "events", "number % 3 = 1")
    cut_off_dead = [*tmp_path.glob("dead/tenant=default/date=*/hour=*/run=1")]
    assert len(cut_off_dead) == 1
    work(url, dead("d"))
    with SyncApp[None](url) as app:
        # What is in the archive stays there, though the queue does not have it any more.
        app.queue("orders").redrive("a", "c")
    left = events(spark, tmp_path).count()
    report = run(spark, tmp_path, url)
    kept = told(url)
    assert 0 < left < whole.events
    assert (report.run, report.events, report.lost) == (3, len(kept) - left, 0)
    assert numbers(events(spark, tmp_path)) == keys(kept)
    letters = dead_letters(spark, tmp_path).collect()
    assert sorted(row["job_id"] for row in letters) == ["a", "b", "c", "d"]


def test_what_was_trimmed_after_a_cut_is_lost_but_for_what_is_there(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    work(url, done(f"job-{number}" for number in range(200)))
    run(spark, tmp_path, url)
    planned = len(told(url))
    cut_off(spark, tmp_path, "events", "number <= 30")
    while (first := told(url)[0].number) <= 31:
        trim(url, 1, entries=20)  # Redis trims some entries at a time
    assert 30 < first - 1 < planned
    lost = first - 1 - 30
    with pytest.raises(EventsLost, match=f"^{lost} events of run 2 were trimmed before"):
        run(spark, tmp_path, url)
    report = run(spark, tmp_path, url, fail_on_data_loss=False)
    assert report.lost == lost
    found = [number for _, number in numbers(events(spark, tmp_path))]
    assert found == [*range(1, 31), *range(first, told(url)[-1].number + 1)]


@ON_REDIS
@pytest.mark.slow
def test_a_large_run_is_read_by_several_tasks_and_its_files_are_merged_later(
    spark: SparkSession, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "EVENTS_A_TASK", 400)
    for number in range(4):
        work(url, {f"job-{number}-{one}": DEAD if one < 2 else DONE for one in range(400)})
    run(spark, tmp_path, url)
    assert len([*tmp_path.glob("events/**/*.parquet")]) >= 4
    work(url, dead("a"))
    run(spark, tmp_path, url)
    later = datetime.now(UTC) + timedelta(hours=2)
    report = compact(spark, tmp_path, before=later)
    assert report.files_before > report.files_after >= 2
    assert numbers(events(spark, tmp_path)) == keys(told(url))
    assert dead_letters(spark, tmp_path).count() == 9
    work(url, dead("b"))
    assert run(spark, tmp_path, url).dead_letters == 1
    assert numbers(events(spark, tmp_path)) == keys(told(url))


def test_an_archive_is_made_over_spark_connect(
    connect: ConnectSession, redis_url: str, tmp_path: Path
) -> None:
    work(redis_url, dead("a"))
    run(connect, tmp_path, redis_url)
    work(redis_url, dead("b"))
    assert run(connect, tmp_path, redis_url).run == 2
    assert numbers(events(connect, tmp_path)) == keys(told(redis_url))
    letters = dead_letters(connect, tmp_path).collect()
    assert sorted(row["job_id"] for row in letters) == ["a", "b"]
