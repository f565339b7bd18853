"""A slot's process shares its worker's end, and nothing that the worker has open."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from tests.apps import process_app as handlers
from tests.support.processes import WorkerProcess, is_alive
from tests.support.until import patience, until
from tests.worker.slots import children, claimed, crew_of


async def test_a_worker_that_is_killed_takes_its_processes_with_it(tmp_path: Path) -> None:
    """G14: even a SIGKILL of the parent leaves no child, busy, idle or deaf; RELIABILITY §3 40."""
    program = WorkerProcess.module(
        "tests.apps.slots_parent", "serve", str(tmp_path), directory=tmp_path
    )
    with program as parent:
        await until((tmp_path / "pids").exists, within=40, what="both children are there")
        started = psutil.Process(parent.pid).children(recursive=True)
        slots = {int(word) for word in (tmp_path / "children").read_text().split()}
        assert len(slots) == 2
        assert slots <= {process.pid for process in started}
        parent.kill()
        killed_at = time.monotonic()
        await until(
            lambda: not any(is_alive(process) for process in started),
            within=30,
            what="all processes are gone",
        )
        assert time.monotonic() - killed_at < patience(20), (
            "5 seconds when the machine does nothing else"
        )


@pytest.mark.parametrize("how", ["finish", "abandon"])
async def test_a_program_ends_with_all_its_processes_and_without_a_word(
    how: str, tmp_path: Path
) -> None:
    program = WorkerProcess.module(
        "tests.apps.slots_parent", how, str(tmp_path), directory=tmp_path, env=NO_LOOP_WARNING
    )
    with program as parent:
        await until((tmp_path / "pids").exists, within=40, what="both children are there")
        assert await parent.wait(30) == 0
        assert parent.stderr == "", "neither a traceback nor a leaked semaphore"
        pids = (tmp_path / "children").read_text().split()
        assert [pid for pid in pids if psutil.pid_exists(int(pid))] == []


NO_LOOP_WARNING = {"PYTHONWARNINGS": "error,ignore::ResourceWarning"}


async def test_an_interrupt_is_the_worker_s_alone() -> None:
    # RELIABILITY §3 45: Ctrl-C reaches the whole group, also while a child starts up.
    async with crew_of(handlers.app) as crew:

        def interrupted() -> bool:
            for process in children():
                process.send_signal(signal.SIGINT)
            return bool(crew.offers)

        await until(interrupted, within=40, what="the child is warm")
        for process in children():
            process.send_signal(signal.SIGINT)
        assert await (await crew.start(claimed(handlers.add, {"a": 1}))).result() == b"3"
        assert crew.log.events == []


async def test_interrupts_of_the_worker_are_not_lost_while_it_starts_a_process() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    async with crew_of(handlers.app) as crew:
        await crew.full()
        assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before


async def test_a_signal_to_the_whole_service_stops_no_job_before_the_worker_does(
    tmp_path: Path,
) -> None:
    """G14: systemd sends SIGTERM to all processes of a service, and running jobs get the grace."""
    go, here = tmp_path / "go", tmp_path / "here"
    async with crew_of(handlers.app, slots=2) as crew:
        await crew.full()
        run = await crew.start(claimed(handlers.wait_for, {"path": str(here), "go": str(go)}))
        await until(here.exists, within=20)
        for number in (signal.SIGTERM, signal.SIGINT):
            for process in children():
                process.send_signal(number)
        go.touch()
        assert await run.result()
        await crew.full()
        assert crew.log.events == []


async def test_a_child_takes_an_interrupt_and_does_nothing_about_it() -> None:
    async with crew_of(handlers.app) as crew:
        await crew.full()
        (process,) = children()
        masks = signals_of(process.pid)
        bit = 1 << (signal.SIGINT - 1)
        assert int(masks["SigCgt"], 16) & bit
        assert not int(masks["SigIgn"], 16) & bit, "a program would inherit that"
        assert not int(masks["SigBlk"], 16) & bit, "and that"


def signals_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t") for line in lines if line.startswith("Sig"))


def descriptors(pid: int) -> list[str]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(entry))
        except FileNotFoundError:
            continue
    return found


async def test_a_child_holds_nothing_that_the_worker_has_open(tmp_path: Path) -> None:
    # RELIABILITY §6.14: a second process on one Redis connection or SQLite handle spoils both.
    database = sqlite3.connect(tmp_path / "jobs.db")
    database.execute("CREATE TABLE job (id)")
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = socket.create_connection(server.getsockname())
        with line, (tmp_path / "log").open("w") as log:
            for inheritable in (line.fileno(), log.fileno()):
                os.set_inheritable(inheritable, True)  # noqa: FBT003 (its only form)
            async with crew_of(handlers.app, slots=2) as crew:
                await crew.full()
                ours = {link for link in descriptors(os.getpid()) if link.startswith("socket:")}
                for process in children():
                    theirs = descriptors(process.pid)
                    sockets = [link for link in theirs if link.startswith("socket:")]
                    assert len(sockets) == 1, "its line to the worker"
                    assert not ours & set(sockets)
                    assert [link for link in theirs if link.startswith(str(tmp_path))] == []
    database.close()


async def test_a_program_that_a_handler_starts_does_not_hold_the_line_to_the_worker() -> None:
    async with crew_of(handlers.app) as crew:
        run = await crew.start(claimed(handlers.look_into_a_program))
        inherited = msgspec.json.decode(await run.result())
        assert "socket:" not in inherited


async def test_no_process_waits_to_be_waited_for() -> None:
    async with crew_of(handlers.app, slots=2) as crew:
        for _ in range(2):
            await crew.run(claimed(handlers.die, {"how": "exit"}))
        await crew.full()
        states = [process.status() for process in psutil.Process().children(recursive=True)]
        assert psutil.STATUS_ZOMBIE not in states


def test_a_program_that_starts_its_worker_without_a_guard_is_told_so(tmp_path: Path) -> None:
    # Each child imports the program, and would begin it all over again.
    program = tmp_path / "unguarded.py"
    program.write_text(UNGUARDED)
    done = subprocess.run(
        [sys.executable, program],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0
    assert done.stdout == "the process ended with status 1\n"
    assert 'start the worker under `if __name__ == "__main__":`' in done.stderr


UNGUARDED = """
import asyncio
from headrace import App, Worker
from headrace.events import ProcessFailed, WorkerEvent

app = App("memory://")

@app.task(executor="process")
def work() -> None: ...

def hear(event: WorkerEvent) -> None:
    if isinstance(event, ProcessFailed):
        print(event.error)
        worker.stop()

worker = Worker(app, process_slots=1, emit=hear)
asyncio.run(worker.run())
"""
