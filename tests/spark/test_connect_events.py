"""Events are read through Spark Connect, and a driver without a JVM has all that it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from headrace.testing.contract.steps import QUEUE
from tests.spark.support.drivers import Driver
from tests.spark.support.rows import numbered, once, save, take_rows
from tests.spark.support.worked import dead, work
from tests.support.processes import ROOT
from tests.support.until import patience

ROWS = 1_500


@pytest.fixture
def written(connect: SparkSession, url: str) -> str:
    """Return the address of a storage with the events of rows."""
    save(numbered(connect, ROWS, has_ids=True), url)
    return url


def test_events_are_read(connect: SparkSession, written: str) -> None:
    events = connect.read.format("headrace").options(url=written, queue=QUEUE).load()
    found = events.groupBy("kind").count().collect()
    assert {row.kind: row["count"] for row in found} == {"queued": ROWS}


def test_a_stream_of_events_is_read(connect: SparkSession, written: str, tmp_path: Path) -> None:
    options = {"url": written, "queue": QUEUE, "startingOffsets": "earliest"}
    query = (
        connect.readStream.format("headrace")
        .options(**options)
        .load()
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "events"))
    )
    assert query.awaitTermination(patience(60))
    assert query.exception() is None
    numbers = connect.read.parquet(str(tmp_path / "events")).select("number")
    assert (numbers.count(), numbers.distinct().count()) == (ROWS, ROWS)


@pytest.mark.slow
async def test_a_driver_without_a_jvm_writes_and_reads(
    connect_address: str, redis_url: str, tmp_path: Path
) -> None:
    with Driver.start(
        "remote", tmp_path, address=connect_address, url=redis_url, rows=ROWS
    ) as driver:
        [told] = await driver.tells("done")
    assert told == {"what": "done", "added": ROWS, "events": ROWS, "children": []}
    assert await take_rows(redis_url) == once(ROWS)


@pytest.fixture
def client_only(tmp_path: Path) -> Path:
    """Return a directory with all that is installed, of pyspark what pyspark-client has."""
    folder, found = tmp_path / "packages", Path(pyspark.__file__).parent
    (folder / "pyspark").mkdir(parents=True)
    for package in found.parent.iterdir():
        if not package.name.startswith(("pyspark", "py4j")):
            (folder / package.name).symlink_to(package)
    for part in found.iterdir():
        if part.name not in {"bin", "core", "jars", "java_gateway.py"}:
            (folder / "pyspark" / part.name).symlink_to(part)
    return folder


def test_what_is_public_can_be_imported_with_the_client_of_spark_connect(client_only: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", "from headrace.spark import *"],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{client_only}"},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_command_needs_no_more_than_the_client_of_spark_connect(
    connect_address: str, redis_url: str, client_only: Path, tmp_path: Path
) -> None:
    work(redis_url, dead(["a"]))
    root, target = str(tmp_path / "archive"), ("--url", redis_url, "--master", connect_address)
    words = ("-m", "headrace", "pipeline", "archive", root, *target, "-o", "json")
    done = subprocess.run(
        [sys.executable, "-S", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{client_only}"},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    report = json.loads(done.stdout)
    assert (report["run"], report["dead_letters"], report["lost"]) == (1, 1, 0)
