"""``headrace job``: look at jobs, retry a failed one; other modules cancel, wait and export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from headrace.cli.app_target import on_app_target
from headrace.cli.awaiting import stream, wait
from headrace.cli.bulk import check_is_dead
from headrace.cli.cancel import cancel
from headrace.cli.colours import STATES, Coloured, count_cell, state_cell, styled
from headrace.cli.export import export
from headrace.cli.finding import LISTED, find, find_by_beginning
from headrace.cli.options import (
    Target,
    option,
    output_option,
    queue_names,
    queue_of,
    queue_option,
    run,
    wide_option,
)
from headrace.cli.output import (
    ago,
    echo,
    echo_json,
    echo_styled,
    fields,
    note,
    one_line,
    span_of,
    when,
)
from headrace.cli.tables import Cell, Column, table
from headrace.cli.views import raw
from headrace.cli.why import why_command
from headrace.fairness import FAIR_LIMIT
from headrace.job import DEFAULT_LANE, JobRecord, JobState, check_text
from headrace.plain import printable
from headrace.storage.base import Inspector
from headrace.views.jobs import ErrorEntry, JobStatus, JobSummary
from headrace.views.wording import command as typed

COLUMNS = (
    Column("ID"),
    Column("QUEUE", rank=5),
    Column("TASK", rank=3),
    Column("STATE"),
    Column("STARTS", rank=8),
    Column("FAILURES", rank=6),
    Column("STALLS", rank=7),
    Column("WHEN", rank=2),
    Column("NOTE", rank=4, is_cut=True),
)
# All have one state, and what they are looked at for is why.
DEAD_COLUMNS = tuple(
    msgspec.structs.replace(column, rank=0) if column.name == "NOTE" else column
    for column in COLUMNS
    if column.name != "STATE"
)

NOT_WAITING = {JobState.ACTIVE, JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED}
BAR = 20
"""Characters of a progress bar."""

limit_option = option(
    "--limit", "-n", type=click.IntRange(1, 100_000), default=50, help="Rows at most."
)


@click.group()
def job() -> None:
    """Look at jobs, wait for them, cancel them, retry a failed one, export those that ended."""


for command in (cancel, export, stream, wait, why_command):
    job.add_command(command)


@job.command()
@click.argument("job_id", metavar="ID")
@queue_option
@output_option
@on_app_target
def show(*, target: Target, job_id: str, queue: str | None, output: str) -> None:
    """Show all that is kept of a job.

    That is its state, counts, times, arguments, result and errors. The beginning of an id is
    enough, four characters at least, where no other job begins so.
    """
    job_id = check_text(job_id, what="job id")

    async def load() -> tuple[JobRecord, str]:
        async with target.open() as storage:
            record = await find_by_beginning(storage, job_id, queue, where=target.where)
            return record, await _worker_of(storage, record)

    record, worker = run(load())
    status = JobStatus.of(record, raw)
    if output == "json":
        echo_json({**status.to_dict(), "worker": worker or None})
    else:
        _show(status, worker)


async def _worker_of(storage: Inspector, record: JobRecord) -> str:
    """Return the name of the worker that last claimed a job, "" if it is not known any more."""
    known = await storage.workers(record.queue) if record.incarnation else []
    return next((info.name for info in known if info.incarnation == record.incarnation), "")


def _show(job: JobStatus, worker: str) -> None:
    state = job.state.value
    if job.state.is_terminal and job.reason:
        state += f" ({job.reason})"
    if job.cancel_requested and not job.state.is_terminal:
        state += ", asked to stop"
    if job.has_next:
        state += ", another of its id follows"
    if job.blocked_by:
        state += f" {_held_up(job)}"
    pairs: list[tuple[str, str | Coloured]] = [
        ("job", job.id),
        ("queue", job.queue),
        ("task", job.task),
        ("state", Coloured(state, STATES.get(job.state, ""))),
        ("why", "" if job.state in NOT_WAITING else typed("job", "why", job.id)),
        ("progress", _progress(job)),
        ("priority", f"{job.priority}"),
        ("lane", "" if job.lane == DEFAULT_LANE else job.lane),
        ("slots", "" if job.slots == 1 else f"{job.slots:,}"),
        ("starts", f"{job.starts:,}"),
        ("failures", f"{job.failures:,} ended in an error"),
        ("stalls", f"{job.stalls:,} ended with their worker"),
        ("created", when(job.created_at)),
        ("changed", when(job.changed_at)),
        ("due", when(job.due_at)),
        ("put back", _put_back(job)),
        ("limits", ", ".join(f"{name} {key}".rstrip() for name, key in job.limits.items())),
        ("fair key", job.fair_key or ("" if job.fair_key is None else "none")),
        ("expires", when(job.expires_at)),
        ("on failed", job.on_failed or ""),
        ("ran for", "" if job.run_s is None else span_of(job.run_s)),
        ("worker", worker or ("gone" if job.incarnation else "")),
        ("incarnation", job.incarnation or ""),
        ("options", _text(job.options)),
        ("args", _text(job.args)),
        ("result", _text(job.result)),
    ]
    fields(pairs)
    for error in job.errors:
        echo("")
        _show_error(error)


def _put_back(job: JobStatus) -> str:
    if job.put_back is None:
        return ""
    return one_line(f"since {when(job.put_back.at)}: {job.put_back.message}")


def _progress(job: JobStatus) -> str:
    if job.progress is None:
        return ""
    done = int(job.progress * BAR)
    bar = "#" * done + "." * (BAR - done)
    text = one_line(job.progress_text or "")
    return f"[{bar}] {job.progress:.0%} {text}".rstrip()


def _held_up(job: JobStatus) -> str:
    by = job.blocked_by or ""
    kind, _, struck = by.partition(":")
    if by == FAIR_LIMIT:
        return "until its key has its turn"
    if by in job.limits or kind not in ("task", "strike"):
        return f"by the limit {by}"
    return "since its task is paused" if kind == "task" else f"by the strike {struck}"


def _show_error(error: ErrorEntry) -> None:
    of = f" of start {error.start}" if error.start else ""
    echo_styled(f"{styled(f'error{of}', 'red')}: {when(error.at)}")
    echo(f"  {one_line(f'{error.type}: {error.message}')}")
    for line in printable(error.traceback).splitlines():
        echo(f"  {line}".rstrip())


def _text(value: Any) -> str:
    return "" if value is None else one_line(msgspec.json.encode(value).decode(errors="replace"))


@job.command("list")
@option(
    "--queue",
    "-q",
    metavar="NAME",
    multiple=True,
    help="Only this queue; may be repeated.",
)
@option(
    "--state",
    "-s",
    multiple=True,
    type=click.Choice([state.value for state in LISTED]),
    help="Only this state; may be repeated.",
)
@option("--task", "-t", metavar="NAME", help="Only jobs of this task.")
@limit_option
@wide_option
@output_option
@on_app_target
def list_command(
    *,
    target: Target,
    queue: tuple[str, ...],
    state: tuple[str, ...],
    task: str | None,
    limit: int,
    is_wide: bool,
    output: str,
) -> None:
    """List jobs by queue, state and task.

    Of each queue the active ones come first, then those that wait, then the ended.
    """
    wanted = [JobState(one) for one in state] or LISTED
    found, has_more = run(some_jobs(target, queue, wanted, task, limit))
    if output == "json":
        echo_lines(found)
    elif not found:
        note(f"There are no such jobs in {target.where}.")
    else:
        table(COLUMNS, [_line(job) for job in found], is_wide=is_wide)
    note_more(has_more=has_more, limit=limit)


async def some_jobs(
    target: Target,
    queues: Sequence[str],
    states: Sequence[JobState],
    task: str | None,
    limit: int,
) -> tuple[list[JobSummary], bool]:
    """Return up to ``limit`` jobs, and whether there are more."""
    found: list[JobSummary] = []
    async with target.open() as storage:
        for name in queues or await queue_names(storage):
            for state in states:
                left = limit + 1 - len(found)
                rows = queue_of(storage, name).jobs(state, task=task, limit=left)
                found += [row async for row in rows]
                if len(found) > limit:
                    return found[:limit], True
    return found, False


def echo_lines(found: Sequence[JobSummary]) -> None:
    """Print the document of a listing."""
    echo_json([job.to_dict() for job in found])


def note_more(*, has_more: bool, limit: int) -> None:
    """Say that a listing is cut, if it is."""
    if has_more:
        note(f"There are more than these {limit:,}: raise --limit, or narrow it down.")


def _line(job: JobSummary) -> list[Cell]:
    return [
        job.id,
        job.queue,
        job.task,
        state_cell(job.state),
        job.starts,
        count_cell(job.failures, "yellow"),
        count_cell(job.stalls, "yellow"),
        ago(job.due_at or job.changed_at),
        ": ".join(part for part in (job.reason, job.error, job.message) if part),
    ]


def dead_line(job: JobSummary) -> list[Cell]:
    """Return a dead letter's row, see `DEAD_COLUMNS`."""
    job_id, queue, task, _, *rest = _line(job)
    return [job_id, queue, task, *rest]


@job.command()
@click.argument("job_id", metavar="ID")
@queue_option
@on_app_target
def retry(*, target: Target, job_id: str, queue: str | None) -> None:
    """Queue one dead letter again, with counts and error history reset."""

    async def main() -> JobRecord:
        async with target.open() as storage:
            record = await find(storage, job_id, queue, where=target.where)
            check_is_dead(record.id, record.queue, record.state)
            if not await storage.redrive(record.queue, [record.id]):
                raise click.ClickException(f"job {job_id!r} is no dead letter any more")
            return record

    record = run(main())
    echo(f"Job {record.id} is queued again in {record.queue}.")
