"""A worker runs the pipeline by its schedule, in processes of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace import SyncApp
from headrace.spark.pipeline import dead_letters, events
from headrace.spark.pipeline.jobs import pipeline
from tests.spark.support.sessions import FAST
from tests.spark.support.worked import dead, work
from tests.support.threads import blocked_until, working
from tests.support.until import patience

LIMIT_S = 60


@pytest.mark.parametrize("url", ["redis"], indirect=True)
def test_what_is_due_is_archived(
    spark: SparkSession, url: str, app: SyncApp[None], tmp_path: Path
) -> None:
    work(url, dead(["a"]))
    root = tmp_path / "archive"
    tasks = pipeline(
        root,
        queues=["orders"],
        url=url,
        archive_every=1,
        rollup_every=None,
        compact_every=None,
        master="local[1]",
        conf=FAST,
    )
    app.include(tasks)
    with working(app):
        [fired] = blocked_until(lambda: list(app.schedules.history("pipeline.archive")))
        app.schedules.pause("pipeline.archive")
        assert fired.job_id is not None
        job = app.job(fired.job_id, queue="pipeline")
        report = job.result(timeout=patience(LIMIT_S))
    assert (report["run"], report["dead_letters"], report["lost"]) == (1, 1, 0)
    assert events(spark, root).count() == report["events"]
    assert [row["job_id"] for row in dead_letters(spark, root).collect()] == ["a"]
