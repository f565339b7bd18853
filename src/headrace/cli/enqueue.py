"""``headrace enqueue``: store one job, and perhaps wait for its end."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import click
import msgspec

from headrace.app import App, sender_of
from headrace.cli.awaiting import Awaited, plain_app, print_end
from headrace.cli.loading import load_app_with_tasks
from headrace.cli.options import (
    Target,
    app_option,
    check_shared,
    duration_option,
    import_option,
    on_target,
    option,
    output_option,
    run,
)
from headrace.cli.output import echo, echo_json
from headrace.cli.quantities import instant
from headrace.codec import read
from headrace.errors import (
    InvalidArguments,
    UnknownTask,
)
from headrace.job import EnqueueOutcome, Job, check_text, new_job_id
from headrace.json_codec import JSON
from headrace.options import JobOptions
from headrace.plain import cut, shown

TOLD = {
    EnqueueOutcome.QUEUED: "queued",
    EnqueueOutcome.SCHEDULED: "scheduled",
    EnqueueOutcome.DUPLICATE: "there already: nothing was changed",
    EnqueueOutcome.COMPLETED: "completed already: nothing was changed",
}


@click.command()
@click.argument("name", metavar="TASK")
@option(
    "--args",
    metavar="JSON",
    default="{}",
    help="Arguments by name as an object, or with --app by position as a list; - reads them from "
    "standard input.",
)
@option("--queue", "-q", metavar="NAME", help="Needed without --app.")
@option("--id", metavar="ID", help="Unique in the queue.  [default: a new one]")
@duration_option("--delay", help="Start no earlier than this from now.")
@option("--at", type=instant, metavar="INSTANT", help="Start no earlier than this instant.")
@duration_option("--expires", help="Start no later than this from now.")
@option("--priority", "-p", type=int, help="0 to 9, 9 runs first.  [default: the task's, or 5]")
@option("--max-attempts", type=int, help="Handler errors after which it fails.")
@duration_option("--attempt-timeout", help="How long one attempt may take.")
@option("--header", metavar="NAME=VALUE", multiple=True, help="For the handler; repeatable.")
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
    delay: float | None,
    at: datetime | None,
    expires: float | None,
    priority: int | None,
    max_attempts: int | None,
    attempt_timeout: float | None,
    header: tuple[str, ...],
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
    if modules and app_path is None:
        raise click.UsageError("--import goes with --app")
    options: JobOptions = {
        # Drawn here if it is to be named when the wait times out.
        "id": id or (new_job_id() if wait else None),
        "queue": queue,
        "delay": delay,
        "run_at": at,
        "expires": expires,
        "priority": priority,
        "max_attempts": max_attempts,
        "timeout": attempt_timeout,
        "headers": _headers(header),
    }
    app = None if app_path is None else load_app_with_tasks(app_path, target, modules)
    sender = _sender(app, target)
    made = _job(app, sender, name, _arguments(args), options)
    run(_send(sender, made, waits=wait, timeout=timeout, output=output))


def _headers(pairs: tuple[str, ...]) -> dict[str, str] | None:
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not (name and sign):
            raise click.UsageError(f"--header {shown(pair)} is not a header: use NAME=VALUE")
        found[name] = value
    return found or None


def _arguments(text: str) -> dict[str, Any] | list[Any]:
    # JSON is UTF-8, whatever the encoding of the locale is.
    data = os.fsencode(text)
    if text == "-":
        with click.open_file("-", "rb") as stream:
            data = stream.read()
    said = data.decode(errors="replace")
    try:
        found = read(JSON.decoder(Any), data)
    except msgspec.MsgspecError as error:
        raise click.UsageError(f"--args {shown(said)} is not JSON ({cut(str(error))})") from None
    if not isinstance(found, dict | list):
        raise click.UsageError(f"--args {shown(said)} is neither a JSON object nor a list")
    return found


def _job(
    app: App[Any] | None,
    sender: App[Any],
    name: str,
    arguments: dict[str, Any] | list[Any],
    options: JobOptions,
) -> Job:
    task = app.tasks.get(name) if app else None
    by_name = arguments if isinstance(arguments, dict) else {}
    by_position = arguments if isinstance(arguments, list) else []
    if task is not None:
        made = task.options(**options).job(*by_position, **by_name)
        task.signature.check(made.payload)
        return made
    check_text(name, what="task name")
    if options["queue"] is None:
        if app is None:
            raise UnknownTask(
                f"the task {shown(name)} is only a name here: "
                "say --app MODULE:ATTR that has it, or the --queue of workers that know it"
            )
        known = ", ".join(sorted(app.tasks)) or "none"
        raise UnknownTask(
            f"the app has no task {shown(name)} (it has: {known}): "
            "say one of these, or the --queue of workers that know it"
        )
    if by_position:
        raise InvalidArguments(
            f"{name}: arguments by position need --app with the task; "
            'without it use an object, as in {"to": "a@b.c"}'
        )
    return (app or sender).task_ref(name).options(**options).job(**by_name)


async def _send(
    sender: App[Any], job: Job, *, waits: bool, timeout: float | None, output: str
) -> None:
    async with sender:
        # Fails at once where enqueueing would try for ten seconds.
        await sender.connect()
        if waits:
            ended = Awaited(id=job.id, queue=job.queue, task=job.task)
            timeout_ms = None if timeout is None else round(timeout * 1000)
            result = sender_of(sender).submit_and_wait(job, timeout_ms=timeout_ms)
            await print_end(ended, result, output=output)
        else:
            handle = await sender_of(sender).submit(job)
            _print_outcome(job, handle.outcome, output=output)


def _sender(app: App[Any] | None, target: Target) -> App[Any]:
    """Return an app without tasks, at the place of the one that has them."""
    if app is None:
        return plain_app(target)
    sender: App[Any] = App(
        check_shared(app.url), tenant=app.tenant, allow_eviction=app.allow_eviction
    )
    sender.preparers += app.preparers
    return sender


def _print_outcome(job: Job, outcome: EnqueueOutcome, *, output: str) -> None:
    if output == "json":
        echo_json(Awaited(id=job.id, queue=job.queue, task=job.task, outcome=outcome.value))
    else:
        echo(f"Job {job.id} of {job.task} is {TOLD[outcome]} in {job.queue}.")
