"""``headrace queue readers`` and ``forget-reader``: who reads the events of queues, and how far."""

from __future__ import annotations

import click

from headrace.cli.app_target import on_app_target
from headrace.cli.of_queues import list_of_queues
from headrace.cli.options import Target, output_option, queue_of, run, wide_option
from headrace.cli.output import ago, echo
from headrace.cli.tables import Cell, Column
from headrace.job import check_name
from headrace.queues import Queue
from headrace.views.queues import QueueReader

COLUMNS = (
    Column("QUEUE"),
    Column("READER"),
    Column("BEHIND"),
    Column("LAST EVENT", rank=1),
    Column("ACKNOWLEDGED", rank=2),
)


@click.command("readers")
@click.argument("names", metavar="[QUEUE]...", nargs=-1)
@wide_option
@output_option
@on_app_target
def readers_command(*, target: Target, names: tuple[str, ...], is_wide: bool, output: str) -> None:
    """List the readers of queues' events, and how many events each is behind.

    Events that a reader has not acknowledged are kept, up to the queue's events_cap. A reader that
    is silent for 7 days is dropped.
    """
    list_of_queues(
        target,
        names,
        Queue.readers,
        columns=COLUMNS,
        line=_line,
        none="Nobody reads events{} as a named reader",
        output=output,
        is_wide=is_wide,
    )


def _line(reader: QueueReader) -> list[Cell]:
    return [reader.queue, reader.name, reader.behind, reader.number, ago(reader.at)]


@click.command("forget-reader")
@click.argument("name", metavar="QUEUE")
@click.argument("reader", metavar="READER")
@on_app_target
def forget_reader_command(*, target: Target, name: str, reader: str) -> None:
    """Drop a reader of a queue's events, for which nothing is kept any more.

    One that is still at work comes back with the next event that it acknowledges.
    """
    check_name(name, what="queue")
    check_name(reader, what="reader")
    run(_forget(target, name, reader))
    echo(f"Reader {reader!r} of queue {name!r} is forgotten.")


async def _forget(target: Target, name: str, reader: str) -> None:
    async with target.open() as storage:
        if not await queue_of(storage, name).forget_reader(reader):
            raise click.ClickException(
                f"queue {name!r} in {target.where} has no reader {reader!r}: "
                '"headrace queue readers" lists those that there are'
            )
