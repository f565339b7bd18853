"""``headrace worker``: run the jobs of an app's queues in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import click
import structlog

from headrace.cli.loading import load_app_for
from headrace.cli.options import Target, app_option, duration_option, is_in_memory, on_target
from headrace.logs import LEVELS, configure, log_events
from headrace.storage.connect import redacted
from headrace.worker.signals import run_with_signals
from headrace.worker.worker import Worker

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@click.command()
@click.argument("path", metavar="[MODULE:ATTR]", required=False)
@app_option
@click.option(
    "--queues",
    "-q",
    metavar="NAME[=WEIGHT],...",
    multiple=True,
    envvar="HEADRACE_QUEUES",
    show_envvar=True,
    help="Which queues; free slots go to them by weight. May be repeated.  [default: those of the "
    "app's tasks, weight 1]",
)
@click.option(
    "--concurrency",
    "-c",
    type=int,
    default=100,
    envvar="HEADRACE_CONCURRENCY",
    show_envvar=True,
    help="Attempts at once.",
)
@duration_option(
    "--lease",
    default="15s",
    envvar="HEADRACE_LEASE",
    show_envvar=True,
    help="Silence after which others take this worker's jobs.",
)
@duration_option(
    "--shutdown-timeout",
    default="25s",
    envvar="HEADRACE_SHUTDOWN_TIMEOUT",
    show_envvar=True,
    help="How long running jobs may go on after the first signal.",
)
@click.option(
    "--name",
    metavar="TEXT",
    envvar="HEADRACE_WORKER_NAME",
    show_envvar=True,
    help="Shown to operators.  [default: host:pid]",
)
@click.option(
    "--loop",
    type=click.Choice(["auto", "asyncio", "uvloop"]),
    default="auto",
    envvar="HEADRACE_LOOP",
    show_envvar=True,
    help="The event loop; auto takes uvloop if it is installed.",
)
@click.option(
    "--log-format",
    type=click.Choice(["console", "json"]),
    default="console",
    envvar="HEADRACE_LOG_FORMAT",
    show_envvar=True,
    help="Text for people, or one JSON object a line.",
)
@click.option(
    "--log-level",
    type=click.Choice(list(LEVELS)),
    default="info",
    envvar="HEADRACE_LOG_LEVEL",
    show_envvar=True,
    help="Log this and above, to standard error.",
)
@on_target
def worker(
    *,
    target: Target,
    path: str | None,
    app_path: str | None,
    queues: tuple[str, ...],
    concurrency: int,
    lease: float,
    shutdown_timeout: float,
    name: str | None,
    loop: str,
    log_format: str,
    log_level: str,
) -> None:
    """Run the jobs of an app, until a signal stops it.

    \b
    TERM, INT   stop claiming and let running jobs end, for --shutdown-timeout
    the second  hand back what still runs now, free of charge
    the third   exit at once with 128 + signal; others take the jobs when the lease ends
    TSTP        claim no more, but go on running, until one of the others

    \b
    headrace worker shop:app
    headrace worker shop:app --queues critical=3,default=1 --concurrency 20
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    chosen = path or app_path
    if chosen is None:
        raise click.UsageError("say which app, as in headrace worker shop:app, or by HEADRACE_APP")
    factory = loop_factory(loop)
    app = load_app_for(chosen, target)
    made = Worker(
        app,
        weights(queues),
        concurrency=concurrency,
        lease=lease,
        shutdown_timeout=shutdown_timeout,
        name=name,
        emit=log_events(log_level),
    )
    configure(log_format, log_level)
    log = structlog.get_logger("headrace")
    if is_in_memory(app.url):
        log.warning("worker.alone", url=app.url, why="only this process can enqueue jobs for it")
    log.info(
        "worker.connecting",
        worker=made.name,
        app=chosen,
        url=redacted(app.url),
        tenant=app.tenant,
        loop="asyncio" if factory is None else "uvloop",
    )
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run_with_signals(made))


def weights(said: Sequence[str]) -> dict[str, int] | None:
    """Return the queues with their weights, None if none are said.

    Raises:
        UsageError: a weight is no whole number.
    """
    found: dict[str, int] = {}
    for part in (part.strip() for text in said for part in text.split(",")):
        if part:
            name, sign, weight = part.partition("=")
            if sign and not weight.isdecimal():
                raise click.UsageError(
                    f"--queues {part!r} is not a queue with a weight: use NAME or NAME=WEIGHT"
                )
            found[name] = int(weight) if sign else 1
    return found or None


def loop_factory(name: str) -> LoopFactory | None:
    """Return what makes the event loop, None for asyncio's own.

    Raises:
        UsageError: uvloop is asked for and not installed.
    """
    if name == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        if name == "uvloop":
            raise click.UsageError(
                "--loop uvloop: it is not installed: pip install 'headrace[uvloop]'"
            ) from None
        return None
    return uvloop.new_event_loop
