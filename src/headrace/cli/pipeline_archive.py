"""``headrace pipeline archive``: events and dead letters become Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from headrace.cli.app_target import on_app_target
from headrace.cli.live import look_forever
from headrace.cli.options import Target, duration_option, option, output_option, queue_names, run
from headrace.cli.output import echo, echo_json, echo_json_line, note, plural, when
from headrace.cli.pipeline_spark import SparkArchive, on_archive, url_for_spark
from headrace.errors import EventsLost
from headrace.job import check_name

if TYPE_CHECKING:  # it is imported when it is used, and may not be there
    from headrace.spark.pipeline.archiver import ArchiveReport

LEAST_INTERVAL_S = 0.1


@click.command("archive")
@option(
    "--queue",
    "-q",
    metavar="NAME",
    multiple=True,
    help="Of this queue; may be repeated.  [default: every queue of the tenant]",
)
@option(
    "--reader",
    metavar="NAME",
    default="archive",
    help="The name under which queues keep for it what is not archived; one for each archive.",
)
@option(
    "--events-cap",
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    help="Have queues keep at least so many entries of events for readers.  "
    "[default: as they are set]",
)
@option(
    "--allow-loss",
    is_flag=True,
    help="Go on where events were trimmed before they were archived, and say how many.",
)
@option("--follow", "-f", is_flag=True, help="Go on with what comes, until interrupted.")
@duration_option("--interval", default="10s", help="With --follow: the pause between two runs.")
@output_option
@on_archive
@on_app_target
def archive_command(
    *,
    target: Target,
    archive: SparkArchive,
    queue: tuple[str, ...],
    reader: str,
    events_cap: int | None,
    allow_loss: bool,
    follow: bool,
    interval: float,
    output: str,
) -> None:
    """Add what has happened since the last run to the archive in ROOT.

    ROOT is the path or URI of a folder that Spark knows. All events of jobs, and all dead letters
    with their arguments, come once each. A run that is cut off is gone on with by the next. A root
    and tenant has one archiver at a time; where ROOT is on a disk another one is refused. With
    --follow and -o json, each run is one JSON document on a line of its own.
    """
    names = [check_name(name, what="queue") for name in queue]
    url = url_for_spark(target)
    # Whether the storage is there, and has anything, is said before Spark starts.
    if not run(_queues(target, names)) and not follow:
        note(f"There are no queues yet in {target.where}: the first job makes one.")
        return
    with archive.spark() as spark:
        from headrace.spark.pipeline.archive import archiving
        from headrace.spark.pipeline.archiver import held_bytes

        if events_cap is not None:
            note(
                f"Each queue may hold about {held_bytes(events_cap):,} bytes of events for readers."
            )

        async def look(add: Callable[[Sequence[str]], ArchiveReport]) -> None:
            queues = await _queues(target, names)
            if not queues:
                return
            try:
                report = add(queues)
            except EventsLost as error:
                raise EventsLost(f"{error} (on the command line: --allow-loss)") from error
            if not follow or report.events or report.dead_letters or report.lost:
                _show(report, output=output, is_one_of_many=follow)

        pause_s = max(interval, LEAST_INTERVAL_S)
        with archiving(
            spark,
            archive.root,
            url=url,
            tenant=target.tenant_name,
            reader=reader,
            events_cap=events_cap,
            fail_on_data_loss=not allow_loss,
        ) as add:
            looks = partial(look, add)
            run(look_forever(looks, every_s=pause_s) if follow else looks())


async def _queues(target: Target, names: Sequence[str]) -> list[str]:
    """Return the queues that are named, else all that there are."""
    async with target.open() as storage:
        return list(names) or await queue_names(storage)


def _show(report: ArchiveReport, *, output: str, is_one_of_many: bool) -> None:
    if report.lost:
        note(f"{plural(report.lost, 'event')} had been trimmed and can't be archived.")
    if output == "json":
        (echo_json_line if is_one_of_many else echo_json)(report)
    else:
        added = f"{plural(report.events, 'event')} and {plural(report.dead_letters, 'dead letter')}"
        until = f", until {when(report.until)}" if report.until else ""
        echo(f"{added} archived{until}.")
