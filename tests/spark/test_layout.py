"""An archive is read as it was written, by this release and by others."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.errors import InvalidOption
from headrace.spark.pipeline import layout

# In New York it is still the evening of the day before.
AT = datetime(2026, 1, 31, 2, 30, tzinfo=UTC)


def write(frame: DataFrame, root: Path, *, run: int = 1) -> None:
    found = layout.with_partitions(frame, "at", run=run)
    found.write.partitionBy(*layout.PARTITIONS).mode("append").parquet(f"{root}/events")


def event(spark: SparkSession, number: int, *, tenant: str = "shop") -> DataFrame:
    row = {"tenant": tenant, "queue": "orders", "number": number, "stream_id": "7-0", "at": AT}
    named = [field.name for field in layout.event_schema() if field.name not in {"date", "hour"}]
    schema = layout.event_schema()[:-2]
    return spark.createDataFrame([tuple(row.get(name) for name in named)], schema)


def test_an_archive_that_is_not_there_yet_has_no_rows_and_all_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = tmp_path / "archive"
    for frame, schema in (
        (layout.events(spark, root), layout.event_schema()),
        (layout.dead_letters(spark, root), layout.dead_letter_schema()),
        (layout.rollups(spark, root, "1h"), layout.rollup_schema()),
    ):
        assert frame.schema.names == schema.names
        assert frame.count() == 0


def test_a_folder_without_files_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    assert layout.events(spark, tmp_path).count() == 0


def test_days_and_hours_are_those_of_utc(spark: SparkSession, tmp_path: Path) -> None:
    write(event(spark, 7), tmp_path)
    assert (tmp_path / "events/tenant=shop/date=2026-01-31/hour=02/run=1").is_dir()
    [row] = layout.events(spark, tmp_path).collect()
    assert (row["tenant"], row["number"], row["at"].astimezone(UTC)) == ("shop", 7, AT)
    assert (row["date"], row["hour"]) == (date(2026, 1, 31), 2)
    assert row["task"] is None


def test_a_tenant_is_text_even_if_it_looks_like_a_number(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(event(spark, 7, tenant="007"), tmp_path)
    [row] = layout.events(spark, tmp_path).collect()
    assert row["tenant"] == "007"


def test_what_other_releases_wrote_is_read_too(spark: SparkSession, tmp_path: Path) -> None:
    write(event(spark, 1).drop("host", "frame"), tmp_path, run=1)
    write(event(spark, 2).withColumn("task", F.lit("charge")), tmp_path, run=2)
    newer = event(spark, 3).withColumns({"host": F.lit("h"), "tags": F.array(F.lit("t"))})
    write(newer, tmp_path, run=3)
    frame = layout.events(spark, tmp_path)
    assert frame.schema.names == [*layout.event_schema().names, "tags"]
    found = frame.orderBy("number").select("number", "task", "host", "tags").collect()
    assert [tuple(row) for row in found] == [
        (1, None, None, None),
        (2, "charge", None, None),
        (3, None, "h", ["t"]),
    ]


def test_a_root_and_a_width_have_to_be_said(spark: SparkSession) -> None:
    with pytest.raises(InvalidOption, match="root='' is not valid"):
        layout.events(spark, "")
    with pytest.raises(InvalidOption, match="width='2s' is not known: use 10s, 1min, 1h"):
        layout.rollups(spark, "anywhere", "2s")
