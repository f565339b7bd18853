"""``headrace queue configure``: what a queue keeps of jobs and events, and how many it takes."""

from __future__ import annotations

from typing import Any

import click

from headrace.cli.app_target import on_app_target
from headrace.cli.options import Target, duration_option, option, output_option, queue_of, run
from headrace.cli.output import echo, echo_json, fields, span_of
from headrace.job import check_name
from headrace.views.queues import QueueStats

COUNT = click.IntRange(1, 10_000_000)
BOUND = click.IntRange(0, 10_000_000)


@click.command("configure")
@click.argument("name", metavar="QUEUE")
@option("--history", metavar="N", type=COUNT, help="Completed and cancelled records at most.")
@option("--dead-letters", metavar="N", type=COUNT, help="Dead letters at most.")
@duration_option("--dead-letter-ttl", help="How long a dead letter is kept.")
@option("--events", metavar="N", type=COUNT, help="Entries of events, of 1 to 20 each.")
@option(
    "--events-cap",
    metavar="N",
    type=COUNT,
    help='Entries of events while a reader has not acknowledged them; see "queue readers".',
)
@option(
    "--on-failed",
    metavar="TASK",
    help="A job of this task comes with each dead letter whose own job names none.",
)
@option("--no-on-failed", is_flag=True, help="No such job comes any more.")
@option("--max-active", metavar="N", type=BOUND, help="Jobs that run at once; 0: no bound.")
@option("--max-length", metavar="N", type=BOUND, help="Jobs that wait at once; 0: no bound.")
@option(
    "--weight",
    metavar="N",
    type=click.IntRange(0, 1_000),
    help="Its share of workers that serve other queues too; 0: as they were started.",
)
@option(
    "--aging",
    metavar="N",
    type=click.IntRange(0, 1_000_000),
    help="Of so many jobs that start one is of a lower priority than the best; 0: none.",
)
@output_option
@on_app_target
def configure_command(
    *, target: Target, name: str, output: str, no_on_failed: bool, **changes: Any
) -> None:
    """Set what a queue keeps and takes, and what a dead letter brings; else only show it.

    Over a number the oldest go first.
    """
    check_name(name, what="queue")
    if no_on_failed:
        if changes["on_failed"] is not None:
            raise click.UsageError("--on-failed and --no-on-failed: say one of them")
        changes["on_failed"] = ""
    stats = run(_configure(target, name, {k: v for k, v in changes.items() if v is not None}))
    if output == "json":
        echo_json(stats.to_dict())
    else:
        echo(f"Queue {name!r} keeps")
        fields(_kept(stats), indent="  ")


def _kept(stats: QueueStats) -> list[tuple[str, str]]:
    return [
        ("completed or cancelled", f"{stats.keeps_history:,}"),
        ("dead letters", f"{stats.keeps_dead:,}, for {span_of(stats.keeps_dead_s)}"),
        ("entries of events", f"{stats.keeps_events:,}"),
        ("for readers of them", f"{stats.keeps_events_cap:,}"),
        ("a dead letter brings", f"a job of {stats.on_failed}" if stats.on_failed else ""),
        ("jobs that run at once", _bound(stats.max_active)),
        ("jobs that wait at once", _bound(stats.max_length)),
        ("weight", f"{stats.weight:,}" if stats.weight else ""),
        ("of a lower priority", f"one of {stats.aging:,} jobs" if stats.aging else ""),
    ]


def _bound(number: int) -> str:
    return f"{number:,}" if number else "no bound"


async def _configure(target: Target, name: str, changes: dict[str, Any]) -> QueueStats:
    async with target.open(makes=bool(changes)) as storage:
        queue = queue_of(storage, name)
        return await (queue.configure(**changes) if changes else queue.stats())
