"""``headrace dead``: failed jobs that are kept for inspection."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click
import msgspec

from headrace.cli.app_target import on_app_target
from headrace.cli.bulk import (
    Act,
    Asking,
    Change,
    Chosen,
    carry_out,
    check_is_dead,
    choose,
    find_all,
)
from headrace.cli.jobs import (
    DEAD_COLUMNS,
    dead_line,
    echo_lines,
    limit_option,
    note_more,
    some_jobs,
)
from headrace.cli.options import (
    Target,
    destructive,
    option,
    output_option,
    queue_names,
    queue_of,
    run,
    wide_option,
)
from headrace.cli.output import note
from headrace.cli.tables import table
from headrace.job import JobState
from headrace.storage.base import Admin, Storage

REDRIVE = Change("queue again", "queued again", "dead letter")
PURGE = Change("delete", "deleted", "dead letter")

in_queue = option("--queue", "-q", metavar="NAME", help="Only this queue.  [default: all]")
of_task = option("--task", "-t", metavar="NAME", help="Only those of this task.")


class Selection(msgspec.Struct, frozen=True):
    """Which dead letters: ids, those of a task, or all; of one queue or of every one."""

    ids: tuple[str, ...]
    queue: str | None
    task: str | None

    async def find(self, storage: Storage, where: str) -> list[Chosen]:
        """Return those that are there now; ``where`` is the storage in words.

        Raises:
            JobNotFound, UsageError, ClickException: an id is not that of one dead letter.
        """
        if self.ids:
            chosen = await find_all(storage, self.ids, self.queue, where=where)
            for job in chosen:
                check_is_dead(job.id, job.queue, job.state)
            return chosen
        queues = (
            await queue_names(storage)
            if self.queue is None
            else [queue_of(storage, self.queue).name]
        )
        return await choose(storage, queues, (JobState.FAILED,), self.task)


def on_selection(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says which dead letters, and pass it on as ``selection``."""

    @click.argument("ids", metavar="[ID]...", nargs=-1)
    @in_queue
    @of_task
    @option("--all", "is_all", is_flag=True, allow_from_autoenv=False, help="All of them.")
    @functools.wraps(function)
    def wrapper(
        *, ids: tuple[str, ...], queue: str | None, task: str | None, is_all: bool, **rest: Any
    ) -> Any:
        if sum((bool(ids), task is not None, is_all)) != 1:
            raise click.UsageError("say which dead letters: ids, --task or --all, one of them")
        return function(selection=Selection(ids, queue, task), **rest)

    return wrapper


@click.group()
def dead() -> None:
    """Look at dead letters, queue them again or delete them."""


@dead.command("list")
@in_queue
@of_task
@limit_option
@wide_option
@output_option
@on_app_target
def list_command(
    *,
    target: Target,
    queue: str | None,
    task: str | None,
    limit: int,
    is_wide: bool,
    output: str,
) -> None:
    """List dead letters, the newest of each queue first."""
    queues = () if queue is None else (queue,)
    found, has_more = run(some_jobs(target, queues, (JobState.FAILED,), task, limit))
    if output == "json":
        echo_lines(found)
    elif not found:
        note(f"There are no such dead letters in {target.where}.")
    else:
        table(DEAD_COLUMNS, [dead_line(job) for job in found], is_wide=is_wide)
    note_more(has_more=has_more, limit=limit)


@dead.command()
@on_selection
@destructive
@output_option
@on_app_target
def redrive(*, target: Target, selection: Selection, output: str, yes: bool, dry_run: bool) -> None:
    """Queue dead letters again, with counts and error history reset.

    Say which: ids, --task or --all. For --task and --all it shows how many and asks.
    """
    asks = not selection.ids
    run(
        _change(
            target, selection, REDRIVE, _redriving, output=output, how=Asking(yes, dry_run, asks)
        )
    )


@dead.command()
@on_selection
@destructive
@output_option
@on_app_target
def purge(*, target: Target, selection: Selection, output: str, yes: bool, dry_run: bool) -> None:
    """Delete dead letters, for good.

    Say which: ids, --task or --all. Shows how many and asks.
    """
    run(_change(target, selection, PURGE, _purging, output=output, how=Asking(yes, dry_run)))


def _redriving(storage: Admin) -> Act:
    return lambda queue, _state, ids: storage.redrive(queue, ids)


def _purging(storage: Admin) -> Act:
    return storage.purge


async def _change(
    target: Target,
    selection: Selection,
    change: Change,
    acting_on: Callable[[Admin], Act],
    *,
    output: str,
    how: Asking,
) -> None:
    async with target.open() as storage:
        chosen = await selection.find(storage, target.where)
        await carry_out(change, chosen, acting_on(storage), output=output, how=how)
