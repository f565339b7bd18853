"""``headrace pipeline plot``: throughput, latency and errors as pictures."""

from __future__ import annotations

from datetime import datetime

import click

from headrace.cli.options import option, output_option
from headrace.cli.output import echo, echo_json
from headrace.cli.pipeline_spark import (
    SparkArchive,
    on_archive,
    since_option,
    tenant_option,
    until_option,
)


@click.command("plot")
@since_option
@until_option
@option("--queue", "-q", metavar="NAME", help="Only jobs of this queue.")
@option("--task", "-t", metavar="NAME", help="Only jobs of this task.")
@tenant_option
@output_option
@on_archive
@click.argument("directory", default=".")
def plot_command(
    *,
    archive: SparkArchive,
    directory: str,
    since: datetime | None,
    until: datetime | None,
    queue: str | None,
    task: str | None,
    tenant: str | None,
    output: str,
) -> None:
    """Draw throughput, latency and errors as PNG files in DIRECTORY.

    They are made of the roll-ups of the archive in ROOT, and written over where they are there.
    DIRECTORY is the working directory by default. Needs headrace[plots].
    """
    from headrace.spark.requirements import check_matplotlib

    check_matplotlib()
    with archive.reading() as spark:
        from headrace.spark.pipeline.plots import plot

        files = plot(
            spark,
            archive.root,
            directory,
            tenant=tenant,
            since=since,
            until=until,
            queue=queue,
            task=task,
        )
    if output == "json":
        echo_json([str(file) for file in files])
    else:
        for file in files:
            echo(str(file))
