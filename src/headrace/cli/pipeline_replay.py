"""``headrace pipeline replay``: archived dead letters become jobs again."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from headrace.cli.app_target import on_app_target
from headrace.cli.bulk import ask, check_can_ask
from headrace.cli.options import Target, destructive, option, output_option, run
from headrace.cli.output import echo, echo_json, note, plural
from headrace.cli.pipeline_spark import SparkArchive, on_archive, url_for_spark

if TYPE_CHECKING:  # it is imported when it is used, and may not be there
    from headrace.spark.frames import FrameReport


@click.command("replay")
@option(
    "--where",
    metavar="SQL",
    default=None,
    help="Only dead letters of which this condition of Spark SQL holds, as in: "
    "error = 'ValueError' AND ended_at >= '2026-01-31'.  [default: all]",
)
@option("--queue", "-q", metavar="NAME", help="Where all of them go.  [default: each to its own]")
@option("--limit", "-n", type=click.IntRange(min=1), help="Jobs at most.  [default: all]")
@option(
    "--write-id",
    metavar="NAME",
    help="The name of this replay: again under the same, it brings nothing twice.  "
    "[default: a new one]",
)
@destructive
@output_option
@on_archive
@on_app_target
def replay_command(
    *,
    target: Target,
    archive: SparkArchive,
    where: str | None,
    queue: str | None,
    limit: int | None,
    write_id: str | None,
    yes: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Enqueue dead letters of the archive in ROOT again, as new jobs.

    Shows how many and asks. Their arguments, options and priority are as they were; counts and
    errors begin anew. Each queue gets its jobs as a whole or not at all.
    """
    if not (yes or dry_run):
        check_can_ask()
    url = url_for_spark(target)
    run(_check(target))
    with archive.reading() as spark:
        from headrace.spark.pipeline.replay import replay

        make = partial(
            replay,
            spark,
            archive.root,
            url=url,
            tenant=target.tenant_name,
            where=where or "",
            queue=queue,
            limit=limit,
            progress=sys.stderr.isatty(),
        )
        report = make(write_id=write_id, dry_run=dry_run or not yes)
        if not yes or dry_run:
            _preview(report, archive.root, target)
        if not (yes or dry_run):
            if report.rows:
                ask(f"Enqueue {plural(report.rows, 'job')}?")
            report = make(write_id=report.write_id)
    if output == "json":
        echo_json({**report.to_dict(), "dry_run": dry_run})
    elif dry_run:
        echo("Dry run: nothing was changed.")
    else:
        _show(report)


def _preview(report: FrameReport, root: str, target: Target) -> None:
    letters = plural(report.rows, "archived dead letter")
    to = f" to queue {report.queue}" if report.queue else ""
    note(f"This will enqueue {letters} of {root} again{to}, in {target.where}.")


def _show(report: FrameReport) -> None:
    """Print what a replay has done."""
    jobs = plural(report.added, "job")
    if report.is_known:
        echo(f"Replay {report.write_id} was made before, and brought in {jobs}.")
    else:
        echo(f"{jobs} enqueued as replay {report.write_id}.")
    if report.duplicates is None:
        note("The storage has no room for the rest yet: workers go on with it.")


async def _check(target: Target) -> None:
    """Find out before Spark starts whether the storage can be used."""
    async with target.open():
        pass
