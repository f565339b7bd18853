"""The command line: parses, calls the library, prints. Errors become one line and an exit code."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from headrace.cli import streams
from headrace.cli.lazy import LazyGroup
from headrace.cli.output import leading, message_of, one_line
from headrace.cli.version import version_option
from headrace.description import full_traceback, is_a
from headrace.errors import (
    AppImportError,
    JobCancelled,
    JobFailed,
    LifespanTimeout,
    StorageRefused,
    StorageUnavailable,
    UsageError,
    WaitTimeout,
)
from headrace.supervisor.leaving import EXIT_CUT_OFF

# The first match counts, so a subclass stands before its base.
EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (AppImportError, 4),
    (UsageError, 2),
    (StorageUnavailable, 3),
    (StorageRefused, 3),
    (JobFailed, 5),
    (JobCancelled, 5),
    (LifespanTimeout, EXIT_CUT_OFF),
    (WaitTimeout, 124),
    (click.Abort, 130),
    (KeyboardInterrupt, 130),
)


TRACEBACK = "HEADRACE_TRACEBACK"
EPILOG = """
Every option can be set by a variable, also where none is shown: enqueue --priority by
HEADRACE_ENQUEUE_PRIORITY. Only --yes, --all, --force and --dry-run can't.

\b
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the storage can't be reached or used,
4 the app can't be imported, 5 the awaited job failed, 6 handlers or the
lifespan were cut off at a worker's end, 124 the wait timed out.
"""


def _keep_traceback(context: click.Context, _: click.Parameter, is_asked_for: bool) -> None:  # noqa: FBT001 (click's own call)
    # It must outlive click's own context, which is gone when an error arrives.
    if is_asked_for or context.parent is None:
        os.environ[TRACEBACK] = "1" if is_asked_for else ""


traceback_option = click.option(
    "--traceback",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    envvar=TRACEBACK,
    show_envvar=True,
    callback=_keep_traceback,
    help="Print the traceback of an error too.",
)


MODULES = {
    "dead": "headrace.cli.dead:dead",
    "doctor": "headrace.cli.operate:doctor",
    "enqueue": "headrace.cli.enqueue:enqueue",
    "events": "headrace.cli.events:events",
    "health": "headrace.cli.operate:health",
    "job": "headrace.cli.jobs:job",
    "pipeline": "headrace.cli.pipeline:pipeline",
    "queue": "headrace.cli.queues:queue",
    "schedule": "headrace.cli.schedules:schedule",
    "scheduler": "headrace.cli.scheduler:scheduler",
    "tenant": "headrace.cli.tenants:tenant",
    "top": "headrace.cli.top:top",
    "version": "headrace.cli.version:version",
    "worker": "headrace.cli.worker:worker",
    "workers": "headrace.cli.workers:workers",
}
"""Where the command of a name is."""


@click.group(
    cls=LazyGroup,
    modules=MODULES,
    everywhere=traceback_option,
    context_settings={
        "auto_envvar_prefix": "HEADRACE",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
    epilog=EPILOG,
)
@version_option
def cli() -> None:
    """Run workers, and look at and steer jobs and queues."""


@cli.command("help")
@click.argument("names", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help_command(context: click.Context, names: tuple[str, ...]) -> None:
    """Show the help of a command, or this list of them."""
    chosen: click.Command = cli
    where = context.find_root()
    for name in names:
        found = chosen.get_command(where, name) if isinstance(chosen, click.Group) else None
        if found is None:
            raise click.UsageError(f"there is no command {' '.join(names)!r}", where)
        chosen, where = found, click.Context(found, parent=where, info_name=name)
    click.echo(chosen.get_help(where))


def main() -> NoReturn:
    """Run the command line and exit."""
    streams.prepare()
    try:
        code = cli.main(prog_name="headrace", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except (Exception, KeyboardInterrupt) as error:
        _fail(error)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(raised: BaseException) -> NoReturn:
    error = leading(raised)
    if isinstance(error, OSError):
        streams.drop_output()  # it may be what has failed
    if isinstance(error, BrokenPipeError):
        sys.exit(1)  # as `head` does, its reader has had enough
    if os.environ.get(TRACEBACK):
        click.echo(full_traceback(error), err=True, nl=False)
    if issubclass(type(error), click.Abort | KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
    else:
        click.echo(f"Error: {one_line(message_of(error))}", err=True)
    code = next((code for kind, code in EXIT_CODES if is_a(error, kind)), 1)
    sys.exit(error.exit_code if is_a(error, click.ClickException) else code)
