"""``headrace job cancel``: one job, some, or those of a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click
import msgspec

from headrace.cli.app_target import on_app_target
from headrace.cli.bulk import Asking, Change, Chosen, carry_out, choose, find_all
from headrace.cli.options import (
    Target,
    destructive,
    option,
    output_option,
    queue_of,
    queue_option,
    run,
)
from headrace.cli.output import plural
from headrace.job import CancelOutcome, JobState
from headrace.storage.base import Storage

CANCELLABLE = (JobState.QUEUED, JobState.RETRYING, JobState.SCHEDULED, JobState.ACTIVE)
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
    is_all: bool,
    only_next: bool,
    output: str,
    yes: bool,
    dry_run: bool,
) -> None:
    """Cancel jobs: waiting ones never start, active ones are asked to stop.

    What is to run after an active one, under its id, goes with it.

    Say which: ids, or --queue with --task or --all. For more than one it shows how many and asks.
    Exits with 1 if one had ended otherwise before.
    """
    if sum((bool(ids), task is not None, is_all)) != 1:
        raise click.UsageError("say which jobs: ids, or --queue with --task or --all")
    if not ids and queue is None:
        raise click.UsageError("--task and --all need --queue")
    if ids and state:
        raise click.UsageError("--state goes with --task and --all, not with ids")
    if only_next and not ids:
        raise click.UsageError("--only-next goes with ids")
    wanted = [JobState(one) for one in state] or CANCELLABLE
    how = Asking(yes, dry_run, asks=len(ids) != 1)
    selected = Cancelling(ids, queue, tuple(wanted), task, only_next)
    verdicts = run(_cancel(target, selected, output=output, how=how))
    if only_next and (lone := verdicts[CancelOutcome.NOT_FOUND]):
        raise click.ClickException(f"nothing followed {plural(lone, 'job')}")
    if ended := verdicts[CancelOutcome.FINISHED] + verdicts[CancelOutcome.NOT_FOUND]:
        raise click.ClickException(f"{plural(ended, 'job')} had ended otherwise before")


class Cancelling(msgspec.Struct, frozen=True):
    """Which jobs to cancel: ids, or those of a queue in these states and perhaps of one task.

    With ``only_next`` it is what follows them.
    """

    ids: tuple[str, ...]
    queue: str | None
    states: tuple[JobState, ...]
    task: str | None
    only_next: bool

    async def find(self, storage: Storage, where: str) -> list[Chosen]:
        """Return those that are there now; ``where`` is the storage in words."""
        if self.ids or self.queue is None:
            return await find_all(storage, self.ids, self.queue, where=where)
        return await choose(storage, [queue_of(storage, self.queue).name], self.states, self.task)


async def _cancel(
    target: Target, selected: Cancelling, *, output: str, how: Asking
) -> Counter[CancelOutcome]:
    verdicts: Counter[CancelOutcome] = Counter()
    async with target.open() as storage:

        async def act(queue: str, _state: JobState, ids: Sequence[str]) -> int:
            found = Counter(await storage.cancel(queue, ids, only_next=selected.only_next))
            verdicts.update(found)
            return found[CancelOutcome.CANCELLED] + found[CancelOutcome.REQUESTED]

        await carry_out(
            CANCEL_NEXT if selected.only_next else CANCEL,
            await selected.find(storage, target.where),
            act,
            output=output,
            how=how,
            told=lambda: _told(verdicts),
        )
    return verdicts


def _told(verdicts: Counter[CancelOutcome]) -> str:
    asked = verdicts[CancelOutcome.REQUESTED]
    more = f", {plural(asked, 'active job')} asked to stop" if asked else ""
    return f"{plural(verdicts[CancelOutcome.CANCELLED], 'job')} cancelled{more}."
