"""``headrace queue``: what waits where, pause and resume, purge."""

from __future__ import annotations

from collections.abc import Sequence

import click

from headrace.cli.app_target import on_app_target
from headrace.cli.bulk import Asking, Change, carry_out, choose
from headrace.cli.colours import Coloured, count_cell
from headrace.cli.configure import configure_command
from headrace.cli.delete_queue import delete_command
from headrace.cli.limits import gate_command, limit_command, limits_command
from headrace.cli.options import Target, destructive, option, output_option, run, wide_option
from headrace.cli.output import (
    echo,
    echo_json,
    fields,
    note,
    one_line,
    plural,
    rate,
    span_of,
    tell_if_new,
)
from headrace.cli.pausing import lift, pause, resume, strike, strikes_command
from headrace.cli.put_back import put_back_notes
from headrace.cli.readers import forget_reader_command, readers_command
from headrace.cli.tables import Cell, Column, table
from headrace.job import JobState, check_name
from headrace.queue_jobs import PURGEABLE
from headrace.storage.base import Inspector
from headrace.views.queues import QueueStats, QueueWork
from headrace.views.value import Percentiles

# Those in line first: the end of others would let them in.
WAITING = (JobState.BLOCKED, JobState.QUEUED, JobState.SCHEDULED, JobState.RETRYING)
# Dead letters are what is left of failures: they have a command of their own, to be named.
PURGE = Change("delete", "deleted", "job")
CHOICES = [state.value for state in PURGEABLE if state is not JobState.FAILED]


COLUMNS = (
    Column("QUEUE"),
    Column("QUEUED"),
    Column("BLOCKED", rank=2),
    Column("SCHEDULED", rank=6),
    Column("RETRYING", rank=4),
    Column("ACTIVE", rank=1),
    Column("DEAD"),
    Column("WORKERS", rank=3),
    Column("OLDEST", rank=5),
    Column("NOTE"),
)


@click.group()
def queue() -> None:
    """Look at queues, pause, resume, empty and delete them."""


queue.add_command(delete_command)
queue.add_command(configure_command)
queue.add_command(gate_command)
queue.add_command(limit_command)
queue.add_command(limits_command)
queue.add_command(pause)
queue.add_command(resume)
queue.add_command(strike)
queue.add_command(strikes_command)
queue.add_command(lift)
queue.add_command(readers_command)
queue.add_command(forget_reader_command)


@queue.command("list")
@wide_option
@output_option
@on_app_target
def list_command(*, target: Target, is_wide: bool, output: str) -> None:
    """List every queue with its counts, and tell of jobs that workers have put back."""

    async def load() -> tuple[list[QueueStats], list[str]]:
        async with target.open() as storage:
            found = await _all_stats(storage, ())
            return found, await put_back_notes(storage, found) if output == "table" else []

    found, notes = run(load())
    if output == "json":
        echo_json([stats.to_dict() for stats in found])
    elif not found:
        note(f"There are no queues yet in {target.where}: the first job makes one.")
    else:
        table(COLUMNS, [_line(stats) for stats in found], is_wide=is_wide)
        for text in notes:
            note(one_line(text))


def _line(stats: QueueStats) -> list[Cell]:
    return [*count_cells(stats), stats.workers, span_of(stats.oldest_s), marker_cell(stats)]


def count_cells(stats: QueueStats) -> list[Cell]:
    """Return a queue's name, and how many of its jobs are where."""
    return [
        stats.queue,
        stats.queued,
        stats.blocked,
        stats.scheduled,
        count_cell(stats.retrying, "yellow"),
        count_cell(stats.active, "cyan"),
        count_cell(stats.dead, "red"),
    ]


def marker_cell(stats: QueueStats) -> Coloured:
    """Return what an operator should know of a queue at once."""
    return Coloured(_markers(stats), "yellow")


def _markers(stats: QueueStats) -> str:
    marks = {
        "paused": stats.paused,
        _paused(stats.paused_tasks): stats.paused_tasks,
        plural(stats.strikes, "strike"): stats.strikes,
        "no workers": not stats.workers,
    }
    return ", ".join(mark for mark, is_so in marks.items() if is_so)


def _paused(tasks: Sequence[str]) -> str:
    return f"{tasks[0]} paused" if len(tasks) == 1 else f"{len(tasks):,} tasks paused"


@queue.command("stats")
@click.argument("names", metavar="[QUEUE]...", nargs=-1)
@output_option
@on_app_target
def stats_command(*, target: Target, names: tuple[str, ...], output: str) -> None:
    """Show counts, rates of the last minute and times of queues, all of them by default.

    "wait" is from due to started, "run" from started to ended; percentiles are at most a tenth too
    high.
    """
    names = tuple(check_name(name, what="queue") for name in names)

    async def load() -> list[QueueStats]:
        async with target.open() as storage:
            return await _all_stats(storage, names)

    found = run(load())
    if output == "json":
        echo_json([stats.to_dict() for stats in found])
        return
    for at, stats in enumerate(found):
        if at:
            echo("")
        _show(stats)


def _show(stats: QueueStats) -> None:
    work = stats.last_minute
    marks = _markers(stats)
    is_idle = stats.oldest_s is None
    oldest = "nothing is queued" if is_idle else f"ready for {span_of(stats.oldest_s)}"
    echo(f"{stats.queue}{f'  ({marks})' if marks else ''}")
    now = [
        ("queued", stats.queued),
        ("scheduled", stats.scheduled),
        ("retrying", stats.retrying),
        ("active", stats.active),
        *([("blocked", stats.blocked)] if stats.blocked else []),
    ]
    kept = [("completed or cancelled", stats.history), ("dead", stats.dead)]
    lanes = sorted(stats.lanes.items())
    pairs = [
        ("now", ", ".join(f"{count:,} {name}" for name, count in now)),
        ("lanes", ", ".join(f"{count:,} queued for {lane}" for lane, count in lanes)),
        ("kept", ", ".join(f"{count:,} {name}" for name, count in kept)),
        ("paused tasks", ", ".join(stats.paused_tasks)),
        ("strikes", f"{stats.strikes:,}" if stats.strikes else ""),
        ("oldest", oldest),
        ("workers", f"{stats.workers:,}" if stats.workers else "none"),
        ("last minute", _rates(work)),
        ("wait", _times(work.wait_s)),
        ("run", _times(work.run_s)),
    ]
    fields(pairs, indent="  ")


def _rates(work: QueueWork) -> str:
    counts = {
        "enqueued": work.enqueued,
        "completed": work.completed,
        "retried": work.retried,
        "failed": work.failed,
        "cancelled": work.cancelled,
        "stalled": work.stalled,
    }
    seconds = max(work.window_s, 0.001)
    shown = [
        f"{count:,} {name} ({rate(count / seconds)}/s)" for name, count in counts.items() if count
    ]
    return ", ".join(shown) or "nothing happened"


def _times(found: Percentiles | None) -> str:
    if found is None:
        return "-"
    return f"p50 {span_of(found.p50)}, p95 {span_of(found.p95)}, p99 {span_of(found.p99)}"


async def _all_stats(storage: Inspector, names: Sequence[str]) -> list[QueueStats]:
    known = await storage.queues()
    for name in names:
        tell_if_new(name, known)
    return [QueueStats.of(await storage.stats(name)) for name in dict.fromkeys(names or known)]


@queue.command()
@click.argument("name", metavar="QUEUE")
@option(
    "--state",
    "-s",
    multiple=True,
    type=click.Choice(CHOICES),
    help="Only jobs in this state; may be repeated.  [default: all that wait]",
)
@option("--task", "-t", metavar="NAME", help="Only jobs of this task.")
@destructive
@output_option
@on_app_target
def purge(
    *,
    target: Target,
    name: str,
    state: tuple[str, ...],
    task: str | None,
    output: str,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete a queue's waiting jobs, for good.

    Shows how many and asks. What comes meanwhile is not touched, and active jobs never are: cancel
    them. Dead letters have "headrace dead purge".
    """
    wanted = [JobState(one) for one in state] or WAITING
    how = Asking(yes, dry_run)
    run(_purge(target, name, wanted, task, output=output, how=how))


async def _purge(
    target: Target,
    name: str,
    states: Sequence[JobState],
    task: str | None,
    *,
    output: str,
    how: Asking,
) -> None:
    check_name(name, what="queue")
    async with target.open() as storage:
        tell_if_new(name, await storage.queues())
        chosen = await choose(storage, [name], states, task)
        await carry_out(PURGE, chosen, storage.purge, output=output, how=how)
