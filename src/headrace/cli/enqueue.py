"""``headrace enqueue``: store one job, and perhaps wait for its end."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from headrace.app import App, sender_of
from headrace.cli.awaiting import Awaited, print_end
from headrace.cli.loading import load_app_with_tasks
from headrace.cli.new_job import (
    args_option,
    check_import,
    make_job,
    on_asked,
    read_arguments,
    sender_for,
)
from headrace.cli.on_conflict import on_conflict_options
from headrace.cli.options import (
    Target,
    app_option,
    duration_option,
    import_option,
    on_target,
    option,
    output_option,
    run,
)
from headrace.cli.output import echo, echo_json
from headrace.cli.quantities import instant
from headrace.handle import JobHandle
from headrace.job import EnqueueOutcome, Job
from headrace.options import JobOptions

TOLD = {
    EnqueueOutcome.QUEUED: "queued",
    EnqueueOutcome.SCHEDULED: "scheduled",
    EnqueueOutcome.BLOCKED: "blocked: a limit has no room for it yet, or others have their turn",
    EnqueueOutcome.DUPLICATE: "there already: nothing was changed",
    EnqueueOutcome.COMPLETED: "completed already: nothing was changed",
    EnqueueOutcome.UPDATED: "there already: it was changed, or this one follows it",
}


@click.command()
@click.argument("name", metavar="TASK")
@args_option(default="{}")
@option("--queue", "-q", metavar="NAME", help="Needed without --app.")
@option("--id", metavar="ID", help="Unique in the queue.  [default: a new one]")
@option(
    "--idempotency-key", metavar="KEY", help="Of the calls with it only the first stores a job."
)
@duration_option("--idempotency-ttl", help="How long the key is known.  [default: 24h]")
@duration_option("--debounce", help="Of many such calls run the last, this long after it.")
@duration_option("--throttle", help="Of such calls within this time run the first alone.")
@duration_option("--delay", help="Start no earlier than this from now.")
@option("--at", type=instant, metavar="INSTANT", help="Start no earlier than this instant.")
@on_conflict_options
@on_asked
@option("--wait", "-w", is_flag=True, help="Wait for the end and print the result.")
@duration_option("--timeout", help="With --wait: how long.  [default: no limit]")
@app_option
@import_option
@output_option
@on_target
def enqueue(
    *,
    target: Target,
    app_path: str | None,
    modules: tuple[str, ...],
    output: str,
    name: str,
    args: str,
    queue: str | None,
    id: str | None,
    idempotency_key: str | None,
    idempotency_ttl: float | None,
    debounce: float | None,
    throttle: float | None,
    delay: float | None,
    at: datetime | None,
    conflict: JobOptions,
    asked: JobOptions,
    wait: bool,
    timeout: float | None,
) -> None:
    """Store one job of TASK.

    With --app the arguments are checked against the task's signature and types. Without it the job
    goes to --queue by the task's name, and only the worker checks them.

    \b
    headrace enqueue shop.send --queue emails --args '{"to": "a@b.c"}'
    headrace enqueue shop.send --app shop:app --args '["a@b.c"]' --wait --timeout 30s
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    if timeout is not None and not wait:
        raise click.UsageError("--timeout goes with --wait")
    check_import(app_path, modules)
    options: JobOptions = {
        **asked,
        **conflict,
        "id": id,
        "queue": queue,
        "idempotency_key": idempotency_key,
        "idempotency_ttl": idempotency_ttl,
        "debounce": debounce,
        "throttle": throttle,
        "delay": delay,
        "run_at": at,
    }
    app = None if app_path is None else load_app_with_tasks(app_path, target, modules)
    sender = sender_for(app, target)
    made = make_job(app, sender, name, arguments=read_arguments(args), options=options)
    run(_send(sender, made, waits=wait, timeout=timeout, output=output))


async def _send(
    sender: App[Any], job: Job, *, waits: bool, timeout: float | None, output: str
) -> None:
    async with sender:
        # Fails at once where enqueueing would try for ten seconds.
        await sender.connect()
        if waits and job.idempotency_key:
            # It may be another job's end that is waited for.
            handle = await sender_of(sender).submit(job)
            ended = Awaited(id=handle.id, queue=job.queue, task=job.task)
            await print_end(ended, handle.result(timeout), output=output)
        elif waits:
            ended = Awaited(id=job.id, queue=job.queue, task=job.task)
            timeout_ms = None if timeout is None else round(timeout * 1000)
            result = sender_of(sender).submit_and_wait(job, timeout_ms=timeout_ms)
            await print_end(ended, result, output=output)
        else:
            handle = await sender_of(sender).submit(job)
            _print_outcome(job, handle, output=output)


def _print_outcome(job: Job, handle: JobHandle[Any], *, output: str) -> None:
    outcome = handle.outcome
    if output == "json":
        echo_json(Awaited(id=handle.id, queue=job.queue, task=job.task, outcome=outcome.value))
    else:
        state, colon, reason = TOLD[outcome].partition(":")
        echo(f"Job {handle.id} of {job.task} is {state} in {job.queue}{colon}{reason}.")
