"""Spark starts quietly and for this machine alone, and its errors are one line each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.errors import HeadraceError, InvalidOption, StorageUnavailable
from headrace.spark.starting import started
from tests.support.processes import ROOT
from tests.support.until import patience

LIMIT_S = 60

LISTENS = """
from headrace.spark.starting import started
with started("local[1]", conf={"spark.app.name": "mine"}) as spark:
    conf = spark.sparkContext.getConf()
    print(spark.range(7).count(), conf.get("spark.app.name"), conf.get("spark.driver.host"))
    print(spark.sql("SELECT unix_seconds(timestamp'2026-01-31 12:00')").first()[0])
    print(spark.sparkContext.uiWebUrl)
    try:
        spark.sql("SELECT nothing FROM range(1)")
    except Exception as error:
        print(type(error).__name__)
"""
REFUSED = """
from headrace.spark.starting import started
with started({master!r}, conf={conf!r}): pass
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")},
        capture_output=True,
        text=True,
        timeout=patience(LIMIT_S),
        check=False,
    )


@pytest.mark.slow
def test_it_says_nothing_and_listens_on_the_loopback_interface_only() -> None:
    done = run(LISTENS)
    told = ["7 mine 127.0.0.1", "1769860800", "None", "AnalysisException", ""]
    assert done.stdout.split("\n") == told, done
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("master", "conf", "told"),
    [
        ("local[1]", {"spark.driver.memory": "lots"}, "Invalid maximum heap size: -Xmxlots"),
        ("nowhere", {}, "org.apache.spark.SparkException: Master must"),
    ],
    ids=["a setting", "a master"],
)
def test_what_keeps_it_from_starting_is_said(master: str, conf: dict[str, str], told: str) -> None:
    done = run(REFUSED.format(master=master, conf=conf))
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"headrace.errors.HeadraceError: Spark did not start: {told}"), done


def test_a_setting_that_is_none_of_sparks_is_refused(spark: SparkSession) -> None:
    told = "^'driver.memory' is no setting of Spark: their names begin 'spark.'$"
    with pytest.raises(InvalidOption, match=told), started(conf={"driver.memory": "4g"}):
        pass


def test_an_active_session_is_used_and_goes_on(spark: SparkSession) -> None:
    with started("local[1]") as found:
        assert found is spark
    assert spark.range(3).count() == 3


def unreachable(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise StorageUnavailable("redis://h can't be reached: is it there?") from OSError(111)


def wrong(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise ValueError("neither here nor there")


@pytest.mark.parametrize(
    ("work", "kind", "told"),
    [
        (unreachable, StorageUnavailable, "redis://h can't be reached: is it there?"),
        (wrong, HeadraceError, "Spark: ValueError: neither here nor there"),
    ],
    ids=["ours", "another"],
)
def test_an_error_of_a_process_of_sparks_is_raised_here(
    spark: SparkSession, work: object, kind: type[HeadraceError], told: str
) -> None:
    with pytest.raises(HeadraceError) as caught, started() as found:
        found.range(1, numPartitions=1).mapInArrow(work, "id long").collect()
    assert (type(caught.value), str(caught.value)) == (kind, told)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT nothing FROM range(3)", "Spark: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column"),
        ("SELECT 1 +", "Spark: [PARSE_SYNTAX_ERROR] Syntax error"),
        ("SELECT * FROM parquet.`nfs://x/y`", "Spark: "),
    ],
    ids=["column", "syntax", "path"],
)
def test_an_error_of_sparks_own_is_one_line(spark: SparkSession, sql: str, told: str) -> None:
    with pytest.raises(HeadraceError) as caught, started() as found:
        found.sql(sql).collect()
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
