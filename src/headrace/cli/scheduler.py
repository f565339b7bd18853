"""``headrace scheduler``: fire schedules without running jobs."""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from typing import Any

import anyio
import click

from headrace.app import App
from headrace.cli.loading import load_app_with_tasks
from headrace.cli.options import (
    Target,
    app_option,
    check_shared,
    import_option,
    on_target,
    option,
    run,
)
from headrace.cli.worker import probed
from headrace.cli.worker_options import told_options
from headrace.logs.log import write_line
from headrace.logs.setup import LogSetup, set_up
from headrace.scheduler.scheduler import Scheduler
from headrace.storage.connect import redacted
from headrace.supervisor.process_one import stand_in_front
from headrace.worker.notify import Systemd
from headrace.worker.signals import stopping


class SchedulerVitals:
    """How a scheduler is, as probes and service managers ask: it runs no jobs.

    Args:
        scheduler: which.
    """

    active = 0
    stuck = 0
    loop_lag = 0.0
    concurrency = 0

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    @property
    def is_alive(self) -> bool:
        """Whether its event loop turns."""
        return self._scheduler.is_alive

    @property
    def is_ready(self) -> bool:
        """Whether it fires what is due, and is not stopping."""
        return self._scheduler.is_ready


@click.command
@click.argument("path", metavar="[MODULE:ATTR]", required=False)
@app_option
@import_option
@option(
    "--name",
    envvar="HEADRACE_SCHEDULER_NAME",
    show_envvar=True,
    metavar="TEXT",
    help="Shown in logs.  [default: host:pid]",
)
@told_options
@on_target
def scheduler(
    *,
    target: Target,
    path: str | None,
    app_path: str | None,
    modules: tuple[str, ...],
    name: str | None,
    log_format: str,
    log_level: str,
    no_log_setup: bool,
    health_host: str | None,
    health_port: int | None,
) -> None:
    """Fire schedules when they are due, and run no jobs, until a signal stops it.

    Every worker does so too, unless it has --no-scheduler. Any number of them may run at once.

    With an app it also stores what that declares. Without one it fires what is stored.

    \b
    headrace scheduler shop:app
    headrace scheduler --url redis://localhost --tenant shop
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    if health_host is not None and health_port is None:
        raise click.UsageError("--health-host goes with --health-port")
    chosen = app_path if path is None else path
    stand_in_front()
    made = make(chosen, target, modules, name)
    if not no_log_setup:
        set_up(LogSetup(log_format, log_level))
    app = made.app
    write_line(
        logging.INFO,
        "scheduler.connecting",
        scheduler=made.name,
        app=chosen or "",
        url=redacted(app.url),
        tenant=app.tenant,
    )
    with ExitStack() as stack:
        systemd = Systemd.of_environment()
        if systemd is not None:
            stack.callback(systemd.close)
        vitals = SchedulerVitals(made)
        stack.enter_context(probed(vitals, made.name, health_host, health_port))
        run(serve(made, vitals, systemd))


def make(path: str | None, target: Target, modules: tuple[str, ...], name: str | None) -> Scheduler:
    """Return the scheduler of an app, or of a tenant.

    Raises:
        UsageError: the app can't be imported, or other processes can't use the storage.
    """
    if path is not None:
        app = load_app_with_tasks(path, target, modules)
    elif modules:
        raise click.UsageError("--import goes with an app, as in headrace scheduler shop:app")
    else:
        app = App[Any](
            target.url_or_default, tenant=target.tenant, allow_eviction=target.allow_eviction
        )
    check_shared(app.url)
    return Scheduler(app, declares=path is not None, name=name)


async def serve(made: Scheduler, vitals: SchedulerVitals, systemd: Systemd | None) -> None:
    """Run the scheduler until a signal stops it.

    Raises:
        StorageError: as `Scheduler.run`.
    """

    def stop() -> None:
        if systemd is not None:
            systemd.stopping(0)
        made.stop()

    loop = asyncio.get_running_loop()
    for number in stopping():
        loop.add_signal_handler(number, stop)
    async with anyio.create_task_group() as group:
        if systemd is not None:
            group.start_soon(systemd.attend, vitals)
        await made.run()
        group.cancel_scope.cancel()
