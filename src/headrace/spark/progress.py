"""How far something is, drawn on standard error: a bar on a terminal, elsewhere a line a tenth.

What Spark does in a block is followed by its tasks: in a classic session by looking, in one of
Spark Connect by what the server tells.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex
from threading import Event, Thread
from typing import Any

import click
from pyspark.sql import SparkSession

from headrace.spark.raised import SPARK_ERRORS
from headrace.storage.values import WriteInfo

Draw = Callable[[int, int], None]
"""Draws how much is done, and of how much; the latter may change."""

LOOK_S = 0.2
LAG_MS = 2_000
"""How long what Spark tells of itself may lag; on a busy machine it is tenths of a second."""
_GROUP = "spark.jobGroup.id"
_STEPS = 10


@contextmanager
def drawn(label: str, *, is_shown: bool) -> Iterator[Draw]:
    """Draw in a block how far something is, or nothing at all.

    Args:
        label: what it is.
        is_shown: whether it is drawn.
    """
    if not is_shown:
        yield lambda _done, _of: None
    elif not sys.stderr.isatty():
        yield _Lines(label).draw
    else:
        with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

            def draw(done: int, of: int) -> None:
                bar.length = of
                bar.update(done - bar.pos)

            yield draw


def of_write(draw: Draw) -> Callable[[WriteInfo], None]:
    """Return what draws how far a write is published; at the end duplicates are done, too."""
    return lambda info: draw(info.jobs if info.is_published else info.added, info.jobs)


class _Lines:
    """Says a line whenever a further tenth is done."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._step = 0

    def draw(self, done: int, of: int) -> None:
        step = _STEPS * done // of if of else 0
        if step > self._step:
            self._step = step
            click.echo(f"{self._label}: {done:,} of {of:,}", err=True)


@contextmanager
def spark_followed(spark: SparkSession, label: str, *, is_shown: bool) -> Iterator[None]:
    """Draw in a block how many of the tasks are done that Spark has in it, from this thread.

    Args:
        spark: the session, classic or of Spark Connect.
        label: what the block does.
        is_shown: whether it is drawn; without it nothing is looked at.
    """
    if not is_shown:
        yield
        return
    with drawn(label, is_shown=True) as draw:
        follow = _told if is_remote(spark) else _looked_at
        with follow(spark, draw):
            yield


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def _told(spark: SparkSession, draw: Draw) -> Iterator[None]:
    tasks = 1

    def hear(stages: Any, inflight_tasks: int, operation_id: str | None, *, done: bool) -> None:
        nonlocal tasks
        told = list(stages or ())
        tasks = sum(one.num_tasks for one in told) or tasks
        draw(sum(one.num_completed_tasks for one in told), tasks)

    spark.registerProgressHandler(hear)
    try:
        yield
    finally:
        spark.removeProgressHandler(hear)
    # Of a block that ends within moments nothing is told, and of any the end may not be.
    draw(tasks, tasks)


@contextmanager
def _looked_at(spark: SparkSession, draw: Draw) -> Iterator[None]:
    with _grouped(spark) as group:
        seen = set(spark.sparkContext.statusTracker().getJobIdsForGroup(group))

        def look() -> None:
            draw(*_tasks(spark, group, seen))

        with _every(LOOK_S, look):
            yield
        # What is told of tasks lags behind a block that has come to its end.
        _catch_up(spark)
        _, of = _tasks(spark, group, seen)
        draw(of, of)


def _catch_up(spark: SparkSession) -> None:
    """Wait until what has happened so far is told, for so long as it may lag behind."""
    context: Any = spark.sparkContext
    with suppress(*SPARK_ERRORS):
        context._jsc.sc().listenerBus().waitUntilEmpty(LAG_MS)  # noqa: SLF001 (no other way to it)


@contextmanager
def _grouped(spark: SparkSession) -> Iterator[str]:
    """Let this thread's jobs have a group, and return it: the user's, where there is one."""
    context = spark.sparkContext
    group = context.getLocalProperty(_GROUP)
    if group:
        yield group
        return
    group = f"headrace-{token_hex(8)}"
    context.setLocalProperty(_GROUP, group)
    try:
        yield group
    finally:
        context.setLocalProperty(_GROUP, None)


def _tasks(spark: SparkSession, group: str, seen: set[int]) -> tuple[int, int]:
    """Return how many tasks of a group's new jobs are done, and of how many."""
    tracker = spark.sparkContext.statusTracker()
    done = of = 0
    for job_id in set(tracker.getJobIdsForGroup(group)) - seen:
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job else ():
            stage = tracker.getStageInfo(stage_id)
            if stage:
                done += stage.numCompletedTasks
                of += stage.numTasks
    return done, of


@contextmanager
def _every(seconds: float, call: Callable[[], None]) -> Iterator[None]:
    """Call something again and again in a thread, until the block ends."""
    has_ended = Event()

    def repeat() -> None:
        while not has_ended.wait(seconds):
            with suppress(Exception):  # Spark has ended, which the block says itself
                call()

    thread = Thread(target=repeat, name="headrace progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()
