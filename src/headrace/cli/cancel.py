"""``headrace job cancel``: one job, some, or those of a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import click
import msgspec

from headrace.cancelling import CANCELLABLE, CancelFilter, cancel_filter, cancel_some
from headrace.cli.app_target import on_app_target
from headrace.cli.bulk import Asking, Change, Chosen, carry_out, find_all
from headrace.cli.options import (
    Target,
    destructive,
    duration_option,
    option,
    output_option,
    queue_of,
    queue_option,
    run,
)
from headrace.cli.output import note, plural, tell_if_new
from headrace.cli.views import CancelledJobs, Changed
from headrace.clock import wall_clock
from headrace.errors import StorageError
from headrace.job import CancelOutcome, JobState
from headrace.storage.base import Storage

CANCEL = Change("cancel", "cancelled", "job")
CANCEL_NEXT = Change("cancel what follows", "cancelled", "job")


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1)
@queue_option
@option(
    "--state",
    "-s",
    multiple=True,
    type=click.Choice([state.value for state in CANCELLABLE]),
    help="Instead of ids: those in this state; may be repeated.  [default: all of these]",
)
@option("--task", "-t", metavar="NAME", help="Instead of ids: those of this task.")
@duration_option("--older-than", help="Instead of ids: those that were enqueued longer ago.")
@option("--limit", "-n", type=click.IntRange(1), help="Instead of ids: at most so many.")
@option(
    "--all",
    "is_all",
    is_flag=True,
    allow_from_autoenv=False,
    help="Instead of ids: all of a queue.",
)
@option(
    "--only-next",
    is_flag=True,
    help="With ids: leave the active job alone, and cancel what is to run after it.",
)
@destructive
@output_option
@on_app_target
def cancel(
    *,
    target: Target,
    ids: tuple[str, ...],
    queue: str | None,
    state: tuple[str, ...],
    task: str | None,
    older_than: float | None,
    limit: int | None,
    is_all: bool,
    only_next: bool,
    output: str,
    yes: bool,
    dry_run: bool,
) -> None:
    """Cancel jobs: waiting ones never start, active ones are asked to stop.

    What is to run after an active one, under its id, goes with it; it is blocked, and goes alone
    where --state says that and not active.

    Say which: ids, or --queue with --task or --all, of which --state, --older-than and --limit
    take some. For more than one it shows how many and asks. Exits with 1 if one of the ids had
    ended otherwise before. After an error the same command does what is left.
    """
    if sum((bool(ids), task is not None, is_all)) != 1:
        raise click.UsageError("say which jobs: ids, or --queue with --task or --all")
    if not ids and queue is None:
        raise click.UsageError("--task and --all need --queue")
    if ids and (state or older_than is not None or limit is not None):
        raise click.UsageError(
            "--state, --older-than and --limit go with --task and --all, not with ids"
        )
    if only_next and not ids:
        raise click.UsageError("--only-next goes with ids")
    among = cancel_filter(
        states=state or None, older_than=older_than, limit=limit, clock=wall_clock
    )
    how = Asking(yes, dry_run, asks=len(ids) != 1)
    selected = Cancelling(ids, queue, task, among, only_next)
    verdicts = run(_cancel(target, selected, output=output, how=how))
    if only_next and (lone := verdicts[CancelOutcome.NOT_FOUND]):
        jobs = "the job" if len(ids) == 1 else f"{lone:,} of these jobs"
        raise click.ClickException(f"nothing is to run after {jobs}: that is left as it is")
    ended = verdicts[CancelOutcome.FINISHED] + verdicts[CancelOutcome.NOT_FOUND]
    if ended and ids:
        raise click.ClickException(f"{plural(ended, 'job')} had ended otherwise before")
    if ended:
        note(f"{plural(ended, 'job')} had gone on meanwhile.")


class Cancelling(msgspec.Struct, frozen=True):
    """Which jobs to cancel: ids, or some of those of a queue, and perhaps of one task.

    With ``only_next`` it is what follows them.
    """

    ids: tuple[str, ...]
    queue: str | None
    task: str | None
    among: CancelFilter
    only_next: bool

    async def find(self, storage: Storage, where: str) -> list[Chosen]:
        """Return those that are there now; ``where`` is the storage in words."""
        if self.ids or self.queue is None:
            return await find_all(storage, self.ids, self.queue, where=where)
        tell_if_new(self.queue, await storage.queues())
        queue = queue_of(storage, self.queue)
        found = await self.among.choose(partial(queue.jobs, task=self.task))
        return [Chosen(queue.name, state, job_id) for state, job_id in found]

    async def cancel(
        self, storage: Storage, queue: str, state: JobState, ids: Sequence[str]
    ) -> list[CancelOutcome]:
        """Cancel as many of one queue and state as a call may bring."""
        if self.ids:
            return await storage.cancel(queue, ids, only_next=self.only_next)
        return await cancel_some(storage, queue, state, ids, self.among)


async def _cancel(
    target: Target, selected: Cancelling, *, output: str, how: Asking
) -> Counter[CancelOutcome]:
    verdicts: Counter[CancelOutcome] = Counter()
    async with target.open() as storage:

        async def act(queue: str, state: JobState, ids: Sequence[str]) -> int:
            try:
                found = Counter(await selected.cancel(storage, queue, state, ids))
            except StorageError:
                note(f"Up to here: {_told(verdicts)}")
                raise
            verdicts.update(found)
            return found[CancelOutcome.CANCELLED] + found[CancelOutcome.REQUESTED]

        await carry_out(
            CANCEL_NEXT if selected.only_next else CANCEL,
            await selected.find(storage, target.where),
            act,
            output=output,
            how=how,
            told=lambda: _told(verdicts),
            document=lambda done: _document(done, verdicts),
        )
    return verdicts


def _document(done: Changed, verdicts: Counter[CancelOutcome]) -> CancelledJobs:
    return CancelledJobs(
        matched=done.matched,
        changed=done.changed,
        dry_run=done.dry_run,
        cancelled=verdicts[CancelOutcome.CANCELLED],
        requested=verdicts[CancelOutcome.REQUESTED],
        finished=verdicts[CancelOutcome.FINISHED],
        not_found=verdicts[CancelOutcome.NOT_FOUND],
    )


def _told(verdicts: Counter[CancelOutcome]) -> str:
    asked = verdicts[CancelOutcome.REQUESTED]
    more = f", {plural(asked, 'active job')} asked to stop" if asked else ""
    return f"{plural(verdicts[CancelOutcome.CANCELLED], 'job')} cancelled{more}."
