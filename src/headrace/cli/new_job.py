"""The job that a command's options ask for, made with the app that has its task or without."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import click
import msgspec

from headrace.app import App
from headrace.cli.awaiting import plain_app
from headrace.cli.options import Function, Target, check_shared, duration_option, option
from headrace.codec import read
from headrace.errors import InvalidArguments, UnknownTask
from headrace.job import Job, check_text
from headrace.json_codec import JSON
from headrace.options import JobOptions
from headrace.plain import cut, shown

Arguments = dict[str, Any] | list[Any]
"""Arguments by name, or by position."""

args_option = functools.partial(
    option,
    "--args",
    metavar="JSON",
    help="Arguments by name as an object, or with --app by position as a list; - reads them from "
    "standard input.",
)
"""Returns the option of a job's arguments."""


def on_asked(function: Function) -> Callable[..., Any]:
    """Add the options of a job that hold for every one of its kind, and pass on what they say."""

    @duration_option("--expires", help="Start no later than this from now.")
    @option("--priority", "-p", type=int, help="0 to 9, 9 runs first.  [default: the task's, or 5]")
    @option("--max-attempts", type=int, help="Handler errors after which it fails.")
    @duration_option("--attempt-timeout", help="How long one attempt may take.")
    @option(
        "--slots",
        type=int,
        help="How many slots of its lane it holds, 1 to 1,000.  [default: the task's]",
    )
    @option("--on-failed", metavar="TASK", help="A job of this task comes if this one fails.")
    @option("--fair-key", metavar="KEY", help="The key that takes turns with others of its queue.")
    @option("--header", metavar="NAME=VALUE", multiple=True, help="For the handler; repeatable.")
    @option(
        "--limit-key",
        metavar="LIMIT=KEY",
        multiple=True,
        help="The key of a limit, in place of what the arguments say; repeatable.",
    )
    @functools.wraps(function)
    def wrapper(
        *,
        expires: float | None,
        priority: int | None,
        max_attempts: int | None,
        attempt_timeout: float | None,
        slots: int | None,
        on_failed: str | None,
        fair_key: str | None,
        header: tuple[str, ...],
        limit_key: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        asked: JobOptions = {
            "expires": expires,
            "priority": priority,
            "max_attempts": max_attempts,
            "timeout": attempt_timeout,
            "slots": slots,
            "on_failed": on_failed,
            "fair_key": fair_key,
            "headers": _pairs(header, "--header", "a header: use NAME=VALUE"),
            "limit_keys": _pairs(limit_key, "--limit-key", "a key of a limit: use LIMIT=KEY"),
        }
        return function(asked=asked, **rest)

    return wrapper


def _pairs(pairs: tuple[str, ...], name_of_option: str, wanted: str) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not (name and sign):
            raise click.UsageError(f"{name_of_option} {shown(pair)} is not {wanted}")
        if found.setdefault(name, value) != value:
            raise click.UsageError(f"{name_of_option} says {shown(name)} twice: say it once")
    return found or None


def check_import(app_path: str | None, modules: tuple[str, ...]) -> None:
    """Refuse ``--import`` where no app is to have the modules."""
    if modules and app_path is None:
        raise click.UsageError("--import goes with --app")


def read_arguments(text: str) -> Arguments:
    """Return what ``--args`` says; ``-`` is standard input.

    Raises:
        UsageError: it is no JSON, or neither an object nor a list.
    """
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


def make_job(
    app: App[Any] | None,
    sender: App[Any],
    name: str,
    *,
    arguments: Arguments,
    options: JobOptions,
) -> Job:
    """Return a job, whose arguments are checked where the app has its task.

    Args:
        app: that may have the task.
        sender: makes it where there is no app.
        name: the task's.
        arguments: the job's.
        options: its options, ``queue`` among them.

    Raises:
        UnknownTask: nothing says the queue.
        InvalidArguments, InvalidOption: the job can't be as it is asked for.
    """
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


def sender_for(app: App[Any] | None, target: Target) -> App[Any]:
    """Return an app without tasks, at the place of the one that has them."""
    if app is None:
        return plain_app(target)
    sender: App[Any] = App(
        check_shared(app.url), tenant=app.tenant, allow_eviction=app.allow_eviction
    )
    sender.preparers += app.preparers
    return sender
