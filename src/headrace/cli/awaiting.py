"""``headrace job wait`` and ``job stream``, and what a command prints of an end that it awaits."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import click
import msgspec

from headrace.app import App
from headrace.cli.app_target import on_app_target
from headrace.cli.finding import find_by_beginning
from headrace.cli.options import (
    Target,
    check_shared,
    duration_option,
    option,
    output_option,
    queue_option,
    run,
)
from headrace.cli.output import echo, echo_json, echo_json_line, note
from headrace.errors import JobCancelled, JobFailed, ResultExpired, WaitTimeout
from headrace.job import JobRecord, JobState
from headrace.plain import plain_text


class Awaited(msgspec.Struct, kw_only=True):
    """The JSON document of a job and its end; ``state`` and what follows are null before that."""

    id: str
    queue: str
    task: str
    outcome: str | None = None
    state: str | None = None
    reason: str | None = None
    error: str | None = None
    result: Any = None


def plain_app(target: Target) -> App[Any]:
    """Return an app without tasks, to which every result is plain data."""
    return App(
        check_shared(target.url_or_default),
        tenant=target.tenant_name,
        allow_eviction=target.allow_eviction,
    )


async def print_end(ended: Awaited, result: Awaitable[Any], *, output: str) -> None:
    """Wait for a job's result and print it, or how else the job has ended.

    Raises:
        WaitTimeout: it has not ended in time.
        JobFailed, JobCancelled: it has ended so.
    """
    try:
        ended.result = await result
        ended.state = JobState.COMPLETED.value
    except WaitTimeout as error:
        raise WaitTimeout(
            f"{error}; look at it with headrace job show {ended.id}",
            job_id=ended.id,
            queue=ended.queue,
            handle=error.handle,
            is_served=error.is_served,
        ) from None
    except ResultExpired:
        ended.state = JobState.COMPLETED.value
        note(f"Note: job {ended.id} completed, but its result is not kept.")
    except JobFailed as error:
        ended.state, ended.reason = JobState.FAILED.value, error.reason
        ended.error = f"{error.error_type}: {error.error_message}" if error.error_type else None
        raise
    except JobCancelled:
        ended.state = JobState.CANCELLED.value
        raise
    finally:
        if output == "json":
            echo_json(ended)
    if output == "table":
        echo_json(ended.result)


async def _find(target: Target, said: str, queue: str | None) -> JobRecord:
    async with target.open() as storage:
        return await find_by_beginning(storage, said, queue, where=target.where)


@click.command()
@click.argument("job_id", metavar="ID")
@queue_option
@duration_option("--timeout", help="How long.  [default: no limit]")
@output_option
@on_app_target
def wait(
    *, target: Target, job_id: str, queue: str | None, timeout: float | None, output: str
) -> None:
    """Wait until a job has ended, and print its result.

    The exit code says how: 0 completed, 5 failed or cancelled, 124 not in time.
    """

    async def main() -> None:
        job = await _find(target, job_id, queue)
        async with plain_app(target) as app:
            ended = Awaited(id=job.id, queue=job.queue, task=job.task)
            result = app.job(job.id, queue=job.queue).result(timeout=timeout)
            await print_end(ended, result, output=output)

    run(main())


@click.command()
@click.argument("job_id", metavar="ID")
@queue_option
@option("--join", is_flag=True, help="Print texts as they are, with nothing in between.")
@output_option
@on_app_target
def stream(*, target: Target, job_id: str, queue: str | None, join: bool, output: str) -> None:
    """Print what a job emits, until it has ended.

    That is what its handler passes on by context.emit. Texts as they are, anything else as JSON;
    with -o json each piece is one JSON document on a line of its own. The exit code is that of
    "headrace job wait".
    """

    def show(piece: Any) -> None:
        text = None if output == "json" else plain_text(piece)
        if text is None:
            echo_json_line(piece)
        else:
            echo(text, is_line=not join)

    async def main() -> None:
        job = await _find(target, job_id, queue)
        async with plain_app(target) as app:
            handle = app.job(job.id, queue=job.queue)
            async for piece in handle.stream():
                show(piece)
            with suppress(ResultExpired):
                await handle.result()

    run(main())
