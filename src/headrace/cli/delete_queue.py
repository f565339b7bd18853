"""``headrace queue delete``: a queue goes, with all that is in it if that is said."""

from __future__ import annotations

import click
import msgspec

from headrace.cli.app_target import on_app_target
from headrace.cli.bulk import ask
from headrace.cli.options import Target, destructive, option, output_option, queue_of, run
from headrace.cli.output import echo, echo_json, note, plural
from headrace.job import JobState, check_name
from headrace.queue_jobs import PURGEABLE
from headrace.storage.base import Storage
from headrace.storage.batches import moved
from headrace.storage.queues import QueueCounts

KEPT = (JobState.COMPLETED, JobState.CANCELLED)
"""What is only kept for a while in any case, and goes with a queue without more ado."""

MOST_ROUNDS = 10
"""How often a queue is emptied into which jobs keep coming."""


class DeletedQueue(msgspec.Struct, kw_only=True):
    """The JSON document of ``queue delete``; ``jobs`` went with it, ended ones among them."""

    queue: str
    deleted: bool
    jobs: int
    dry_run: bool


@click.command("delete")
@click.argument("name", metavar="QUEUE")
@option(
    "--force",
    "is_forced",
    is_flag=True,
    allow_from_autoenv=False,
    help="Delete it with its jobs and dead letters too, and while workers serve it.",
)
@destructive
@output_option
@on_app_target
def delete_command(
    *, target: Target, name: str, is_forced: bool, output: str, yes: bool, dry_run: bool
) -> None:
    """Delete a queue and its settings, events and history, for good.

    Refuses while it has jobs, dead letters or workers, unless --force is said. Shows what is in it
    and asks. Active jobs are then asked to stop, and forgotten. A worker that goes on serving the
    queue, or a job that comes later, makes it anew.
    """
    check_name(name, what="queue")
    deleted = run(_delete(target, name, is_forced=is_forced, yes=yes, dry_run=dry_run))
    if output == "json":
        echo_json(deleted)
    elif dry_run:
        echo("Dry run: nothing was changed.")
    else:
        echo(f"Queue {name!r} is deleted, with {plural(deleted.jobs, 'job')}.")


async def _delete(
    target: Target, name: str, *, is_forced: bool, yes: bool, dry_run: bool
) -> DeletedQueue:
    async with target.open() as storage:
        if name not in await storage.queues():
            raise click.ClickException(f"there is no queue {name!r} in {target.where}")
        counts = await storage.stats(name)
        found = _found(counts, len(await storage.workers(name)))
        if found and not is_forced:
            raise click.ClickException(
                f"queue {name!r} has {found}: wait for them, or delete them too with --force"
            )
        if dry_run or not yes:
            kept = plural(counts.history, "ended job")
            note(f"This will delete queue {name!r} with {found or 'nothing in it'}, and {kept}.")
        if not dry_run and not yes:
            ask(f"Delete queue {name!r}?")
        jobs = 0 if dry_run else await _carry_out(storage, name, is_forced=is_forced)
        return DeletedQueue(queue=name, deleted=not dry_run, jobs=jobs, dry_run=dry_run)


def _found(counts: QueueCounts, workers: int) -> str:
    """Return in words what keeps a queue from being deleted, "" for nothing."""
    told = {
        "queued": counts.queued,
        "scheduled": counts.scheduled,
        "retrying": counts.retrying,
        "active": counts.active,
        "blocked": counts.blocked,
    }
    nouns = {"dead letter": counts.dead, "worker": workers}
    parts = [f"{n:,} {state}" for state, n in told.items() if n]
    return ", ".join([*parts, *(plural(n, noun) for noun, n in nouns.items() if n)])


async def _carry_out(storage: Storage, name: str, *, is_forced: bool) -> int:
    """Empty the queue as far as that is allowed, and delete it; return how many jobs went.

    Raises:
        ClickException: somebody goes on using it.
    """
    done = 0
    if is_forced:
        await storage.pause(name)  # or workers would start what is about to go
    for _ in range(MOST_ROUNDS):
        if is_forced:
            await _take_from_workers(storage, name)
        done += await _purge(storage, name, PURGEABLE if is_forced else KEPT)
        while left := await storage.delete_queue(name, is_forced=is_forced):
            pass
        if left == 0:
            return done
    raise click.ClickException(
        f"queue {name!r} is used by others all the while: stop what enqueues and serves it first"
    )


async def _take_from_workers(storage: Storage, name: str) -> None:
    """Have active jobs end cancelled: they are asked to stop, and their incarnations retired."""
    active = [job.id async for job in queue_of(storage, name).jobs(JobState.ACTIVE)]
    for batch in moved(active):
        await storage.cancel(name, batch)
    if active:
        for info in await storage.workers(name):
            while await storage.retire(name, info.incarnation):
                pass


async def _purge(storage: Storage, name: str, states: tuple[JobState, ...]) -> int:
    cursor = await storage.prune(name)
    while cursor:
        cursor = await storage.prune(name, cursor=cursor)
    done = 0
    for state in states:
        ids = [job.id async for job in queue_of(storage, name).jobs(state)]
        for batch in moved(ids):
            done += await storage.purge(name, state, batch)
    return done
