"""``headrace pipeline`` ``rollup``, ``baseline`` and ``failures``: what an archive says."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from headrace.cli.colours import Coloured, count_cell
from headrace.cli.jobs import note_more
from headrace.cli.options import option, output_option, wide_option
from headrace.cli.output import ago, echo, echo_json, note, plural, span, when
from headrace.cli.pipeline_spark import (
    SparkArchive,
    documents,
    on_archive,
    since_option,
    tenant_option,
    until_option,
)
from headrace.cli.quantities import instant
from headrace.cli.tables import Cell, Column, table

BASELINE_COLUMNS = (
    Column("TENANT", rank=5),
    Column("QUEUE", rank=4),
    Column("TASK", is_cut=True),
    Column("USUAL P99", rank=1, is_right=True),
    Column("RECENT P99", is_right=True),
    Column("RATIO", is_right=True),
    Column("ATTEMPTS", rank=2),
    Column("BEFORE", rank=3),
    Column("NOTE"),
)
FAILURE_COLUMNS = (
    Column("TENANT", rank=10),
    Column("QUEUE", rank=4),
    Column("TASK", rank=1, is_cut=True),
    Column("DEAD"),
    Column("COUNT"),
    Column("JOBS", rank=6),
    Column("FIRST SEEN", rank=7),
    Column("LAST SEEN", rank=2),
    Column("VERSIONS", rank=8, is_cut=True),
    Column("EXAMPLE", rank=9),
    Column("FRAME", rank=5, is_cut=True),
    Column("ERROR", is_cut=True),
)


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
    *, archive: SparkArchive, tenant: str | None, since: datetime | None, output: str
) -> None:
    """Count what happened in each 10 seconds, minute and hour.

    Brings the roll-ups of the archive in ROOT up to date: counts, error rates, and percentiles of
    wait and run, of each queue and task. It may be run again at any time.
    """
    with archive.reading() as spark:
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


@click.command("baseline")
@option("--days", type=click.IntRange(1, 3660), default=7, help="How far back goes what is usual.")
@option("--hours", type=click.IntRange(1, 8784), default=1, help="How many hours are recent.")
@option("--factor", type=float, default=1.5, help="How many times as long as usual is a drift.")
@option("--least", type=click.IntRange(1), default=100, help="Fewer attempts show no drift.")
@tenant_option
@wide_option
@output_option
@on_archive
def baseline_command(
    *,
    archive: SparkArchive,
    days: int,
    hours: int,
    factor: float,
    least: int,
    tenant: str | None,
    is_wide: bool,
    output: str,
) -> None:
    """Compare how long tasks take with how long they usually do.

    Times are 99th percentiles, by the roll-ups of the archive in ROOT: of the last hours, and of
    the days before. Tasks that have drifted come first.
    """
    with archive.reading() as spark:
        from headrace.spark.pipeline.baseline import baseline

        rows = documents(
            baseline(
                spark,
                archive.root,
                days=days,
                hours=hours,
                factor=factor,
                least=least,
                tenant=tenant,
            )
        )
    if output == "json":
        echo_json(rows)
    elif not rows:
        note(f'There are no roll-ups in {archive.root}: "headrace pipeline rollup" makes them.')
    else:
        table(BASELINE_COLUMNS, [_baseline_line(row) for row in rows], is_wide=is_wide)


def _baseline_line(row: dict[str, Any]) -> list[Cell]:
    ratio = row["ratio"]
    return [
        row["tenant"],
        row["queue"],
        row["task"],
        _milliseconds(row["baseline_p99_ms"]),
        _milliseconds(row["recent_p99_ms"]),
        "-" if ratio is None else f"{ratio:.2f}",
        row["count"],
        row["baseline_count"],
        Coloured("drift" if row["is_drift"] else "", "yellow"),
    ]


def _milliseconds(count: float | None) -> str:
    return "-" if count is None else span(round(count))


@click.command("failures")
@since_option
@until_option
@option("--limit", "-n", type=click.IntRange(1, 100_000), default=50, help="Patterns at most.")
@tenant_option
@wide_option
@output_option
@on_archive
def failures_command(
    *,
    archive: SparkArchive,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    tenant: str | None,
    is_wide: bool,
    output: str,
) -> None:
    """Show what fails alike, how often, since when and in which releases.

    Of what is in the archive in ROOT, what left most dead letters comes first. Errors are alike
    that have their task, type, function and message in common, but for what varies in a message, as
    numbers and ids do.
    """
    with archive.reading() as spark:
        from headrace.spark.pipeline.failures import failures

        frame = failures(spark, archive.root, since=since, until=until, tenant=tenant)
        found = documents(frame.limit(limit + 1))
    rows = found[:limit]
    if output == "json":
        echo_json(rows)
    elif not rows:
        note(f"No failure is archived in {archive.root}.")
    else:
        table(FAILURE_COLUMNS, [_failure_line(row) for row in rows], is_wide=is_wide)
    note_more(has_more=len(found) > limit, limit=limit)


def _failure_line(row: dict[str, Any]) -> list[Cell]:
    return [
        row["tenant"],
        row["queue"],
        row["task"] or "",
        count_cell(row["dead"], "red"),
        row["count"],
        row["jobs"],
        ago(row["first_seen"]),
        ago(row["last_seen"]),
        ", ".join(row["versions"]),
        row["example_job_id"] or "",
        row["frame"] or "",
        ": ".join(part for part in (row["error"], row["pattern"]) if part),
    ]
