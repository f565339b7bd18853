"""No two processes do to an archive at once what only one may do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from pyspark.sql import SparkSession

from headrace import ArchiveInUse
from headrace.spark.pipeline import archive, compact, follow, retain, rollup, runs
from headrace.spark.pipeline.locks import Work, held
from headrace.spark.pipeline.runs import RunDone
from tests.spark.support.worked import done, work
from tests.support.processes import WorkerProcess
from tests.support.until import until

HOLDS = """
import fcntl, pathlib, signal, sys
path = pathlib.Path(sys.argv[1])
path.parent.mkdir(parents=True, exist_ok=True)
with path.open("w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("held", flush=True)
    signal.pause()
"""
"""A process that locks a file as Java does."""

CALLS: dict[str, Callable[[SparkSession, Path], Any]] = {
    "compact": compact,
    "retain": lambda spark, root: retain(spark, root, days=1),
    "rollup": rollup,
}
REFUSED = {
    Work.ARCHIVE: [],
    Work.ROLLUP: ["retain", "rollup"],
    Work.UPKEEP: ["compact", "retain"],
}
"""What can't be done while something else is."""


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an archive of tenant `shop`, in which nothing is left."""
    root = tmp_path_factory.mktemp("archive")
    (root / "events/tenant=shop").mkdir(parents=True)
    runs.write(spark, root, "shop", RunDone(1))
    return root


def holder(root: Path, work: Work, *, tenant: str = "shop") -> WorkerProcess:
    """Return another process that is at work on an archive."""
    path = root / f"_locks/tenant={tenant}/{work}"
    root.mkdir(exist_ok=True)
    return WorkerProcess(
        sys.executable, "-c", HOLDS, str(path), directory=root, name=f"holds-{work}"
    )


async def holds(process: WorkerProcess) -> bool:
    """Whether a process has got its lock."""
    await until(lambda: "held" in process.stdout or process.returncode is not None, within=20)
    return process.returncode is None


def test_a_second_archiver_is_refused_until_the_first_has_died(
    spark: SparkSession, redis_url: str, tmp_path: Path
) -> None:
    root = tmp_path / "archive"
    work(redis_url, done(["a"]))
    with holder(root, Work.ARCHIVE, tenant="default") as other:
        assert anyio.run(holds, other)
        with pytest.raises(ArchiveInUse, match=rf"{root} .* archives tenant 'default'"):
            archive(spark, root, queues=["orders"], url=redis_url)
        with pytest.raises(ArchiveInUse):
            next(follow(spark, root, queues=["orders"], url=redis_url))
        assert not (root / "runs").exists()
        other.kill()
        anyio.run(other.wait)
        assert archive(spark, root, queues=["orders"], url=redis_url).events > 0


@pytest.mark.parametrize("work", list(Work))
def test_what_others_would_spoil_is_refused_and_all_else_is_not(
    spark: SparkSession, shop: Path, work: Work
) -> None:
    with holder(shop, work) as other:
        assert anyio.run(holds, other)
        for name, call in CALLS.items():
            if name in REFUSED[work]:
                with pytest.raises(ArchiveInUse, match=r"tenant 'shop'.* wait until it has ended"):
                    call(spark, shop)
            else:
                call(spark, shop)
    for name in REFUSED[work]:
        CALLS[name](spark, shop)


async def test_who_is_refused_in_a_process_takes_nothing_from_who_holds_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Java lets go of all locks of a file where the process closes it once more."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with held(spark, tmp_path, Work.ARCHIVE, tenants=["shop"]):
        with ThreadPoolExecutor(1) as thread:
            refused = thread.submit(_hold, spark, link)
        with pytest.raises(ArchiveInUse):
            refused.result()
        with holder(tmp_path, Work.ARCHIVE) as other:
            assert not await holds(other)
        _hold(spark, tmp_path, tenant="other")
    _hold(spark, tmp_path)
    with holder(tmp_path, Work.ARCHIVE) as other:
        assert await holds(other)


def test_it_is_held_between_the_runs_of_one_that_follows(
    spark: SparkSession, redis_url: str, tmp_path: Path
) -> None:
    work(redis_url, done(["a"]))
    reports = follow(spark, tmp_path, queues=["orders"], url=redis_url)
    next(reports)
    with pytest.raises(ArchiveInUse):
        archive(spark, tmp_path, queues=["orders"], url=redis_url)
    reports.close()
    archive(spark, tmp_path, queues=["orders"], url=redis_url)


def test_other_file_systems_have_no_locks(spark: SparkSession, tmp_path: Path) -> None:
    settings = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 (there is no other way to it)
    settings.set("fs.viewfs.mounttable.far.link./archives", f"file://{tmp_path}")
    root = "viewfs://far/archives/shop"
    with held(spark, root, Work.ARCHIVE, tenants=["shop"]):
        _hold(spark, root)
    assert list(tmp_path.iterdir()) == []


def _hold(spark: SparkSession, root: Path | str, *, tenant: str = "shop") -> None:
    with held(spark, root, Work.ARCHIVE, tenants=[tenant]):
        pass
