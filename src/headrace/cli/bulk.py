"""Commands that change many jobs: which ones, a preview, a question, then exactly those."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

import click
import msgspec

from headrace.cli.finding import find
from headrace.cli.options import queue_of
from headrace.cli.output import echo, echo_json, note, one_line, plural
from headrace.cli.views import Changed
from headrace.job import JobState
from headrace.storage.base import Storage
from headrace.storage.batches import moved

SAMPLE = 5
"""Ids that a preview shows."""

SHOW_PROGRESS_FROM = 20_000


class Chosen(msgspec.Struct, frozen=True):
    """A job that a command will change, as it stood when the command looked."""

    queue: str
    state: JobState
    id: str


class Change(msgspec.Struct, frozen=True):
    """What is to be done, in words: ``delete`` and ``deleted``, of ``dead letter``."""

    verb: str
    done: str
    noun: str


class Asking(msgspec.Struct, frozen=True):
    """How a command is confirmed: ``asks`` is whether it needs to be, ``yes`` that it is."""

    yes: bool
    dry_run: bool
    asks: bool = True


Act = Callable[[str, JobState, Sequence[str]], Awaitable[int]]
"""Changes jobs of one queue and state, at most `moved` brings, and returns how many were."""


def check_is_dead(job_id: str, queue: str, state: JobState) -> None:
    """Raise `ClickException` unless the job is a dead letter."""
    if state is not JobState.FAILED:
        raise click.ClickException(
            f"job {job_id!r} of queue {queue!r} is {state.value} and no dead letter: "
            "only failed jobs can be queued again or purged as such"
        )


async def choose(
    storage: Storage, queues: Sequence[str], states: Sequence[JobState], task: str | None
) -> list[Chosen]:
    """Return the jobs of some queues and states that are there now."""
    return [
        Chosen(name, state, row.id)
        for name in queues
        for state in states
        async for row in queue_of(storage, name).jobs(state, task=task)
    ]


async def find_all(
    storage: Storage, job_ids: Sequence[str], queue: str | None, *, where: str
) -> list[Chosen]:
    """Return the jobs with these ids.

    Raises:
        JobNotFound, UsageError: as `find`.
    """
    ids = dict.fromkeys(job_ids)
    records = [await find(storage, job_id, queue, where=where) for job_id in ids]
    return [Chosen(record.queue, record.state, record.id) for record in records]


async def carry_out(
    change: Change,
    chosen: Sequence[Chosen],
    act: Act,
    *,
    output: str,
    how: Asking,
    told: Callable[[], str] | None = None,
    document: Callable[[Changed], Changed] = lambda changed: changed,
) -> None:
    """Show what would change and ask, as far as needed; then change it and print what was done.

    Args:
        change: in words.
        chosen: the jobs.
        act: changes some of them.
        output: ``table`` or ``json``.
        how: whether it asks.
        told: what to print afterwards instead of how many were changed.
        document: returns the JSON document, which says more of it.

    Raises:
        UsageError: there is nobody to ask.
        ClickException: the answer was no.
    """
    is_asking = how.asks and not how.yes and bool(chosen)
    if is_asking or how.dry_run:
        _preview(change, chosen)
    if is_asking and not how.dry_run:
        ask(f"{change.verb.capitalize()} {plural(len(chosen), change.noun)}?")
    changed = 0 if how.dry_run else await _apply(change, chosen, act)
    if output == "json":
        done = Changed(matched=len(chosen), changed=changed, dry_run=how.dry_run)
        echo_json(document(done))
    elif how.dry_run:
        echo("Dry run: nothing was changed.")
    elif told:
        echo(told())
    else:
        echo(f"{plural(changed, change.noun)} {change.done}.")
        if changed < len(chosen):
            note(f"{plural(len(chosen) - changed, change.noun)} had changed state meanwhile.")


def ask(question: str) -> None:
    """Go on only if a person says yes.

    Raises:
        UsageError: standard input is no terminal.
        ClickException: the answer was no.
        Abort: Ctrl-C or the end of input was the answer.
    """
    check_can_ask()
    with _interruptible():
        is_confirmed = click.confirm(question, err=True)
    if not is_confirmed:
        raise click.ClickException("not confirmed: nothing was changed")


def check_can_ask() -> None:
    """Raise `UsageError` if standard input is no terminal, where what follows takes long."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            "this needs a confirmation, and there is no terminal to ask: pass --yes"
        )


@contextmanager
def _interruptible() -> Iterator[None]:
    """Have Ctrl-C interrupt what is read meanwhile.

    The runner of the event loop would only cancel its task, which waits for this.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _preview(change: Change, chosen: Sequence[Chosen]) -> None:
    queues = sorted({job.queue for job in chosen})
    where = f" of {', '.join(queues)}" if queues else ""
    note(f"This will {change.verb} {plural(len(chosen), change.noun)}{where}:")
    for job in chosen[:SAMPLE]:
        note(f"  {one_line(job.id)}  {job.state.value}")
    if len(chosen) > SAMPLE:
        note(f"  … and {len(chosen) - SAMPLE:,} more")


async def _apply(change: Change, chosen: Sequence[Chosen], act: Act) -> int:
    """Change the chosen jobs batch by batch and return how many were."""
    groups: dict[tuple[str, JobState], list[str]] = {}
    for job in chosen:
        groups.setdefault((job.queue, job.state), []).append(job.id)
    done = 0
    is_hidden = len(chosen) < SHOW_PROGRESS_FROM or not sys.stderr.isatty()
    label = f"{change.verb.capitalize()} {change.noun}s"
    with click.progressbar(
        length=len(chosen), label=label, file=sys.stderr, hidden=is_hidden
    ) as bar:
        for (queue, state), ids in groups.items():
            for batch in moved(ids):
                done += await act(queue, state, batch)
                bar.update(len(batch))
    return done
