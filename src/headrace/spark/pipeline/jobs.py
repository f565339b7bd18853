"""Tasks that run the pipeline, for an app to schedule.

Each attempt is a process of its own with a Spark of its own, see `apart`. So a worker needs no
pyspark until a job runs, never has Java in its process, and can stop what it is asked to stop.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.blueprint import Blueprint
from headrace.clock import Duration
from headrace.context import Context
from headrace.errors import InvalidOption
from headrace.job import DEFAULT_TENANT, check_name
from headrace.plain import shown
from headrace.settings import check_count
from headrace.spark.pipeline.apart import PipelineCall, run_apart
from headrace.storage.connect import check_url

MOST_DAYS = 36_500
DAY_S = 86_400

Report = dict[str, Any]


class _Runner:
    """Runs functions of the pipeline on one archive."""

    def __init__(self, root: str, tenant: str, master: str, conf: Mapping[str, str]) -> None:
        self._root = root
        self._tenant = tenant
        self._master = master
        self._conf = dict(conf)

    async def run(self, function: str, **arguments: Any) -> Report:
        """Return the function's report."""
        of_tenant = {"tenant": self._tenant, **arguments}
        call = PipelineCall(function, self._root, of_tenant, self._master, self._conf)
        return await run_apart(call)


def pipeline(
    root: str | os.PathLike[str],
    *,
    queues: Sequence[str],
    url: str = "",
    tenant: str = DEFAULT_TENANT,
    archive_every: Duration | None = 60,
    rollup_every: Duration | None = 300,
    compact_every: Duration | None = 3600,
    keep_days: int | None = None,
    queue: str = "pipeline",
    timeout: Duration = 3600,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
) -> Blueprint[Any]:
    """Return tasks that keep an archive and its roll-ups, with their schedules.

    Include it in an app: ``app.include(pipeline("/var/lib/shop/archive", queues=["orders"]))``. The
    tasks are ``pipeline.archive``, ``pipeline.rollup``, ``pipeline.compact``, ``pipeline.retain``,
    which takes ``days``, and ``pipeline.replay``, which takes ``where``, ``queue`` and ``limit`` as
    the function `replay` does. The result of a job is the report of its function. A job that is
    cancelled or takes too long is ended with all that it has started, and the next one makes good
    what that has left half done. A schedule fires nothing while its last job has not ended.

    Args:
        root: where the archive is: a path or URI that Spark knows, the same for every worker.
        queues: whose events and dead letters are archived.
        url: where they are; "": as ``HEADRACE_URL`` of the worker says.
        tenant: whose they are.
        archive_every: seconds or a `timedelta` between two runs of the archive; None: no schedule.
        rollup_every: likewise of the roll-ups.
        compact_every: likewise of compaction. None on object stores.
        keep_days: of how many days before today events and dead letters are kept: once a day older
            ones are deleted; None: all are kept.
        queue: where the tasks' jobs wait.
        timeout: how long one may take.
        master: of Spark, ``local[*]`` by default.
        conf: settings of Spark, such as ``{"spark.driver.memory": "4g"}``.

    Raises:
        InvalidOption: an argument is out of bounds.
    """
    names = _checked(queues)
    url = url and check_url(url)
    runner = _Runner(os.fspath(root), check_name(tenant, what="tenant"), master, conf or {})
    tasks: Blueprint[Any] = Blueprint(prefix="pipeline.", queue=queue, timeout=timeout)

    @tasks.task(name="archive")
    async def archive() -> Report:
        return await runner.run("archive", queues=names, url=url)

    @tasks.task(name="rollup")
    async def rollup() -> Report:
        return await runner.run("rollup")

    @tasks.task(name="compact")
    async def compact() -> Report:
        return await runner.run("compact")

    @tasks.task(name="retain")
    async def retain(days: int) -> Report:
        return await runner.run("retain", days=days)

    @tasks.task(name="replay")
    async def replay(
        context: Context, where: str = "", queue: str | None = None, limit: int | None = None
    ) -> Report:
        # By the job's id, so that an attempt after a crash brings nothing twice.
        asked = {"where": where, "queue": queue, "limit": limit}
        return await runner.run("replay", url=url, write_id=context.job_id, **asked)

    for task, every in ((archive, archive_every), (rollup, rollup_every), (compact, compact_every)):
        if every is not None:
            tasks.every(every, overlap="skip")(task)
    if keep_days is not None:
        check_count(keep_days, name="keep_days", most=MOST_DAYS)
        tasks.every(DAY_S, overlap="skip", args={"days": keep_days})(retain)
    return tasks


def _checked(queues: Sequence[str]) -> list[str]:
    if isinstance(queues, str) or not queues:
        raise InvalidOption(f"queues={shown(queues)} is not valid: use a list of names")
    return [check_name(name, what="queue") for name in queues]
