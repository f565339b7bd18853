"""Roll-ups of an archive are the same however often, and however far apart, they are made."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession as ConnectSession

from headrace.errors import InvalidOption
from headrace.spark.pipeline import (
    baseline,
    compact,
    failures,
    layout,
    plot,
    rollup,
    runs,
    upkeep,
)
from headrace.spark.pipeline.buckets import rolled_up
from headrace.spark.pipeline.rollup import RollupReport, is_unmoved
from headrace.spark.pipeline.runs import Looked, Part, Reached, RunDone
from tests.spark.support.archives import AT, all_kept, archived, event, events_of, history
from tests.spark.support.broken_files import Killed, breaking

HOUR = timedelta(hours=1)
UNTIL_EXCHANGE = 2
"""Changes of a compaction before it hides the first file: it clears its place, and notes it."""


class Whole(NamedTuple):
    root: Path
    events: list[Mapping[str, Any]]
    report: RollupReport
    rows: list[Row]


def kept(spark: SparkSession, root: Path, width: str) -> list[Row]:
    found = layout.rollups(spark, root, width)
    return found.orderBy("tenant", "queue", "task", "bucket").collect()


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Return an archive of one run that was rolled up at once."""
    root = tmp_path_factory.mktemp("whole")
    events = history(1, AT - HOUR, AT + HOUR * 1.5, 200)
    archived(spark, root, events)
    report = rollup(spark, root)
    return Whole(root=root, events=events, report=report, rows=all_kept(spark, root))


def test_each_width_has_what_the_events_say(spark: SparkSession, whole: Whole) -> None:
    end = whole.events[-1]["at"]
    frame = events_of(spark, whole.events)
    for width, seconds in layout.WIDTHS_S.items():
        is_final = F.unix_seconds("bucket") + seconds <= int(end.timestamp())
        wanted = rolled_up(frame, width).where(is_final).collect()
        found = [row.asDict() for row in whole.rows if row["width"] == width]
        key = itemgetter("queue", "task", "bucket")
        assert [
            {name: value for name, value in row.items() if name not in {"date", "hour"}}
            for row in sorted(found, key=key)
        ] == [row.asDict() for row in sorted(wanted, key=key)]
        assert all(row["hour"] == row["bucket"].astimezone(UTC).hour for row in found)
    assert (whole.report.rows, whole.report.final_until) == (len(whole.rows), end)
    assert whole.report.partitions == len({(r["width"], r["date"], r["hour"]) for r in whole.rows})


@pytest.mark.slow
def test_runs_in_between_do_not_change_the_result(
    spark: SparkSession, whole: Whole, tmp_path: Path
) -> None:
    events = whole.events
    for part in (events[:90], events[90:100], events[100:]):
        archived(spark, tmp_path, part)
        rollup(spark, tmp_path)
    assert all_kept(spark, tmp_path) == whole.rows


def test_nothing_new_writes_nothing(spark: SparkSession, whole: Whole) -> None:
    files = {path: path.stat().st_mtime_ns for path in whole.root.rglob("*.parquet")}
    again = rollup(spark, whole.root)
    assert (again.partitions, again.rows) == (0, 0)
    assert again.final_until == whole.report.final_until
    assert {path: path.stat().st_mtime_ns for path in whole.root.rglob("*.parquet")} == files


def test_hours_that_have_not_changed_are_not_read(
    spark: SparkSession, whole: Whole, tmp_path: Path
) -> None:
    root = tmp_path / "copy"
    shutil.copytree(whole.root, root)
    for kind in ("events", "rollup"):
        for old in root.glob(f"{kind}/**/hour=0[123]/**/*.parquet"):
            old.write_bytes(b"no Parquet")
    later = [event("completed", at=AT + 2 * HOUR, queue=queue, start=1) for queue in "ab"]
    archived(spark, root, [*later, event("queued", at=AT + 3 * HOUR, queue="a")])
    assert rollup(spark, root).final_until == AT + 2 * HOUR
    newest = layout.read_known(spark, f"{root}/rollup/width=10s", layout.rollup_schema())
    found = newest.where("hour = 4 and queue = 'a'").orderBy("bucket").collect()
    assert found[-1]["bucket"].astimezone(UTC) == AT + 2 * HOUR


@pytest.mark.slow
def test_a_row_is_written_when_its_queue_has_passed_the_end_of_its_bucket(
    spark: SparkSession, tmp_path: Path
) -> None:
    second = timedelta(seconds=1)
    ahead = [event("completed", at=AT + n * 10 * second, queue="ahead", start=1) for n in range(9)]
    behind = [event("completed", at=AT + 25 * second, queue="behind", start=1)]
    archived(spark, tmp_path, [*ahead, *behind])
    assert rollup(spark, tmp_path).final_until == AT + 25 * second
    assert len(kept(spark, tmp_path, "10s")) == 8
    assert [row["queue"] for row in kept(spark, tmp_path, "1min")] == ["ahead"]
    archived(spark, tmp_path, [event("queued", at=AT + 2 * HOUR, queue="behind")])
    assert rollup(spark, tmp_path).final_until == AT + 80 * second
    assert len(kept(spark, tmp_path, "10s")) == 9
    assert {row["queue"] for row in kept(spark, tmp_path, "1h")} == {"behind"}
    # Both were asked in vain for more, so that what they have is all.
    late = int((AT + 3 * HOUR).timestamp() * 1000)
    runs.write(spark, tmp_path, "shop", Looked({"ahead": late, "behind": late}))
    assert rollup(spark, tmp_path).final_until == AT + 3 * HOUR
    assert sum(row["completed"] for row in kept(spark, tmp_path, "1h")) == 10


def test_files_that_were_exchanged_meanwhile_are_noticed() -> None:
    hour, other = "tenant=a/date=2026-01-31/hour=02", "tenant=a/date=2026-01-31/hour=03"

    def files(*names: str) -> list[str]:
        return [f"file:/root/events/{name}" for name in names]

    before = files(f"{hour}/run=1/x", f"{hour}/run=2/x", f"{other}/run=2/x")
    added = [*before, *files(f"{hour}/run=3/x")]
    elsewhere = files(f"{hour}/run=1/x", f"{hour}/run=2/x", f"{other}/run=2/merged")
    merged = files(f"{hour}/run=2/merged", f"{other}/run=2/x")
    hidden = files(f"{other}/run=2/x")
    seen = [is_unmoved(before, now, [hour], {"a": 2}) for now in (before, added, elsewhere)]
    moved = [is_unmoved(then, merged, [hour], {"a": 2}) for then in (before, hidden)]
    assert (seen, moved) == ([True] * 3, [False] * 2)


@pytest.mark.slow
def test_a_run_that_is_not_done_is_not_rolled_up(
    spark: SparkSession, whole: Whole, tmp_path: Path
) -> None:
    archived(spark, tmp_path, whole.events)
    shutil.rmtree(tmp_path / "runs/tenant=shop/done=1")
    plan = runs.read_state(spark, tmp_path, "shop").plan
    assert plan is not None
    parts = [Part(queue=name, start=Reached(), end=end) for name, end in plan.reached.items()]
    runs.write(spark, tmp_path, "shop", msgspec.structs.replace(plan, parts=parts))
    report = rollup(spark, tmp_path)
    assert report.rows == 0
    runs.write(spark, tmp_path, "shop", RunDone(1))
    assert rollup(spark, tmp_path).rows == len(whole.rows)
    assert all_kept(spark, tmp_path) == whole.rows


def test_a_roll_up_that_failed_half_way_is_made_good_by_the_next(
    spark: SparkSession, whole: Whole, tmp_path: Path
) -> None:
    archived(spark, tmp_path, whole.events[:100])
    minutes = tmp_path / "rollup/width=1min"
    minutes.parent.mkdir()
    minutes.write_text("in the way")
    with pytest.raises(Py4JJavaError, match="not a directory"):
        rollup(spark, tmp_path)
    minutes.unlink()
    [one] = tmp_path.glob("rollup/width=10s/tenant=shop/date=2026-01-31/hour=02/*.parquet")
    one.unlink()  # as if the end had come between two partitions
    archived(spark, tmp_path, whole.events[100:])
    rollup(spark, tmp_path)
    assert all_kept(spark, tmp_path) == whole.rows


@pytest.mark.parametrize("hidden", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_an_hour_that_a_killed_compaction_hides_is_rolled_up_when_it_is_back(
    spark: SparkSession, whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: int
) -> None:
    archived(spark, tmp_path, whole.events[:100], whole.events[100:])
    with monkeypatch.context() as patch:
        patch.setattr(upkeep, "Files", breaking(UNTIL_EXCHANGE + hidden))
        with pytest.raises(Killed):
            compact(spark, tmp_path)
    assert len(list(tmp_path.glob("_compacting/*/*/*/*/old/run=*"))) == hidden
    rollup(spark, tmp_path)
    assert all_kept(spark, tmp_path) != whole.rows
    assert compact(spark, tmp_path).hours == 0
    rollup(spark, tmp_path)
    assert all_kept(spark, tmp_path) == whole.rows


@pytest.mark.slow
def test_each_tenant_has_its_own_pace(spark: SparkSession, tmp_path: Path) -> None:
    early = [{**told, "tenant": "early"} for told in history(7, AT - 2 * HOUR, AT - HOUR, 30)]
    archived(spark, tmp_path, early + history(8, AT, AT + HOUR, 30))
    assert rollup(spark, tmp_path, tenant="shop").final_until == AT + HOUR
    assert {row["tenant"] for row in all_kept(spark, tmp_path)} == {"shop"}
    assert rollup(spark, tmp_path).final_until == AT - HOUR
    assert {row["tenant"] for row in kept(spark, tmp_path, "10s")} == {"shop", "early"}


def test_what_happened_since_an_instant_is_made_anew(
    spark: SparkSession, whole: Whole, tmp_path: Path
) -> None:
    root = tmp_path / "copy"
    shutil.copytree(whole.root, root)
    for lost in root.glob("rollup/width=*/tenant=shop/date=2026-01-31/hour=0[23]"):
        shutil.rmtree(lost)
    assert rollup(spark, root).rows == 0
    assert rollup(spark, root, since=AT).rows == sum(row["hour"] >= 2 for row in whole.rows)
    assert all_kept(spark, root) == whole.rows


@pytest.mark.slow
def test_spark_connect_makes_the_same_of_an_archive(
    connect: ConnectSession, whole: Whole, tmp_path: Path
) -> None:
    root = tmp_path / "copy"
    shutil.copytree(whole.root, root, ignore=shutil.ignore_patterns("rollup", "rolled"))
    assert rollup(connect, root) == whole.report
    assert rollup(connect, root).partitions == 0
    assert all_kept(connect, root) == whole.rows
    assert {row["task"] for row in baseline(connect, root).collect()} == {"mail", "charge"}
    assert {row["retried"] > 0 for row in failures(connect, root).collect()} == {True}
    assert len(plot(connect, root, tmp_path)) == 3


def test_an_archive_without_events_has_no_roll_ups(spark: SparkSession, tmp_path: Path) -> None:
    report = rollup(spark, tmp_path / "nothing")
    assert (report.partitions, report.rows, report.final_until) == (0, 0, None)
    assert list(tmp_path.iterdir()) == []


def test_what_is_asked_for_is_checked_first(spark: SparkSession) -> None:
    with pytest.raises(InvalidOption, match=r"since=.* is naive"):
        rollup(spark, "anywhere", since=datetime(2026, 1, 31))  # noqa: DTZ001
    with pytest.raises(InvalidOption, match="tenant 'a b' is not valid"):
        rollup(spark, "anywhere", tenant="a b")
    with pytest.raises(InvalidOption, match="root='' is not valid"):
        rollup(spark, "")
