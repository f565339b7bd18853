"""``headrace queue pause`` and ``resume``, ``strike``, ``strikes`` and ``lift``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import click
import msgspec

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
from headrace.cli.output import echo, note, tell_if_new
from headrace.cli.tables import Cell, Column
from headrace.errors import InvalidOption
from headrace.job import check_name, check_text
from headrace.nearest import nearest
from headrace.plain import shown
from headrace.queues import Queue
from headrace.strike import strike_of
from headrace.views.strikes import QueueStrike

COLUMNS = (
    Column("QUEUE"),
    Column("STRIKE"),
    Column("TASK"),
    Column("WHERE"),
    Column("ACTION"),
    Column("SINCE", rank=1),
)
task_option = option("--task", "-t", metavar="NAME", help="Only jobs of this task.")


@click.command()
@click.argument("names", metavar="QUEUE...", nargs=-1, required=True)
@task_option
@on_app_target
def pause(*, target: Target, names: tuple[str, ...], task: str | None) -> None:
    """Stop workers from claiming. Active jobs go on, and jobs can be enqueued."""
    run(_steer(target, names, task, is_pause=True))


@click.command()
@click.argument("names", metavar="QUEUE...", nargs=-1, required=True)
@task_option
@on_app_target
def resume(*, target: Target, names: tuple[str, ...], task: str | None) -> None:
    """Let workers claim again, at once.

    A task that was paused for itself is resumed with --task.
    """
    run(_steer(target, names, task, is_pause=False))


async def _steer(target: Target, names: Sequence[str], task: str | None, *, is_pause: bool) -> None:
    for name in names:
        check_name(name, what="queue")
    if task is not None:
        task = check_text(task, what="task name")
    async with target.open(makes=True) as storage:  # a queue may be paused before its first job
        known = await storage.queues()
        for name in names:
            tell_if_new(name, known)
            queue = queue_of(storage, name)
            if task is None:
                await (queue.pause() if is_pause else queue.resume())
                echo(f"Queue {name!r} is {'paused' if is_pause else 'resumed'}.")
            elif is_pause:
                await queue.pause(task)
                echo(f"Task {task!r} of queue {name!r} is paused.")
                await _tell_if_unknown(queue, task)
            else:
                await _resume_task(queue, task)


async def _resume_task(queue: Queue, task: str) -> None:
    paused = (await queue.stats()).paused_tasks
    await queue.resume(task)
    what = "is resumed" if task in paused else "was not paused"
    echo(f"Task {task!r} of queue {queue.name!r} {what}.")
    if task not in paused and paused:
        note(f"Note: paused are {', '.join(paused)}.")


async def _tell_if_unknown(queue: Queue, task: str) -> None:
    """Say that no live worker knows a task: one that was mistyped would else be held for ever."""
    known = {name for worker in await queue.workers() for name in worker.tasks}
    if known and task not in known:
        meant = nearest(task, known)
        perhaps = f" Did you mean {meant!r}?" if meant else ""
        note(f"Note: no worker of queue {queue.name!r} knows task {task!r}.{perhaps}")


@click.command()
@click.argument("name", metavar="QUEUE")
@task_option
@option("--where", metavar="JSON", help="Only jobs with these arguments, an object by name.")
@option("--cancel", is_flag=True, help="Cancel them, instead of having them wait.")
@on_app_target
def strike(*, target: Target, name: str, task: str | None, where: str | None, cancel: bool) -> None:
    """Have jobs of a task, or with some arguments, not be run until that is lifted.

    It prints the strike's id, for "headrace queue lift". What is active goes on; the others are
    met as workers come to them.

    \b
    headrace queue strike emails --task shop.send --where '{"customer_id": "42"}'
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    check_name(name, what="queue")
    conditions = None if where is None else _read(where)
    action: Literal["wait", "cancel"] = "cancel" if cancel else "wait"
    strike_of(task, conditions, action)
    echo(run(_strike(target, name, task, conditions, action)))


def _read(where: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(where)
    except (msgspec.MsgspecError, UnicodeError):
        found = None
    if not isinstance(found, dict):
        raise InvalidOption(
            f'--where {shown(where)} is no JSON object: use one as {{"name": "value"}}'
        )
    return found


async def _strike(
    target: Target,
    name: str,
    task: str | None,
    where: dict[str, Any] | None,
    action: Literal["wait", "cancel"],
) -> str:
    async with target.open(makes=True) as storage:
        tell_if_new(name, await storage.queues())
        queue = queue_of(storage, name)
        found = await queue.strike(task, where=where, action=action)
        if task is not None:
            await _tell_if_unknown(queue, task)
        return found


@click.command("strikes")
@click.argument("names", metavar="[QUEUE]...", nargs=-1)
@wide_option
@output_option
@on_app_target
def strikes_command(*, target: Target, names: tuple[str, ...], is_wide: bool, output: str) -> None:
    """List what jobs of queues are struck by.

    Paused tasks are shown by "headrace queue stats".
    """
    list_of_queues(
        target,
        names,
        Queue.strikes,
        columns=COLUMNS,
        line=_line,
        none="No job{} is struck",
        output=output,
        is_wide=is_wide,
    )


def _line(strike: QueueStrike) -> list[Cell]:
    where = msgspec.json.encode(strike.where).decode() if strike.where else "-"
    since = f"{strike.since:%Y-%m-%d %H:%M:%S}"
    return [strike.queue, strike.id, strike.task or "-", where, strike.action, since]


@click.command()
@click.argument("name", metavar="QUEUE")
@click.argument("strikes", metavar="STRIKE...", nargs=-1, required=True)
@on_app_target
def lift(*, target: Target, name: str, strikes: tuple[str, ...]) -> None:
    """Lift strikes: their jobs go on at once, by the places that they had."""
    check_name(name, what="queue")
    for strike in strikes:
        check_text(strike, what="strike", limit_bytes=32)
    run(_lift(target, name, strikes))


async def _lift(target: Target, name: str, strikes: Sequence[str]) -> None:
    async with target.open() as storage:
        queue = queue_of(storage, name)
        for strike in strikes:
            was_there = await queue.lift(strike)
            what = "is lifted" if was_there else "was not there"
            echo(f"Strike {strike!r} of queue {name!r} {what}.")
