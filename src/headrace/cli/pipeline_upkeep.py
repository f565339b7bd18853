"""``headrace pipeline compact`` and ``retain``: an archive stays small."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import click

from headrace.cli.bulk import ask, check_can_ask
from headrace.cli.options import destructive, option, output_option
from headrace.cli.output import echo, echo_json, note, plural
from headrace.cli.pipeline_spark import SparkArchive, on_archive, tenant_option
from headrace.cli.quantities import instant


@click.command("compact")
@option(
    "--before",
    type=instant,
    metavar="INSTANT",
    help="Only hours that were over then.  [default: now]",
)
@tenant_option
@output_option
@on_archive
def compact_command(
    *, archive: SparkArchive, before: datetime | None, tenant: str | None, output: str
) -> None:
    """Merge the small files of each hour in the archive in ROOT.

    It may run beside "headrace pipeline archive". What was cut off is brought to its end by the
    next one.
    """
    with archive.reading() as spark:
        from headrace.spark.pipeline.upkeep import compact

        report = compact(spark, archive.root, tenant=tenant, before=before)
    if output == "json":
        echo_json(report)
    else:
        files = f"{plural(report.files_before, 'file')} became {report.files_after:,}"
        echo(f"{plural(report.hours, 'hour')} compacted: {files}.")


@click.command("retain")
@option(
    "--days",
    type=click.IntRange(1, 36_500),
    required=True,
    metavar="N",
    help="How many days before today are kept, by UTC.",
)
@tenant_option
@destructive
@output_option
@on_archive
def retain_command(
    *, archive: SparkArchive, days: int, tenant: str | None, yes: bool, dry_run: bool, output: str
) -> None:
    """Delete older days from the archive in ROOT; roll-ups stay.

    Shows how many days of events and dead letters these are, and asks.
    """
    if not (yes or dry_run):
        check_can_ask()
    with archive.reading() as spark:
        from headrace.spark.pipeline.upkeep import retain

        make = partial(retain, spark, archive.root, days=days, tenant=tenant)
        report = make(dry_run=dry_run or not yes)
        if dry_run or not yes:
            _preview(report.partitions, archive.root, days)
        if not (yes or dry_run):
            if report.partitions:
                ask(f"Delete {_days(report.partitions)}?")
            report = make()
    if output == "json":
        echo_json({"partitions": report.partitions, "dry_run": dry_run})
    elif dry_run:
        echo("Dry run: nothing was changed.")
    else:
        echo(f"{_days(report.partitions)} deleted.")


def _preview(count: int, root: str, days: int) -> None:
    first = datetime.now(UTC).date() - timedelta(days=days)
    note(f"This will delete {_days(count)} of {root}, all before {first}.")


def _days(count: int) -> str:
    return f"{plural(count, 'day')} of events or dead letters"
