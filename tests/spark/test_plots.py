"""Three pictures are drawn of any archive, in buckets that fit its span of time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.errors import InvalidOption
from headrace.spark.pipeline import plot, rollup
from headrace.spark.pipeline.pictures import Lines, Rows
from headrace.spark.pipeline.plots import PlotScope, drawings
from tests.spark.support.archives import AT, add_run, event, events_of

NAMES = ["throughput.png", "latency.png", "errors.png"]


def history(hours: float, *, tasks: int, count: int = 400) -> list[Mapping[str, Any]]:
    draw = random.Random(7)
    kinds = ["queued", "active", "completed", "completed", "retrying", "failed"]
    events = [
        event(
            draw.choice(kinds),
            at=AT + timedelta(hours=hours * n / count),
            task=f"task_{n % tasks}",
            start=1,
            run_ms=int(draw.lognormvariate(4, 2)),
            error="shop.NoUser",
            message=f"no user {n}",
        )
        for n in range(count)
    ]
    return [*events, event("queued", at=AT + timedelta(hours=hours + 2))]


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an archive of an hour and thirty tasks."""
    root = tmp_path_factory.mktemp("root")
    add_run(events_of(spark, history(1, tasks=30)), root, run=1)
    rollup(spark, root)
    return root


@pytest.mark.slow
def test_three_files_are_written(spark: SparkSession, root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "plots"
    files = plot(spark, root, folder, since=AT, until=AT + timedelta(minutes=10))
    assert files == [folder / name for name in NAMES]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


def test_pictures_show_what_was_rolled_up(spark: SparkSession, root: Path) -> None:
    found = drawings(spark, root, PlotScope(since=None, until=None, names={"tenant": "shop"}))
    title, [jobs] = found["throughput"]
    assert title == "Throughput: tenant shop, 2026-01-31 02:30 to 2026-01-31 03:30 UTC"
    assert isinstance(jobs, Lines)
    assert (jobs.title, len(jobs.ats)) == ("jobs each 10 seconds", 360)
    assert sum(value or 0 for value in jobs.series["completed"]) == sum(
        told["kind"] == "completed" for told in history(1, tasks=30)
    )
    _, [times, tasks] = found["latency"]
    assert list(times.series) == list(tasks.series) == ["average", "95 %", "99 %"]
    assert tasks.title == "the slowest tasks: 20 of 30"
    _, [rate, by_task, patterns] = found["errors"]
    assert all(0 <= (value or 0) <= 1 for value in rate.series["share"])
    assert isinstance(by_task, Rows)
    counts = [value or 0 for value in by_task.series["errors"]]
    assert counts == sorted(counts, reverse=True)
    assert isinstance(patterns, Rows)
    assert patterns.labels[0] == "NoUser: no user <number>"


def test_a_span_is_told_by_the_second_where_it_begins_or_ends_in_a_minute(
    spark: SparkSession, root: Path
) -> None:
    scope = PlotScope(since=None, until=AT + timedelta(seconds=70), names={})
    title, _ = drawings(spark, root, scope)["throughput"]
    assert title == "Throughput: all tenants, 2026-01-31 02:30:00 to 2026-01-31 02:31:10 UTC"


@pytest.mark.slow
def test_buckets_are_wider_where_the_span_is_longer(spark: SparkSession, tmp_path: Path) -> None:
    add_run(events_of(spark, history(300, tasks=1, count=8)), tmp_path, run=1)
    rollup(spark, tmp_path)
    found = drawings(spark, tmp_path, PlotScope(since=None, until=None, names={}))
    title, [jobs] = found["throughput"]
    assert title == "Throughput: all tenants, 2026-01-31 02:00 to 2026-02-11 02:00 UTC"
    assert isinstance(jobs, Lines)
    assert (jobs.title, len(jobs.ats)) == ("jobs each hour", 264)


def test_a_span_without_anything_is_drawn_too(spark: SparkSession, tmp_path: Path) -> None:
    plot(spark, tmp_path / "nothing", tmp_path, queue="mails", task="any task", until=AT)
    assert all((tmp_path / name).stat().st_size > 1000 for name in NAMES)


def test_what_is_asked_for_is_checked(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidOption, match=r"path='.*file' is not valid: use that of a folder"):
        plot(spark, tmp_path, tmp_path / "file")
    for names in ({"tenant": ""}, {"queue": ""}, {"task": ""}):
        [name] = names
        with pytest.raises(InvalidOption, match=f"{name} '' is not valid"):
            plot(spark, tmp_path, tmp_path, **names)  # type: ignore[arg-type]  # names are words
    with pytest.raises(InvalidOption, match=r"since=.* is naive"):
        plot(spark, tmp_path, tmp_path, since=datetime.now(UTC).replace(tzinfo=None))
