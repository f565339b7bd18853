"""``headrace worker``: run the jobs of an app's queues, in this process or in several others."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import anyio
import click
import msgspec

from headrace.app import App
from headrace.cli.grouped import GroupedCommand
from headrace.cli.loading import load_app_with_tasks
from headrace.cli.options import (
    Target,
    app_option,
    import_option,
    is_in_memory,
    names_of,
    on_target,
    run,
)
from headrace.cli.output import leading, message_of, note
from headrace.cli.worker_options import (
    GROUPS,
    limit_options,
    process_options,
    run_options,
    slots_of_each,
    told_options,
)
from headrace.events import Emit, LifespanOverdue, WorkerEvent, WorkerStopping
from headrace.job import DEFAULT_LANE, PROCESS_LANE
from headrace.logs.lines import log_events
from headrace.logs.log import write_line
from headrace.logs.setup import LogSetup, set_up
from headrace.plain import shown
from headrace.storage.connect import redacted
from headrace.supervisor.crew import Crew
from headrace.supervisor.leaving import cut_off, run_and_leave
from headrace.supervisor.process_one import stand_in_front
from headrace.supervisor.supervised import Supervision
from headrace.supervisor.supervisor import AFTER_FIRST, Supervisor
from headrace.supervisor.watch import Changes, follow
from headrace.worker.coverage import coverage
from headrace.worker.notify import Systemd
from headrace.worker.signals import Signals
from headrace.worker.vitals import Vitals
from headrace.worker.worker import Worker

_COUNT = re.compile(r"[0-9]{1,9}")

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@click.command(cls=GroupedCommand, groups=GROUPS)
@click.argument("path", metavar="[MODULE:ATTR]", required=False)
@app_option
@import_option
@run_options
@told_options
@limit_options
@process_options
@on_target
def worker(
    *,
    target: Target,
    path: str | None,
    app_path: str | None,
    modules: tuple[str, ...],
    queues: tuple[str, ...],
    lanes: tuple[str, ...],
    loop: str,
    log_format: str,
    log_level: str,
    no_log_setup: bool,
    health_host: str | None,
    health_port: int | None,
    processes: int,
    watch: tuple[str, ...],
    check: bool,
    **settings: Any,
) -> None:
    """Run the jobs of an app, until a signal stops it.

    \b
    TERM, INT, HUP  stop claiming and let running jobs end, for --shutdown-timeout
    the second      put back what still runs now, free of charge
    the third       exit at once with 128 + signal; others take the jobs when the lease ends
    TSTP            claim no more, but go on running, until one of the others

    \b
    headrace worker shop:app
    headrace worker shop.app:app --import shop.tasks
    headrace worker shop:app --queues critical=3,default=1 --concurrency 20
    headrace worker shop:app --lanes default:20,gpu:2
    headrace worker shop:app --processes auto
    headrace worker shop:app --watch
    """  # noqa: D301 (click's own mark of a paragraph that is not to be wrapped)
    chosen = app_path if path is None else path
    if chosen is None:
        raise click.UsageError("say which app, as in headrace worker shop:app, or by HEADRACE_APP")
    if health_host is not None and health_port is None:
        raise click.UsageError("--health-host goes with --health-port")
    factory = loop_factory(loop)
    logs = LogSetup(log_format, log_level)
    settings["lanes"] = lanes_of(lanes)
    supervision = Supervision.of_environment()
    if supervision is None and not check:
        stand_in_front()
        if watch or processes > 1:
            set_up(logs)  # the app is not here to do it
            sys.exit(supervise(processes, watch, health_host, health_port, settings))
    with ExitStack() as stack:
        signals = Signals()
        if not check:
            stack.enter_context(signals)  # the app's import may take long
        if supervision is not None:
            supervision.end_with_it(settings["shutdown_timeout"] + settings["teardown_timeout"])
        systemd = None if check else Systemd.of_environment()
        app = load(chosen, target, modules, None if no_log_setup else logs)
        settings["emit"] = _emit(systemd, is_supervised=supervision is not None)
        made = make(app, weights(queues), processes, settings)
        if check:
            note_coverage(made)
            return
        if systemd is not None:
            stack.callback(systemd.close)
        if supervision is None:
            stack.enter_context(probed(made, made.name, health_host, health_port))
        announce(made, chosen, loop="asyncio" if factory is None else "uvloop")
        signals.obey(made)
        run_and_leave(
            made,
            asyncio.Runner(loop_factory=factory),
            serve(made, systemd, supervision),
            message_of=lambda error: message_of(leading(error)),
        )


def load(path: str, target: Target, modules: Sequence[str], logs: LogSetup | None) -> App[Any]:
    """Import the app, and set logging up unless that is the app's matter or it has done so.

    Raises:
        UsageError: it can't be imported.
    """
    app = load_app_with_tasks(path, target, modules)
    if logs is not None:
        set_up(logs)
    return app


def make(
    app: App[Any], queues: dict[str, int] | None, processes: int, settings: dict[str, Any]
) -> Worker:
    """Return an app's worker.

    Raises:
        UsageError: an option does not fit the app.
    """
    if processes > 1 and is_in_memory(app.url):
        raise click.UsageError(
            f"--processes {processes}: {app.url} is the memory of one process, so that each would "
            "have jobs of its own: name a storage that processes share, or use one process"
        )
    said = (settings["lanes"] or {}).get(PROCESS_LANE)
    if said is None:
        settings["process_slots"] = slots_of_each(settings["process_slots"], processes)
    # What is left of the options has the names of the worker's arguments.
    return Worker(app, queues, **settings)


def note_coverage(worker: Worker) -> None:
    """Print what the worker's choice of queues leaves out."""
    found = coverage(worker.app, worker.queues, worker.lanes)
    for queue, meant in found.without_tasks.items():
        hint = f": perhaps {meant} was meant" if meant else ""
        note(f"Note: no task of the app has the queue {queue}{hint}.")
    if found.left_out:
        note(f"Note: this worker does not serve {', '.join(found.left_out)}, which tasks have.")
    for (queue, lane), tasks in found.lanes.items():
        note(
            f"Note: this worker does not serve the lane {lane} of queue {queue}, which "
            f"{', '.join(tasks)} need: --lanes names those that it serves."
        )


def announce(worker: Worker, path: str, *, loop: str) -> None:
    """Log what is about to run, and where."""
    app = worker.app
    if is_in_memory(app.url):
        why = "only this process can enqueue jobs for it"
        write_line(logging.WARNING, "worker.alone", url=app.url, why=why)
    write_line(
        logging.INFO,
        "worker.connecting",
        worker=worker.name,
        app=path,
        url=redacted(app.url),
        tenant=app.tenant,
        loop=loop,
    )


@contextmanager
def probed(worker: Vitals, name: str, host: str | None, port: int | None) -> Iterator[None]:
    """Answer probes meanwhile, if there is a port for them.

    Raises:
        InvalidOption: it can't be opened.
    """
    if port is None:
        yield
        return
    # It loads the standard library's HTTP server, of which most workers have no need.
    from headrace.worker.health import HealthServer

    with HealthServer(worker, host=host, port=port) as health:
        write_line(
            logging.INFO, "health.listening", worker=name, host=host or "*", port=health.port
        )
        yield


def _emit(systemd: Systemd | None, *, is_supervised: bool) -> Emit:
    log = log_events()

    def emit(event: WorkerEvent) -> None:
        if isinstance(event, WorkerStopping) and not is_supervised:  # else the supervisor says it
            event = msgspec.structs.replace(event, next_signal=AFTER_FIRST)
        log(event)
        if systemd is not None:
            systemd.notify(event)
        if isinstance(event, LifespanOverdue) and event.is_stuck:
            cut_off(event.worker, stuck=0, error=event.error)

    return emit


async def serve(worker: Worker, systemd: Systemd | None, supervision: Supervision | None) -> None:
    """Run the worker until a signal stops it, and keep told who asked for that.

    Raises:
        StorageError: as `Worker.run`.
    """
    async with anyio.create_task_group() as group:
        if systemd is not None:
            group.start_soon(systemd.attend, worker)
        if supervision is not None:
            group.start_soon(supervision.attend, worker)
        await worker.run()
        group.cancel_scope.cancel()


def supervise(
    processes: int,
    folders: Sequence[str],
    health_host: str | None,
    health_port: int | None,
    settings: dict[str, Any],
) -> int:
    """Keep worker processes of this command until a signal ends them; return the worst exit code.

    Raises:
        UsageError: ``--watch`` lacks its extra.
        InvalidOption: the health port can't be opened, or systemd's address is none.
    """
    stall_s = settings["max_loop_stall"]
    crew = Crew(
        processes,
        concurrency=_attempts(settings["lanes"], settings["concurrency"]),
        stall_s=4 * settings["lease"] if stall_s is None else stall_s,
    )
    folders = [os.path.realpath(folder) for folder in folders]
    changes = _open_changes(folders) if folders else None
    if changes is not None:
        # Bytecode counts as that of its source by size and second: two changes within one second,
        # and the workers would run the first.
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    name = settings["name"]
    if name is None:
        name = f"{socket.gethostname()}:{os.getpid()}"
    with ExitStack() as stack:
        systemd = Systemd.of_environment()
        if systemd is not None:
            stack.callback(systemd.close)
        supervisor = Supervisor(
            crew, replaces=not settings["burst"], waits=bool(folders), systemd=systemd
        )
        stack.enter_context(probed(crew, name, health_host, health_port))
        return run(oversee(crew, supervisor, systemd, folders, changes))


def _attempts(lanes: dict[str, int | None] | None, concurrency: int) -> int:
    """Return how many attempts of a worker run at once in the event loop and in threads."""
    said = {DEFAULT_LANE: None} if lanes is None else lanes
    return sum(count or concurrency for lane, count in said.items() if lane != PROCESS_LANE)


async def oversee(
    crew: Crew,
    supervisor: Supervisor,
    systemd: Systemd | None,
    folders: Sequence[str],
    changes: Changes | None,
) -> int:
    """Run the supervisor, the watch if there are changes to follow, and keep systemd told."""
    async with anyio.create_task_group() as group:
        if systemd is not None:
            group.start_soon(systemd.attend, crew, lambda: crew.is_turning)
        if changes is not None:
            await group.start(follow, crew, supervisor, folders, changes)
        code = await supervisor.run()
        group.cancel_scope.cancel()
    return code


def weights(said: Sequence[str]) -> dict[str, int] | None:
    """Return the queues with their weights, None if none are said.

    Raises:
        UsageError: a weight is no whole number, or there is no name.
    """
    found: dict[str, int] = {}
    for part in names_of(said):
        name, sign, weight = part.partition("=")
        if sign and not _COUNT.fullmatch(weight):
            raise click.UsageError(
                f"--queues {shown(part)} is not a queue with a weight: use NAME or NAME=WEIGHT"
            )
        found[name] = int(weight) if sign else 1
    if said and not found:
        raise click.UsageError("--queues names no queue: leave it out, or give a name")
    return found or None


def lanes_of(said: Sequence[str]) -> dict[str, int | None] | None:
    """Return the lanes with their slots, None if none are said.

    Raises:
        UsageError: a number of slots is none, a lane comes twice, or there is no name.
    """
    found: dict[str, int | None] = {}
    for part in names_of(said):
        name, sign, count = part.partition(":")
        if sign and not _COUNT.fullmatch(count):
            raise click.UsageError(
                f"--lanes {shown(part)} is not a lane with its slots: use NAME or NAME:SLOTS"
            )
        if name in found:
            raise click.UsageError(f"--lanes names {shown(name)} twice: say it once")
        found[name] = int(count) if sign else None
    if said and not found:
        raise click.UsageError("--lanes names no lane: leave it out, or give a name")
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
                "--loop uvloop: it is not installed: pip install uvloop"
            ) from None
        return None
    return uvloop.new_event_loop


def _open_changes(folders: Sequence[str]) -> Changes:
    """Return the changes of Python files below some folders; the watch begins with the first read.

    Raises:
        UsageError: the extra is not installed.
    """
    try:
        import watchfiles
    except ImportError:
        raise click.UsageError(
            "--watch: watchfiles is not installed: pip install watchfiles"
        ) from None
    return watchfiles.awatch(
        *folders, watch_filter=watchfiles.PythonFilter(), raise_interrupt=False
    )
