"""The options of ``headrace worker``; those of its `Worker` have the names of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from headrace.cli.options import option
from headrace.cli.quantities import duration, size
from headrace.logs.setup import FORMATS, LEVELS
from headrace.plain import shown
from headrace.settings import check_count
from headrace.worker.process_slots.functions import cores

Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Function], Function]

MOST_PROCESSES = 64

GROUPS = {
    "What it runs": (
        "app_path",
        "modules",
        "queues",
        "concurrency",
        "lanes",
        "threads",
        "scheduler",
        "name",
        "version",
        "loop",
        "check",
    ),
    "Where the jobs are": ("url", "tenant", "allow_eviction"),
    "When it ends by itself": ("burst", "max_jobs", "max_memory", "max_lifetime"),
    "Starting, stopping and staying alive": (
        "shutdown_timeout",
        "startup_timeout",
        "teardown_timeout",
        "lease",
        "sweep_interval",
        "max_loop_stall",
    ),
    "Processes for CPU-bound jobs": (
        "process_slots",
        "process_max_jobs",
        "process_max_memory",
        "process_memory_limit",
    ),
    "Several workers, and development": ("processes", "watch"),
    "Logs and probes": (
        "log_format",
        "log_level",
        "no_log_setup",
        "traceback",
        "health_port",
        "health_host",
    ),
}
"""How the help shows the options; one that is in no group comes last."""


def process_count(value: str | int) -> int:
    """Read a number of worker processes, ``auto`` for one a processor that may be used, 1 to 64.

    Raises:
        InvalidOption: it is out of bounds.
        BadParameter: it is no number.
    """
    if value == "auto":
        return min(cores(), MOST_PROCESSES)
    try:
        count = int(value)
    except ValueError:
        raise click.BadParameter(
            f"{shown(value)} is no number of processes: use 1 to 64, or auto"
        ) from None
    return check_count(count, name="processes", most=MOST_PROCESSES)


def slots_of_each(said: int | None, processes: int) -> int | None:
    """Return the process slots of each worker: as said, else the processors that are its share.

    None is left to the worker, whose default is all of them.
    """
    return -(-cores() // processes) if said is None and processes > 1 else said


class Folder(click.Path):
    """A directory that is there; several in one variable are separated as in PATH."""

    name = "folder"

    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check it, and tell what may be meant if it is none."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise click.BadParameter(
                f"{error.message.rstrip('.')}: --watch takes directories, an app stands before it",
                ctx,
                param,
            ) from None


def _option(name: str, variable: str, help: str, *short: str, **rest: Any) -> Decorator[Function]:
    return option(name, *short, envvar=variable, show_envvar=True, help=help, **rest)


def _count(name: str, variable: str, help: str, *short: str, **rest: Any) -> Decorator[Function]:
    return _option(name, variable, help, *short, type=int, **rest)


def _duration(name: str, variable: str, help: str, **rest: Any) -> Decorator[Function]:
    return _option(name, variable, help, type=duration, metavar="DURATION", **rest)


def _size(name: str, variable: str, help: str) -> Decorator[Function]:
    return _option(name, variable, help, type=size, metavar="SIZE")


def _all(*decorators: Decorator[Any]) -> Decorator[Function]:
    def decorate(function: Function) -> Function:
        # The help lists options in the order of the decorators from above.
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


told_options: Decorator[Any] = _all(
    _option(
        "--log-format",
        "HEADRACE_LOG_FORMAT",
        "Text for people, or one JSON object a line.",
        type=click.Choice(FORMATS),
        default="console",
    ),
    _option(
        "--log-level",
        "HEADRACE_LOG_LEVEL",
        "Log this and above, to standard error.",
        type=click.Choice(list(LEVELS)),
        default="info",
    ),
    _option(
        "--no-log-setup",
        "HEADRACE_NO_LOG_SETUP",
        "Leave logging to the app. Without it too where the app has set up logging or structlog.",
        is_flag=True,
    ),
    _count(
        "--health-port",
        "HEADRACE_HEALTH_PORT",
        "Answer /livez, /readyz and /startupz there; 0 takes a free port and logs it.",
        metavar="PORT",
    ),
    _option(
        "--health-host",
        "HEADRACE_HEALTH_HOST",
        "Address for --health-port.  [default: all of this machine's]",
        metavar="ADDRESS",
    ),
)
"""How the process logs and answers probes; those of ``headrace scheduler`` too."""

run_options: Decorator[Any] = _all(
    _option(
        "--queues",
        "HEADRACE_QUEUES",
        "Which queues; free slots go to them by weight. May be repeated.  [default: those of the "
        "app's tasks, weight 1]",
        "-q",
        metavar="NAME[=WEIGHT],...",
        multiple=True,
    ),
    _count("--concurrency", "HEADRACE_CONCURRENCY", "Attempts at once.", "-c", default=100),
    _option(
        "--lanes",
        "HEADRACE_LANES",
        "Which kinds of slots, and how many of each; without a number as many as --concurrency, or "
        "--process-slots for process. May be repeated.  [default: default, and process if tasks "
        "have it]",
        metavar="NAME[:SLOTS],...",
        multiple=True,
    ),
    _count(
        "--threads",
        "HEADRACE_THREADS",
        "Plain functions at once, of all attempts.  [default: as many]",
    ),
    _option(
        "--scheduler/--no-scheduler",
        "HEADRACE_SCHEDULER",
        "Fire schedules when they are due, and store those that the app declares. Without it other "
        "workers do, or headrace scheduler.",
        default=True,
    ),
    _duration(
        "--lease",
        "HEADRACE_LEASE",
        "Silence after which others take this worker's jobs.",
        default="15s",
    ),
    _duration(
        "--shutdown-timeout",
        "HEADRACE_SHUTDOWN_TIMEOUT",
        "How long running jobs may go on after the first signal.",
        default="25s",
    ),
    _duration(
        "--startup-timeout",
        "HEADRACE_STARTUP_TIMEOUT",
        "How long the app's lifespan may take to start.",
        default="5m",
    ),
    _duration(
        "--teardown-timeout",
        "HEADRACE_TEARDOWN_TIMEOUT",
        "How long the app's lifespan may take to end.",
        default="10s",
    ),
    _duration(
        "--sweep-interval",
        "HEADRACE_SWEEP_INTERVAL",
        "Time between looks for dead workers.",
        default="5s",
    ),
    _duration(
        "--max-loop-stall",
        "HEADRACE_MAX_LOOP_STALL",
        "How long the event loop may stand still before the worker gives its jobs up and /livez "
        "says no.  [default: four leases]",
    ),
    _option(
        "--name",
        "HEADRACE_WORKER_NAME",
        "Shown to operators.  [default: host:pid]",
        metavar="TEXT",
    ),
    _option(
        "--app-version",
        "HEADRACE_VERSION",
        "What it runs is called, such as a commit, in lists of workers and in events.  "
        "[default: the app's release]",
        "version",
        metavar="TEXT",
    ),
    _option(
        "--loop",
        "HEADRACE_LOOP",
        "The event loop; auto takes uvloop if it is installed.",
        type=click.Choice(["auto", "asyncio", "uvloop"]),
        default="auto",
    ),
    _option(
        "--processes",
        "HEADRACE_PROCESSES",
        "Worker processes, 1 to 64, each with all of these options; auto is one a processor. "
        "Those that end are replaced.",
        metavar="N|auto",
        type=process_count,
        default="1",
    ),
    _option(
        "--watch",
        "HEADRACE_WATCH",
        "For development: restart when a Python file changes below this directory, by default the "
        "working directory. May be repeated.",
        metavar="[DIR]",
        is_flag=False,
        flag_value=".",
        multiple=True,
        type=Folder(),
    ),
    _option(
        "--check",
        "HEADRACE_WORKER_CHECK",
        "Only import the app and check the options; start nothing.",
        is_flag=True,
    ),
)

limit_options: Decorator[Any] = _all(
    _count("--max-jobs", "HEADRACE_MAX_JOBS", "End after about so many attempts."),
    _size("--max-memory", "HEADRACE_MAX_MEMORY", "End when this process has more memory."),
    _duration("--max-lifetime", "HEADRACE_MAX_LIFETIME", "End after this time."),
    _option(
        "--burst",
        "HEADRACE_BURST",
        "End when nothing is ready and nothing runs; what is due later is left.",
        is_flag=True,
    ),
)

process_options: Decorator[Any] = _all(
    _count(
        "--process-slots",
        "HEADRACE_PROCESS_SLOTS",
        "Attempts at once in processes of the worker, 0 for none.  [default: one a processor; with "
        "--processes its share of them, rounded up]",
    ),
    _count(
        "--process-max-jobs",
        "HEADRACE_PROCESS_MAX_JOBS",
        "Replace such a process after so many jobs.",
    ),
    _size(
        "--process-max-memory",
        "HEADRACE_PROCESS_MAX_MEMORY",
        "Replace it after a job when it has more resident memory.",
    ),
    _size(
        "--process-memory-limit",
        "HEADRACE_PROCESS_MEMORY_LIMIT",
        "Address space that it can't go beyond: MemoryError.",
    ),
)
