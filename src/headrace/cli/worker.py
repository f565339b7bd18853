"""``headrace worker``: run the jobs of an app's queues in this process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import anyio
import click
import structlog

from headrace.cli.leaving import run_and_leave
from headrace.cli.loading import load_app_for
from headrace.cli.options import Target, app_option, is_in_memory, on_target
from headrace.cli.watch import end_with_supervisor, supervise
from headrace.cli.worker_options import limit_options, process_options, run_options
from headrace.events import Emit, WorkerEvent
from headrace.logs import configure, log_events
from headrace.storage.connect import redacted
from headrace.worker.health import HealthServer
from headrace.worker.notify import Systemd
from headrace.worker.signals import run_with_signals
from headrace.worker.worker import Worker

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@click.command()
@click.argument("path", metavar="[MODULE:ATTR]", required=False)
@app_option
@run_options
@limit_options
@process_options
@on_target
def worker(
    *,
    target: Target,
    path: str | None,
    app_path: str | None,
    queues: tuple[str, ...],
    loop: str,
    log_format: str,
    log_level: str,
    health_host: str | None,
    health_port: int | None,
    watch: tuple[str, ...],
    check: bool,
    **settings: Any,
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
    headrace worker shop:app --watch
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    chosen = path or app_path
    if chosen is None:
        raise click.UsageError("say which app, as in headrace worker shop:app, or by HEADRACE_APP")
    if health_host is not None and health_port is None:
        raise click.UsageError("--health-host goes with --health-port")
    factory = loop_factory(loop)
    is_supervised = end_with_supervisor(settings["shutdown_timeout"])
    if watch and not is_supervised and not check:
        configure(log_format, log_level)
        sys.exit(supervise(watch))
    app = load_app_for(chosen, target)
    systemd = None if check else Systemd.of_environment()
    # What is left of the options has the names of the worker's arguments.
    made = Worker(app, weights(queues), emit=_emit(log_events(log_level), systemd), **settings)
    if check:
        return
    configure(log_format, log_level)
    logger = structlog.get_logger("headrace")
    with ExitStack() as stack:
        if systemd is not None:
            stack.callback(systemd.close)
        if health_port is not None:
            health = HealthServer(made, host=health_host, port=health_port)
            stack.enter_context(health)
            logger.info(
                "health.listening", worker=made.name, host=health_host or "*", port=health.port
            )
        if is_in_memory(app.url):
            logger.warning(
                "worker.alone", url=app.url, why="only this process can enqueue jobs for it"
            )
        logger.info(
            "worker.connecting",
            worker=made.name,
            app=chosen,
            url=redacted(app.url),
            tenant=app.tenant,
            loop="asyncio" if factory is None else "uvloop",
        )
        run_and_leave(made, asyncio.Runner(loop_factory=factory), serve(made, systemd))


def _emit(log: Emit, systemd: Systemd | None) -> Emit:
    def emit(event: WorkerEvent) -> None:
        log(event)
        if systemd is not None:
            systemd.heard(event)

    return emit


async def serve(worker: Worker, systemd: Systemd | None) -> None:
    """Run the worker until a signal stops it, and keep systemd told if it asked for that.

    Raises:
        StorageError: as `Worker.run`.
    """
    async with anyio.create_task_group() as group:
        if systemd is not None:
            group.start_soon(systemd.attend, worker)
        await run_with_signals(worker)
        group.cancel_scope.cancel()


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
