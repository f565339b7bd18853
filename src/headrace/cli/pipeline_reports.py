"""``headrace pipeline rollup``: what is made of an archive."""

from __future__ import annotations

from datetime import datetime

import click

from headrace.cli.options import option, output_option
from headrace.cli.output import echo, echo_json, note, plural, when
from headrace.cli.pipeline_spark import Archive, on_archive, tenant_option
from headrace.cli.quantities import instant


@click.command("rollup")
@tenant_option
@option(
    "--since",
    type=instant,
    metavar="INSTANT",
    help="Make what happened since then anew.  [default: what is new in the archive]",
)
@output_option
@on_archive
def rollup_command(
    *, archive: Archive, tenant: str | None, since: datetime | None, output: str
) -> None:
    """Count what happened in each 10 seconds, minute and hour of the archive in ROOT.

    Brings its roll-ups up to date: counts, error rates, and percentiles of wait and run, of each
    queue and task. It may be run again at any time.
    """
    with archive.spark() as spark:
        from headrace.spark.pipeline.rollup import rollup

        report = rollup(spark, archive.root, tenant=tenant, since=since)
    if output == "json":
        echo_json(report)
    elif report.final_until is None:
        note(f'Nothing is archived in {archive.root}: "headrace pipeline archive" does that.')
    else:
        parts = plural(report.partitions, "partition")
        echo(f"{parts} with {plural(report.rows, 'row')} made anew.")
        echo(f"What happened before {when(report.final_until)} is final.")
