"""``headrace job``: look at jobs, retry a failed one; `cancel` has a module of its own."""

from __future__ import annotations

from collections.abc import Sequence

import click

from headrace.cli.bulk import check_is_dead, find
from headrace.cli.cancel import cancel
from headrace.cli.job_views import JobLine, job_line, job_view, raw
from headrace.cli.options import (
    Target,
    on_target,
    option,
    output_option,
    queue_names,
    queue_of,
    queue_option,
    run,
)
from headrace.cli.output import (
    ago,
    echo,
    echo_json,
    fields,
    note,
    one_line,
    span,
    table,
    when,
)
from headrace.job import DEFAULT_LANE, ErrorInfo, JobRecord, JobRow, JobState
from headrace.plain import printable

# Those that one wants to see first, first. Nothing is ever listed as blocked.
LISTED = (
    JobState.ACTIVE,
    JobState.QUEUED,
    JobState.RETRYING,
    JobState.SCHEDULED,
    JobState.FAILED,
    JobState.COMPLETED,
    JobState.CANCELLED,
)

BAR = 20
"""Characters of a progress bar."""

limit_option = option(
    "--limit", "-n", type=click.IntRange(1, 100_000), default=50, help="Rows at most."
)


@click.group()
def job() -> None:
    """Look at jobs, cancel them, retry a failed one."""


job.add_command(cancel)


@job.command()
@click.argument("job_id", metavar="ID")
@queue_option
@output_option
@on_target
def show(*, target: Target, job_id: str, queue: str | None, output: str) -> None:
    """Show all that is kept of a job: state, counts, times, arguments, result and errors."""

    async def load() -> JobRecord:
        async with target.open() as storage:
            return await find(storage, job_id, queue)

    record = run(load())
    if output == "json":
        echo_json(job_view(record))
    else:
        _show(record)


def _show(record: JobRecord) -> None:
    state = record.state.value
    if record.state.is_terminal and record.reason:
        state += f" ({record.reason})"
    if record.cancel_requested and not record.state.is_terminal:
        state += ", asked to stop"
    has_run = record.state.is_terminal and record.starts
    pairs = [
        ("job", record.id),
        ("queue", record.queue),
        ("task", record.task),
        ("state", state),
        ("progress", _progress(record)),
        ("priority", f"{record.priority}"),
        ("lane", "" if record.lane == DEFAULT_LANE else record.lane),
        ("starts", f"{record.starts:,}"),
        ("failures", f"{record.failures:,} ended in an error"),
        ("stalls", f"{record.stalls:,} ended with their worker"),
        ("created", when(record.created_ms)),
        ("changed", when(record.changed_ms)),
        ("due", when(record.due_ms)),
        ("expires", when(record.expires_ms)),
        ("ran for", span(record.run_ms) if has_run else ""),
        ("incarnation", record.incarnation),
        ("options", _text(record.options)),
        ("args", _text(record.payload)),
        ("result", _text(record.result)),
    ]
    fields(pairs)
    for at, error in enumerate(record.errors, start=1):
        echo("")
        _show_error(at, error)


def _progress(record: JobRecord) -> str:
    if record.progress is None:
        return ""
    done = int(record.progress * BAR)
    bar = "#" * done + "." * (BAR - done)
    return f"[{bar}] {record.progress:.0%} {one_line(record.progress_text)}".rstrip()


def _show_error(at: int, error: ErrorInfo) -> None:
    of = f"start {error.start}, " if error.start else ""
    echo(f"error {at}: {of}{when(error.at_ms)}")
    echo(f"  {one_line(f'{error.type}: {error.message}')}")
    for line in printable(error.traceback).splitlines():
        echo(f"  {line}".rstrip())


def _text(stored: bytes | None) -> str:
    shown = raw(stored)
    return "" if shown is None else one_line(bytes(shown).decode(errors="replace"))


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
@output_option
@on_target
def list_command(
    *,
    target: Target,
    queue: tuple[str, ...],
    state: tuple[str, ...],
    task: str | None,
    limit: int,
    output: str,
) -> None:
    """List jobs: of each queue the active ones first, then those that wait, then the ended."""
    wanted = [JobState(one) for one in state] or LISTED
    found, has_more = run(some_jobs(target, queue, wanted, task, limit))
    show_lines(found, has_more=has_more, output=output, limit=limit)


Listed = tuple[str, JobRow]


async def some_jobs(
    target: Target,
    queues: Sequence[str],
    states: Sequence[JobState],
    task: str | None,
    limit: int,
) -> tuple[list[Listed], bool]:
    """Return up to ``limit`` jobs with their queues, and whether there are more."""
    found: list[Listed] = []
    async with target.open() as storage:
        for name in queues or await queue_names(storage):
            for state in states:
                left = limit + 1 - len(found)
                rows = queue_of(storage, name).jobs(state, task=task, limit=left)
                found += [(name, row) async for row in rows]
                if len(found) > limit:
                    return found[:limit], True
    return found, False


def show_lines(found: Sequence[Listed], *, has_more: bool, output: str, limit: int) -> None:
    """Print a listing."""
    if output == "json":
        lines: list[JobLine] = [job_line(queue, row) for queue, row in found]
        echo_json(lines)
    elif not found:
        note("There are none.")
    else:
        headers = ("ID", "QUEUE", "TASK", "STATE", "STARTS", "FAILURES", "STALLS", "WHEN", "NOTE")
        table(headers, [_line(queue, row) for queue, row in found])
    if has_more:
        note(f"There are more than these {limit:,}: raise --limit, or narrow it down.")


def _line(queue: str, row: JobRow) -> tuple[str | int, ...]:
    counts = (row.starts, row.failures, row.stalls)
    about = ": ".join(part for part in (row.reason, row.error) if part)
    at = ago(row.due_ms or row.changed_ms)
    return (row.id, queue, row.task, row.state.value, *counts, at, about)


@job.command()
@click.argument("job_id", metavar="ID")
@queue_option
@on_target
def retry(*, target: Target, job_id: str, queue: str | None) -> None:
    """Queue one dead letter again, with counts and error history reset."""

    async def main() -> JobRecord:
        async with target.open() as storage:
            record = await find(storage, job_id, queue)
            check_is_dead(record.id, record.queue, record.state)
            if not await storage.redrive(record.queue, [record.id]):
                raise click.ClickException(f"job {job_id!r} is no dead letter any more")
            return record

    record = run(main())
    echo(f"Job {record.id} is queued again in {record.queue}.")
