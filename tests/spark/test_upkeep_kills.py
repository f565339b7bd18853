"""Compactions and roll-ups die by SIGKILL, with their JVM, and the next ones make up for it."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.spark.pipeline import compact, rollup
from tests.crash.crew import passed
from tests.spark.support.archives import AT, all_kept, archived, counted, history
from tests.spark.support.drivers import Driver
from tests.support.until import until

COMPACTION = range(7)
"""Before it clears its place, notes what it does, takes three files away, puts one, and clears."""

ROLLUP = range(4)
"""Before it writes each width, and notes how far it has come."""

RUNS = 3
HOURS = 8
KILLS = 4


def told(hours: float) -> list[Mapping[str, Any]]:
    """Return events of so many hours, each with a job of its own."""
    events = history(3, AT, AT + timedelta(hours=hours), round(150 * hours))
    return [{**event, "job_id": f"j{number}"} for number, event in enumerate(events)]


def archive_of(spark: SparkSession, root: Path, events: list[Mapping[str, Any]]) -> None:
    """Make an archive whose hours have a file of each of three runs, and a roll-up of the first."""
    for run in range(RUNS):
        archived(spark, root, events[run::RUNS])
        if run == 0:
            rollup(spark, root)


def once(events: list[Mapping[str, Any]]) -> Counter[str]:
    """Return each event's job once."""
    return Counter(event["job_id"] for event in events)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_after_a_kill_at_any_step_the_next_one_brings_it_to_its_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = told(0.4)
    archive_of(spark, tmp_path / "whole", events)
    steps = [("compact", stop) for stop in COMPACTION] + [("rollup", stop) for stop in ROLLUP]
    roots = {step: tmp_path / "{}-{}".format(*step) for step in steps}
    for root in roots.values():
        shutil.copytree(tmp_path / "whole", root)
    works = [
        {"function": name, "root": str(roots[name, stop]), "stop": stop} for name, stop in steps
    ]
    with Driver.start("keep", tmp_path, works=works) as driver:
        await driver.tells("held", len(steps))
        driver.kill_all()
    rollup(spark, tmp_path / "whole")
    rows = all_kept(spark, tmp_path / "whole")
    for step, root in roots.items():
        assert not counted(root, "job_id") - once(events), step
        rollup(spark, root)
        compact(spark, root)
        rollup(spark, root)
        assert counted(root, "job_id") == once(events), step
        assert all_kept(spark, root) == rows, step
        assert len(list(root.glob("events/*/*/*/*/*.parquet"))) == 1, step


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_what_is_killed_again_and_again_is_whole_in_the_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A compaction and a roll-up of one archive at once."""
    seed = random.randrange(10_000)
    draw = random.Random(seed)
    root, events = tmp_path / "archive", told(HOURS)
    archive_of(spark, root, events)
    shutil.copytree(root, tmp_path / "whole")
    rollup(spark, tmp_path / "whole")
    works = [{"function": name, "root": str(root)} for name in ("compact", "rollup")]
    for number, goal in enumerate(sorted(draw.sample(range(HOURS), KILLS))):
        with Driver.start("keep", tmp_path, name=f"driver-{number}", works=works) as driver:
            await until(partial(has_come_to, goal, root, driver), within=60)
            await passed(draw.uniform(0, 2))
            driver.kill_all()
        assert not counted(root, "job_id") - once(events), seed
    compact(spark, root)
    rollup(spark, root)
    assert counted(root, "job_id") == once(events), seed
    assert all_kept(spark, root) == all_kept(spark, tmp_path / "whole"), seed
    assert merged(root) == len(list(root.glob("events/*/*/hour=*"))), seed


def has_come_to(goal: int, root: Path, driver: Driver) -> bool:
    """Whether so many hours are merged, or nobody goes on."""
    return merged(root) >= goal or driver.returncode is not None


def merged(root: Path) -> int:
    """Return how many hours have one file."""
    hours = root.glob("events/tenant=*/date=*/hour=*")
    return sum(len(list(hour.glob("run=*/*.parquet"))) == 1 for hour in hours)
