"""``headrace queue limits``, ``limit`` and ``gate``: what limits allow, and how they stand."""

from __future__ import annotations

import click

from headrace.cli.app_target import on_app_target
from headrace.cli.of_queues import list_of_queues
from headrace.cli.options import (
    Target,
    option,
    output_option,
    queue_of,
    run,
    wide_option,
)
from headrace.cli.output import echo, echo_json, note
from headrace.cli.tables import Cell, Column
from headrace.job import check_name
from headrace.limit import limit_terms
from headrace.queues import Queue
from headrace.views.limits import QueueGate, QueueLimit

COLUMNS = (
    Column("QUEUE"),
    Column("LIMIT", is_cut=True),
    Column("AT ONCE", is_right=True),
    Column("RATE", is_right=True),
    Column("BURST", rank=2, is_right=True),
    Column("SET", rank=1),
    Column("DECLARED", rank=3),
)


@click.command("limits")
@click.argument("names", metavar="[QUEUE]...", nargs=-1)
@wide_option
@output_option
@on_app_target
def limits_command(*, target: Target, names: tuple[str, ...], is_wide: bool, output: str) -> None:
    """List the limits of queues, and what each allows of every key.

    They are those that workers and jobs have declared, and those that were set by
    "headrace queue limit".
    """
    list_of_queues(
        target,
        names,
        Queue.limits,
        columns=COLUMNS,
        line=_line,
        none="No limit{} is known",
        output=output,
        is_wide=is_wide,
    )


def _line(limit: QueueLimit) -> list[Cell]:
    allowed = [limit.concurrency, limit.rate, limit.burst]
    said = "by hand" if limit.is_set else "by tasks"
    shown = ["-" if value is None else value for value in allowed]
    return [limit.queue, limit.name, *shown, said, limit.declared or "-"]


@click.command("limit")
@click.argument("name", metavar="QUEUE")
@click.argument("limit", metavar="LIMIT")
@option("--concurrency", metavar="N", type=int, help="Jobs of a key that run at once.")
@option(
    "--rate",
    metavar="N/PERIOD",
    help='Jobs of a key that start in a time, as "10/min" or "5/2h"; units are ms, s, min, h, d.',
)
@option(
    "--burst",
    metavar="N",
    type=int,
    help="How many of these may start at once after a pause.  [default: N of --rate]",
)
@option("--reset", is_flag=True, help="Go back to what tasks declare.")
@on_app_target
def limit_command(
    *,
    target: Target,
    name: str,
    limit: str,
    concurrency: int | None,
    rate: str | None,
    burst: int | None,
    reset: bool,
) -> None:
    """Set what a limit of a queue allows of every key, over what its tasks declare.

    It is followed at once, and stays. What is said takes the place of all that held. Numbers are 1
    to 1,000,000. "headrace queue limits" has the names: a limit that was declared without one is
    called as its task, with the parameter behind a colon where it has one.

    \b
    headrace queue limit payments stripe --concurrency 20 --rate 100/min
    headrace queue limit payments shop.charge:customer --concurrency 1
    headrace queue limit payments stripe --reset
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    check_name(name, what="queue")
    said = {"concurrency": concurrency, "rate": rate, "burst": burst}
    is_said = any(value is not None for value in said.values())
    if is_said == reset:
        raise click.UsageError("say --concurrency, --rate or both, or else --reset")
    if not reset:
        limit_terms(concurrency=concurrency, rate=rate, burst=burst)
    found = run(_set(target, name, limit, None if reset else (concurrency, rate, burst)))
    if found is None:
        echo(f"Limit {limit!r} of queue {name!r} holds nobody up: no task has declared it.")
    else:
        allowed = [
            f"{found.concurrency:,} at once" if found.concurrency else "",
            f"{found.rate} with a burst of {found.burst:,}" if found.burst else "",
        ]
        echo(f"Limit {limit!r} of queue {name!r} allows {' and '.join(filter(None, allowed))}.")
        if not found.declared:
            note("Note: no task has declared it yet: only jobs that name it themselves meet it.")


@click.command("gate")
@click.argument("name", metavar="QUEUE")
@click.argument("limit", metavar="LIMIT")
@click.argument("key", metavar="[KEY]", required=False)
@output_option
@on_app_target
def gate_command(*, target: Target, name: str, limit: str, key: str | None, output: str) -> None:
    """Show how a key of a limit stands: how many jobs run with it, and how many wait for room.

    Without KEY those of a limit that is for all jobs, and those that have no key. "headrace queue
    limits" has the names of limits; "headrace job why" shows who holds up a job.

    \b
    headrace queue gate payments shop.charge:customer 7
    headrace queue gate payments stripe
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    check_name(name, what="queue")
    found, is_known = run(_stand(target, name, limit, key))
    if output == "json":
        echo_json(found)
    else:
        of = f"Key {found.key!r} of limit" if found.key else "Limit"
        left = "" if found.tokens is None else f"; of its rate {found.tokens:,} may start now"
        echo(
            f"{of} {limit!r} of queue {name!r}: {found.active:,} running, "
            f"{found.ready:,} waiting for a worker, {found.blocked:,} waiting for room{left}."
        )
    if not is_known:
        note(f"Note: nothing is known of a limit {limit!r} in queue {name!r}.")


async def _stand(target: Target, name: str, limit: str, key: str | None) -> tuple[QueueGate, bool]:
    async with target.open() as storage:
        queue = queue_of(storage, name)
        found = await queue.gate(limit, key or None)
        return found, any(known.name == limit for known in await queue.limits())


async def _set(
    target: Target,
    name: str,
    limit: str,
    said: tuple[int | None, str | None, int | None] | None,
) -> QueueLimit | None:
    async with target.open(makes=True) as storage:
        queue = queue_of(storage, name)
        if said is None:
            await queue.reset_limit(limit)
        else:
            concurrency, rate, burst = said
            await queue.set_limit(limit, concurrency=concurrency, rate=rate, burst=burst)
        return next((found for found in await queue.limits() if found.name == limit), None)
