"""Drivers that tests start beside their own session, and kill.

Run as ``python -m tests.spark.programs NAME ARGUMENTS``, with the arguments of a function below as
JSON. Whatever it has done it tells in a line of JSON.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pyarrow
import pytest
from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headrace.spark import enqueue_dataframe
from headrace.spark.pipeline import compact, rollup, upkeep
from headrace.spark.pipeline.files import Files
from headrace.testing.contract.steps import QUEUE
from tests.spark.support.broken_files import breaking
from tests.spark.support.gates import pass_gate
from tests.spark.support.rows import TASK, numbered, save, to_jobs
from tests.spark.support.sessions import session
from tests.support.processes import ROOT

PATIENT_S = 600
"""How long a write that a test holds asks again: until it is killed."""


def say(what: str, **fields: Any) -> None:
    """Write one line of JSON."""
    os.write(1, msgspec.json.encode({"what": what, **fields}) + b"\n")


def write(scratch: str, writes: list[dict[str, Any]]) -> None:
    """Make several writes at once, by ``save`` or ``enqueue``, and tell of each that has ended."""
    # What is held keeps a core.
    master = f"local[{len(writes) + 1},3]"
    spark = session(master, scratch=Path(scratch), **SMALL_BATCHES)
    with ThreadPoolExecutor(len(writes)) as threads:
        list(threads.map(lambda one: _write(spark, **one), writes))


def _write(
    spark: SparkSession,
    *,
    way: str,
    url: str,
    tenant: str,
    rows: int,
    write_id: str,
    gate: str = "",
) -> None:
    frame = slowed(numbered(spark, rows), gate)
    if way == "save":
        save(frame, url, tenant=tenant, commit="atomic", writeId=write_id, retryFor=PATIENT_S)
    else:
        enqueue_dataframe(
            frame,
            url=url,
            tenant=tenant,
            queue=QUEUE,
            task=TASK,
            commit="atomic",
            write_id=write_id,
            retry_for=PATIENT_S,
        )
    say("written", tenant=tenant)


def remote(scratch: str, address: str, url: str, rows: int) -> None:
    """Write and read by a server of Spark Connect; ``scratch`` is of no use here."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    events = spark.read.format("headrace").options(url=url, queue=QUEUE).load()
    report = enqueue_dataframe(numbered(spark, rows, has_ids=True), url=url, queue=QUEUE, task=TASK)
    children = [child.name() for child in psutil.Process().children(recursive=True)]
    say("done", added=report.added, events=events.count(), children=children)


def speculate(scratch: str, master: str, url: str, writes: list[dict[str, Any]]) -> None:
    """Write on a cluster that starts a second attempt of what takes longer than the rest.

    The first attempt of the first partition of each write waits at its gate.
    """
    spark = session(master, scratch=Path(scratch), **SPECULATION)
    for number, one in enumerate(writes):
        # So large that a batch is not held back in a buffer between processes of Spark.
        frame = numbered(spark, one["rows"], partitions=4, has_ids=one["has_ids"], padding=400)
        save(slowed(frame, one["gate"]), url, tenant=one["tenant"], **one["options"])
        say("written", number=number)


def write_elsewhere(scratch: str, master: str, url: str, path: str) -> None:
    """Write on a cluster whose Python looks for modules in a folder first; tell how it fails."""
    settings = {**SPECULATION, "spark__executorEnv__PYTHONPATH": path}
    spark = session(master, scratch=Path(scratch), **settings)
    try:
        save(numbered(spark, 10, has_ids=True), url)
    except PySparkException as error:
        say("failed", error=str(error))


def stream(scratch: str, url: str, folder: str, batch: int) -> None:
    """Bring rows of files to two queues, and the events of a third to files, a bit at a time.

    Args:
        scratch: a directory for what Spark writes on the way.
        url: the storage; its tenants ``atomic`` and ``direct`` get rows, ``events`` has events.
        folder: where the rows are in ``rows``, the events will be in ``events``, and the
            checkpoints of each stream.
        batch: how many events go to a micro-batch; of files it is one.
    """
    spark = session("local[3,3]", scratch=Path(scratch))
    rows = (
        spark.readStream.schema("id string, payload string")
        .option("maxFilesPerTrigger", 1)
        .parquet(f"{folder}/rows")
    )
    events = (
        spark.readStream.format("headrace")
        .options(url=url, tenant="events", queue=QUEUE)
        .options(startingOffsets="earliest", maxEventsPerTrigger=batch)
        .load()
    )
    sinks = {
        "atomic": to_jobs(rows.drop("id"), url, tenant="atomic", commit="atomic"),
        "direct": to_jobs(rows, url, tenant="direct", commit="direct"),
        "events": events.writeStream.format("parquet").option("path", f"{folder}/events"),
    }
    queries = [
        sink.option("checkpointLocation", f"{folder}/checkpoints/{name}")
        .trigger(availableNow=True)
        .start()
        for name, sink in sinks.items()
    ]
    for query in queries:
        query.awaitTermination()
    say("ended")


def keep(scratch: str, works: list[dict[str, Any]]) -> None:
    """Compact or roll up archives at once, and tell of each that has ended.

    One that has a ``stop`` tells when it has made so many changes, and goes no further.
    """
    spark = session("local[2,3]", scratch=Path(scratch))
    stops = {one["root"]: one["stop"] for one in works if "stop" in one}
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(works)) as threads:
        if stops:
            stop_at(stops, patch)
        list(threads.map(lambda one: _keep(spark, **one), works))


def _keep(spark: SparkSession, *, function: str, root: str, stop: int | None = None) -> None:
    functions: dict[str, Callable[..., Any]] = {"compact": compact, "rollup": rollup}
    try:
        functions[function](spark, root)
    except (PySparkException, Py4JError) as error:  # files may be exchanged while they are read
        say("failed", root=root, function=function, error=str(error))
    else:
        say("ended", root=root, function=function)


def stop_at(stops: dict[str, int], patch: pytest.MonkeyPatch) -> None:
    """Have works on archives be held for good after so many changes, by the roots of these.

    A change of a roll-up is one of its tables of Spark.
    """
    rolling = sys.modules[rollup.__module__]
    overwrite, counts = vars(rolling)["_overwrite"], {root: count() for root in stops}

    def hold(root: str) -> None:
        say("held", root=root)
        threading.Event().wait()

    def files(spark: SparkSession, root: str) -> Files:
        return breaking(stops[root], partial(hold, root))(spark, root)

    def stopping(frame: DataFrame, path: str, *partition: str) -> None:
        [root] = [root for root in stops if path.startswith(f"{root}/")]
        if next(counts[root]) == stops[root]:
            hold(root)
        overwrite(frame, path, *partition)

    patch.setattr(upkeep, "Files", files)
    patch.setattr(rolling, "_overwrite", stopping)


SMALL_BATCHES = {"spark__sql__execution__arrow__maxRecordsPerBatch": "500"}
SPECULATION = {
    **SMALL_BATCHES,
    "spark__executor__memory": "512m",
    "spark__executorEnv__PYTHONPATH": str(ROOT),
    "spark__pyspark__python": sys.executable,
    "spark__python__task__killTimeout": "10s",
    "spark__python__worker__reuse": "false",
    "spark__speculation": "true",
    "spark__speculation__interval": "100ms",
    "spark__speculation__minTaskRuntime": "100ms",
    "spark__speculation__multiplier": "1.1",
    "spark__speculation__quantile": "0.5",
}
"""To start a second attempt soon, and to let the one that lost go on for a while."""


def slowed(frame: DataFrame, gate: str) -> DataFrame:
    """Return a frame whose first partition waits at a gate, after two batches, the first time.

    A second attempt of it does not wait. Each attempt leaves a note beside the gate.
    """
    if not gate:
        return frame

    def passed(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        task = TaskContext.get()
        is_first = task.partitionId() == 0
        if is_first:
            Path(f"{gate}.attempt-{task.attemptNumber()}").touch()
        for number, batch in enumerate(batches):
            if number == 2 and is_first and task.attemptNumber() == 0:
                pass_gate(gate)
            yield batch

    return frame.mapInArrow(passed, frame.schema)


PROGRAMS: dict[str, Callable[..., None]] = {
    "keep": keep,
    "remote": remote,
    "speculate": speculate,
    "stream": stream,
    "write": write,
    "write_elsewhere": write_elsewhere,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](**msgspec.json.decode(sys.argv[2]))
