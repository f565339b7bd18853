"""``headrace queue readers`` and ``forget-reader``: who reads the events of queues, and how far."""

from __future__ import annotations

from collections.abc import Sequence

import click

from headrace.cli.app_target import on_app_target
from headrace.cli.options import Target, output_option, queue_names, queue_of, run, wide_option
from headrace.cli.output import ago, echo, echo_json, note
from headrace.cli.tables import Cell, Column, table
from headrace.job import check_name
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
    names = tuple(check_name(name, what="queue") for name in names)
    found = run(_load(target, names))
    if output == "json":
        echo_json([reader.to_dict() for reader in found])
    elif not found:
        where = f" of {', '.join(names)}" if names else ""
        note(f"Nobody reads events{where} as a named reader in {target.where}.")
    else:
        table(COLUMNS, [_line(reader) for reader in found], is_wide=is_wide)


def _line(reader: QueueReader) -> list[Cell]:
    return [reader.queue, reader.name, reader.behind, reader.number, ago(reader.at)]


async def _load(target: Target, names: Sequence[str]) -> list[QueueReader]:
    async with target.open() as storage:
        wanted = dict.fromkeys(names) or await queue_names(storage)
        return [r for name in wanted for r in await queue_of(storage, name).readers()]


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
