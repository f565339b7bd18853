"""The data source is found by Spark itself, reads its options, and harms nobody who has no use."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from headrace import InvalidOption, SyncApp
from headrace.spark.source import HeadraceDataSource, register
from tests.support.processes import ROOT

SCHEMA = StructType([StructField("id", StringType()), StructField("payload", StringType())])


def run(program: str, *path: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that sees nothing but our sources and what is on the path."""
    places = [str(ROOT / "src"), *map(str, path)]
    return subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {places}; {program}"],
        capture_output=True,
        text=True,
        check=False,
    )


def linked(folder: Path, *left_out: str) -> Path:
    """Return a folder with all that is installed here but some packages."""
    for package in Path(pyspark.__file__).parents[1].iterdir():
        if package.name.split("-")[0].lower() not in left_out:
            (folder / package.name).symlink_to(package)
    return folder


def test_spark_finds_it_by_itself(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="'quue' of a read is not known: did you mean queu"):
        spark.read.format("headrace").option("quue", "a").load()


def test_without_pyarrow_spark_still_finds_it_and_it_says_what_is_missing(tmp_path: Path) -> None:
    done = run(
        "import pyspark_headrace; pyspark_headrace.DefaultSource({})",
        linked(tmp_path, "pyarrow"),
    )
    assert done.stderr.splitlines()[-1] == (
        "headrace.errors.MissingRequirement: pyarrow 18.0 or newer is not installed: "
        "pip install 'pyarrow>=18'"
    )


def test_one_that_cannot_be_imported_breaks_nobodys_session(tmp_path: Path) -> None:
    done = run(
        "import pyspark_headrace; print(hasattr(pyspark_headrace, 'DefaultSource'))",
        linked(tmp_path, "msgspec"),
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.parametrize("write", ["writer", "streamWriter"])
def test_a_queue_is_not_overwritten(write: str) -> None:
    with pytest.raises(InvalidOption, match=r"\.mode\('append'\).*\.outputMode\('append'\)"):
        getattr(HeadraceDataSource({}), write)(SCHEMA, overwrite=True)


def test_an_option_of_the_other_direction_is_refused() -> None:
    with pytest.raises(InvalidOption, match="minPartitions is no option of a write: leave it out"):
        HeadraceDataSource({"minpartitions": "2"}).writer(SCHEMA, overwrite=False)
    with pytest.raises(InvalidOption, match="idColumn is no option of a read: leave it out"):
        HeadraceDataSource({"idcolumn": "a"}).schema()


def test_a_thread_of_ones_own_writes_once_it_has_registered(
    spark: SparkSession, redis_url: str
) -> None:
    rows = spark.createDataFrame([("row-1", "{}")], SCHEMA)

    def write() -> None:
        options = {"url": redis_url, "task": "load"}
        rows.write.format("headrace").mode("append").options(**options).save()

    def write_registered() -> None:
        register(spark)
        write()

    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            threads.submit(write).result()
        threads.submit(write_registered).result()
    with SyncApp(redis_url) as app:
        assert app.queue("default").stats().queued == 1
