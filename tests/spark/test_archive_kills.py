"""Archivers die by SIGKILL, with their JVM, and the next one makes up for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from headrace import ArchiveInUse, SyncApp
from headrace.spark.pipeline import archive
from tests.spark.support.archives import counted
from tests.spark.support.trees import ProcessTree
from tests.spark.support.worked import dead, done, work
from tests.support.until import until

SOON_S = 60.0
STAGED = "events/tenant=default/.spark-staging-*"
IN_PLACE = "events/tenant=default/date=*/hour=*/run=*/*.parquet"


def archived(root: Path) -> Counter[tuple[str, int]]:
    """Return how often each event is there for who reads without Spark."""
    if not any(root.glob(IN_PLACE)):
        return Counter()
    table = ds.dataset(f"{root}/events", partitioning="hive").to_table(["queue", "number"])
    return Counter(zip(table["queue"].to_pylist(), table["number"].to_pylist(), strict=True))


def told(url: str) -> Counter[tuple[str, int]]:
    """Return what the queue tells."""
    with SyncApp[None](url) as app:
        return Counter((event.queue, event.number) for event in app.queue("orders").events())


def has_come_to(step: str, archiver: ProcessTree) -> bool:
    """Whether an archiver has said that it has come to a step."""
    return step in archiver.stdout.split()


def check_refused(spark: SparkSession, root: Path, url: str, archiver: ProcessTree) -> None:
    """See that a second archiver is refused, also while Java outlives the first that has died."""
    for is_dead in (False, True):
        if is_dead:
            for process in archiver.members:
                if process.name() == "java":
                    process.suspend()
            archiver.kill()
            asyncio.run(archiver.wait())
        with pytest.raises(ArchiveInUse):
            archive(spark, root, queues=["orders"], url=url)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # it starts six JVMs
def test_what_is_killed_at_any_step_is_made_up_for(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    """After the plan, while it writes, when some is in place, before and after done."""
    root = tmp_path / "archive"
    expected: Counter[str] = Counter()

    def killed(name: str, seen: Callable[[ProcessTree], object], *words: str) -> None:
        names = [f"{name}-{number}" for number in range(20)]
        work(url, {**dead(names), **done(f"{name}-done-{number}" for number in range(300))})
        expected.update(names)
        arguments = (str(root), url, str(tmp_path / f"scratch-{name}"), *words)
        module = "tests.spark.support.archiver"
        with ProcessTree.module(module, *arguments, directory=tmp_path, name=name) as archiver:
            waits = until(
                lambda: seen(archiver) or archiver.returncode is not None,
                within=SOON_S,
                what=f"it is {name}",
            )
            asyncio.run(waits)
            assert archiver.returncode is None
            if words:
                check_refused(spark, root, url, archiver)
            archiver.kill_all()
        assert not archived(root) - told(url), f"twice after {name}"

    for step in ("spark.archive_planned", "spark.archive_written", "spark.archive_done"):
        killed(step, partial(has_come_to, step), step)
    killed("staged", lambda _tree: any(root.glob(STAGED)))
    before = set(root.glob(IN_PLACE))
    killed("in-place", lambda _tree: set(root.glob(IN_PLACE)) - before)

    report = archive(spark, root, queues=["orders"], url=url)
    assert report.lost == 0
    assert archived(root) == told(url)
    assert counted(root, "job_id", kind="dead") == expected
    assert archive(spark, root, queues=["orders"], url=url).events == 0
