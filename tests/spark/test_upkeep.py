"""Small files of an archive become one, old ones go, and nothing is missing or twice."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession as ConnectSession

from headrace.errors import InvalidOption
from headrace.spark.pipeline import compact, dead_letters, events, layout, retain, runs, upkeep
from headrace.spark.pipeline.runs import RunDone, RunPlan
from headrace.spark.pipeline.upkeep import CompactReport, RetainReport
from tests.spark.support.archives import counted
from tests.spark.support.broken_files import Killed, breaking

AT = datetime(2026, 1, 31, 2, 30, tzinfo=UTC)
HOUR = "tenant=shop/date=2026-01-31/hour=02"
NOTHING = CompactReport(hours=0, files_before=0, files_after=0)


def rows(spark: SparkSession, *numbers: int, at: datetime = AT) -> DataFrame:
    schema = layout.event_schema()[:-2]
    told = [{"queue": "orders", "number": number, "at": at, "host": "h"} for number in numbers]
    return spark.createDataFrame(
        [tuple(one.get(name) for name in schema.names) for one in told], schema
    )


def add(frame: DataFrame, root: Path, *, run: int, tenant: str = "shop") -> None:
    """Write a run as the archiver does."""
    found = layout.with_partitions(frame.coalesce(1), "at", run=run).drop("tenant")
    names = layout.PARTITIONS[1:]
    found.write.partitionBy(*names).mode("append").parquet(f"{root}/events/tenant={tenant}")


def plan(spark: SparkSession, root: Path, *, run: int, is_done: bool = True) -> None:
    said = RunPlan(run=run, first=run, lost=0, parts=[], reached={})
    runs.write(spark, root, "shop", said)
    if is_done:
        runs.write(spark, root, "shop", RunDone(run))


@pytest.fixture(scope="module")
def three_runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an archive of six events of an hour, in three runs."""
    root = tmp_path_factory.mktemp("archive")
    for run in (1, 2, 3):
        add(rows(spark, run, run + 3), root, run=run)
    plan(spark, root, run=3)
    return root


@pytest.fixture
def root(three_runs: Path, tmp_path: Path) -> Path:
    """Return an archive of three runs that the test may change."""
    shutil.copytree(three_runs, tmp_path / "archive")
    return tmp_path / "archive"


def numbers(root: Path) -> Counter[int]:
    """Return how often each event is there for who reads without Spark."""
    return counted(root, "number")


def files(root: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(root)) for path in root.glob("*/**/*.parquet"))


ALL = Counter(range(1, 7))


def test_the_files_of_an_hour_become_one(spark: SparkSession, root: Path) -> None:
    assert compact(spark, root) == CompactReport(hours=1, files_before=3, files_after=1)
    assert files(root) == [f"events/{HOUR}/run=3"]
    table = ds.dataset(f"{root}/events", partitioning="hive").to_table()
    assert table["number"].to_pylist() == [1, 2, 3, 4, 5, 6]
    assert events(spark, root).count() == 6
    assert compact(spark, root) == NOTHING


def test_a_large_hour_has_several_files(
    spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sum(path.stat().st_size for path in root.glob("events/**/*.parquet"))
    monkeypatch.setattr(upkeep, "FILE_BYTES", size // 2 + 1)
    assert compact(spark, root) == CompactReport(hours=1, files_before=3, files_after=2)
    assert numbers(root) == ALL


def test_what_comes_later_is_merged_with_it(spark: SparkSession, root: Path) -> None:
    compact(spark, root)
    add(rows(spark, 7), root, run=4)
    plan(spark, root, run=4)
    assert compact(spark, root).files_before == 2
    assert files(root) == [f"events/{HOUR}/run=4"]
    assert numbers(root) == Counter(range(1, 8))


def test_only_hours_that_are_over_and_runs_that_are_done_are_merged(
    spark: SparkSession, root: Path
) -> None:
    assert compact(spark, root, before=AT) == NOTHING
    assert compact(spark, root, tenant="other") == NOTHING
    add(rows(spark, 7), root, run=4)
    plan(spark, root, run=4, is_done=False)
    assert compact(spark, root, before=AT + timedelta(minutes=30)).files_before == 3
    assert files(root) == [f"events/{HOUR}/run=3", f"events/{HOUR}/run=4"]


def test_columns_of_every_release_are_kept(spark: SparkSession, root: Path) -> None:
    add(rows(spark, 7).drop("host"), root, run=4)
    add(rows(spark, 8).withColumn("tags", F.lit("new")), root, run=5)
    plan(spark, root, run=5)
    compact(spark, root)
    found = events(spark, root).where("number >= 6").orderBy("number")
    assert [tuple(row) for row in found.select("number", "host", "tags").collect()] == [
        (6, "h", None),
        (7, None, None),
        (8, "h", "new"),
    ]


@pytest.mark.slow
def test_a_compaction_that_is_cut_off_at_any_change_is_brought_to_its_end(
    spark: SparkSession, three_runs: Path, tmp_path: Path
) -> None:
    """Before and after each change that it makes to files."""
    for changes in count():
        root = tmp_path / f"archive-{changes}"
        shutil.copytree(three_runs, root)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(upkeep, "Files", breaking(changes))
            try:
                compact(spark, root)
            except Killed:
                is_cut_off = True
            else:
                is_cut_off = False
        assert not numbers(root) - ALL
        compact(spark, root)
        assert numbers(root) == ALL, f"after {changes} changes"
        assert files(root) == [f"events/{HOUR}/run=3"]
        assert not any((root / "_compacting").glob("*/*/*/*"))
        if not is_cut_off:
            break
    assert changes >= 7


@pytest.mark.parametrize("folder", ["events/tenant=shop", "rollup/width=10s", "rolled"])
def test_what_killed_runs_have_left_is_deleted_after_a_day(
    spark: SparkSession, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "events/tenant=shop").mkdir(parents=True)
    left, recent = (tmp_path / folder / f".spark-staging-{name}" for name in ("left", "recent"))
    for staging in (left, recent):
        (staging / "hour=02").mkdir(parents=True)
    before = (datetime.now(UTC) - timedelta(hours=25)).timestamp()
    os.utime(left, (before, before))
    compact(spark, tmp_path)
    assert (left.exists(), recent.exists()) == (False, True)


def test_days_that_are_older_go(spark: SparkSession, root: Path) -> None:
    today = datetime.now(UTC)
    for run, days in enumerate((0, 3, 4), 4):
        add(rows(spark, 10 + days, at=today - timedelta(days=days)), root, run=run)
    add(rows(spark, 20), root, run=1, tenant="other")
    shutil.copytree(root / "events/tenant=shop", root / "dead/tenant=shop")
    for is_dry in (True, False):  # what was deleted would not be counted again
        report = retain(spark, root, days=3, tenant="shop", dry_run=is_dry)
        assert report == RetainReport(partitions=4)
    assert numbers(root) == Counter([10, 13, 20])
    assert dead_letters(spark, root).count() == 2
    assert retain(spark, root, days=3) == RetainReport(partitions=1)


def test_an_archive_that_is_not_there_has_nothing_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert compact(spark, tmp_path) == NOTHING
    assert retain(spark, tmp_path, days=1) == RetainReport(partitions=0)


def test_arguments_are_checked(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="days=0 is out of bounds"):
        retain(spark, tmp_path, days=0)
    with pytest.raises(InvalidOption, match="tenant 'a b' is not valid"):
        retain(spark, tmp_path, days=1, tenant="a b")
    with pytest.raises(InvalidOption, match="tenant 'a b' is not valid"):
        compact(spark, tmp_path, tenant="a b")
    with pytest.raises(InvalidOption, match="root='' is not valid"):
        compact(spark, "")


def test_a_session_of_connect_is_refused(connect: ConnectSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="compaction and retention need a classic session"):
        compact(connect, tmp_path)
