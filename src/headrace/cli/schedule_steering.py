"""``headrace schedule pause``, ``resume``, ``trigger`` and ``delete``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import click
import msgspec

from headrace.cli.app_target import on_app_target
from headrace.cli.bulk import SAMPLE, ask
from headrace.cli.options import Target, destructive, output_option, run
from headrace.cli.output import echo, echo_json, note, plural
from headrace.cli.stored_schedules import id_argument, ids_argument, open_schedules
from headrace.cli.views import Changed
from headrace.errors import StorageFault
from headrace.schedule_records import (
    delete_schedule,
    known_schedule,
    pause_schedule,
    resume_schedule,
    trigger_schedule,
)
from headrace.storage.base import Storage


@click.command()
@ids_argument
@on_app_target
def pause(*, target: Target, ids: tuple[str, ...]) -> None:
    """Have schedules pass their occurrences over. Jobs that were enqueued stay.

    Of one that code declares this is an edit, which lasts until its declaration changes.
    """
    run(_steer(target, ids, pause_schedule, "paused"))


@click.command()
@ids_argument
@on_app_target
def resume(*, target: Target, ids: tuple[str, ...]) -> None:
    """Have schedules fire again, from now on: what was passed over stays so."""
    run(_steer(target, ids, resume_schedule, "resumed"))


async def _steer(
    target: Target,
    ids: Sequence[str],
    steer: Callable[[Storage, str], Awaitable[object]],
    done: str,
) -> None:
    async with open_schedules(target) as storage:
        for schedule_id in ids:  # all or none, if one was mistyped
            await known_schedule(storage, schedule_id)
        for schedule_id in ids:
            await steer(storage, schedule_id)
            echo(f"Schedule {schedule_id} is {done}.")


class Triggered(msgspec.Struct, kw_only=True):
    """The JSON document of ``schedule trigger``."""

    schedule: str
    job_id: str
    queue: str
    task: str


@click.command()
@id_argument
@output_option
@on_app_target
def trigger(*, target: Target, schedule_id: str, output: str) -> None:
    """Enqueue a schedule's job now, whether it is due or paused. Its occurrences come as before."""

    async def fire() -> Triggered:
        async with open_schedules(target) as storage:
            job = await trigger_schedule(storage, schedule_id)
            return Triggered(schedule=schedule_id, job_id=job.id, queue=job.queue, task=job.task)

    made = run(fire())
    if output == "json":
        echo_json(made)
    else:
        echo(f"Job {made.job_id} of {made.task} is queued in {made.queue}.")


@click.command()
@ids_argument
@destructive
@output_option
@on_app_target
def delete(*, target: Target, ids: tuple[str, ...], output: str, yes: bool, dry_run: bool) -> None:
    """Delete schedules with their history, for good. Jobs that were enqueued stay.

    Shows which and asks. One that code declares comes back with the next worker of its app that
    starts: pause it instead, or take it out of the code.
    """
    changed = run(_delete(target, ids, yes=yes, dry_run=dry_run))
    if output == "json":
        echo_json(changed)
    elif dry_run:
        echo("Dry run: nothing was changed.")
    else:
        echo(f"{plural(changed.changed, 'schedule')} deleted.")


async def _delete(target: Target, ids: Sequence[str], *, yes: bool, dry_run: bool) -> Changed:
    async with open_schedules(target) as storage:
        told = [await _told(storage, schedule_id) for schedule_id in ids]
        if dry_run or not yes:
            _preview(told)
        if not dry_run and not yes:
            ask(f"Delete {plural(len(ids), 'schedule')}?")
        done = 0
        if not dry_run:
            for schedule_id in ids:
                done += await delete_schedule(storage, schedule_id)
        return Changed(matched=len(ids), changed=done, dry_run=dry_run)


async def _told(storage: Storage, schedule_id: str) -> str:
    """Return what is to be deleted, in words."""
    try:
        record = await known_schedule(storage, schedule_id)
    except StorageFault:  # whoever can't read one must be able to get rid of it
        return f"{schedule_id}  (stored by another release, which alone can read it)"
    back = f"  (app {record.app!r} declares it: its next worker brings it back)"
    return f"{schedule_id}  {record.body.timing}{back if record.app else ''}"


def _preview(told: Sequence[str]) -> None:
    note(f"This will delete {plural(len(told), 'schedule')}:")
    for line in told[:SAMPLE]:
        note(f"  {line}")
    if len(told) > SAMPLE:
        note(f"  … and {len(told) - SAMPLE:,} more")
