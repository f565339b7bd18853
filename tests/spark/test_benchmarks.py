"""The benchmarks of the Spark bridge: each case runs, and what a run found is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from benchmarks.growth.points import Point
from benchmarks.harness import at_least
from benchmarks.spark import counts, growth, pipeline, plots, reads, results, writes
from benchmarks.spark.__main__ import main, parts
from benchmarks.spark.parts import Part, measured
from benchmarks.spark.stand import RATE, Stand
from tests.spark.support.trees import ProcessTree
from tests.support.redis_server import RedisServer
from tests.support.until import until

ROWS = 1_000
DAEMON = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if not os.fork():
    while time.process_time() < 0.2:
        pass
    print(os.getpid(), flush=True)
signal.pause()
"""
"""Has a worker that has worked, and takes no note of its end, as Spark's Python daemon does."""


@pytest.fixture
def stand(spark: SparkSession, redis_server: RedisServer, tmp_path: Path) -> Stand:
    return Stand(spark, redis_server, tmp_path, rows=ROWS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", [writes.PART, reads.PART, pipeline.PART], ids=["writes", "reads", "pipeline"]
)
def test_every_case_brings_its_rows(part: Part, stand: Stand) -> None:
    points = measured(stand, part, rounds=1)
    assert [(point.line, point.size) for point in points] == list(part.cases)
    assert all(point.median(RATE) > 0 for point in points)


@pytest.mark.parametrize("part_of", [growth.by_rows, growth.by_partitions])
def test_growth_is_measured_in_writing_and_in_reading(
    part_of: Callable[[int], Part], stand: Stand
) -> None:
    part = part_of(ROWS)
    smallest = min(size for _, size in part.cases)
    cases = {place: case for place, case in part.cases.items() if place[1] == smallest}
    for point in measured(stand, replace(part, cases=cases), rounds=1):
        assert point.median(RATE) > 0
        assert point.median(growth.READ) > 0


async def test_a_worker_that_ends_meanwhile_takes_no_time_away(
    stand: Stand, tmp_path: Path
) -> None:
    with ProcessTree(sys.executable, "-c", DAEMON, directory=tmp_path) as daemon:
        worker = psutil.Process(int(await until(lambda: daemon.stdout)))

        def end() -> None:
            worker.kill()
            psutil.wait_procs([worker])

        costs = stand.measured(1, end)
    assert costs["Python"] >= 0


@pytest.mark.slow
def test_the_p99_of_roll_ups_is_within_one_percent(stand: Stand) -> None:
    points = measured(stand, pipeline.ACCURACY, rounds=1)
    assert all(point.median(pipeline.BUCKETS) > 0 for point in points)
    assert max(point.median(pipeline.WORST) for point in points) <= 1.0


@pytest.mark.slow
def test_the_instructions_of_a_row_are_counted(stand: Stand) -> None:
    found = counts.count("direct", 9, stand)
    assert found[counts.INSTRUCTIONS] == pytest.approx(23_000, rel=0.1)


def test_a_table_has_the_runs_and_the_goal_of_the_main_value() -> None:
    runs = {RATE: [300.0, 100.0, 200.0], "JVM": [2.0, 1.5, 1.0]}
    part = Part("t", {}, goals={("direct, {:,} B", 64): at_least(150)})
    points = [Point("direct, {:,} B", 64, runs), Point("again", 0, runs)]
    assert results.table_of(part, points).splitlines() == [
        f"|  | {RATE} | runs | goal | JVM |",
        "| --- | --- | --- | --- | --- |",
        "| direct, 64 B | 200 | 100 to 300 | ≥ 150, met | 1.5 |",
        "| again | 200 | 100 to 300 |  | 1.5 |",
    ]


@pytest.mark.slow
def test_the_picture_has_a_line_for_each_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "FILE", tmp_path / "spark.svg")
    runs = {what: [float(number)] for number, (*_, what) in enumerate(plots.PANELS, 1)}
    plots.draw(
        {
            name: [Point(line, size, runs) for line, size in part.cases]
            for name, part in parts(ROWS).items()
        }
    )
    assert (tmp_path / "spark.svg").read_text().count("atomic") == len(plots.PANELS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["writes", "heat"], "no part heat: use writes, reads"),
        (["--write", "reads"], "--write takes a full run: name no part with it"),
        (["--rows", "10"], "--rows 10 are too few"),
    ],
)
def test_arguments_that_mean_nothing_are_refused_before_anything_is_measured(
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks.spark", *words])
    with pytest.raises(SystemExit):
        main()
    assert message in capsys.readouterr().err
