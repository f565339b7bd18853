"""The app of the tests of forks: its handlers fork the worker's process in every usual way."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from headrace import App
from tests.apps.operate_app import is_released, write

app = App()
QUEUE = "work"
_fork = multiprocessing.get_context("fork")


def nothing() -> None:
    """End at once."""


@app.task(name="crunch", queue=QUEUE, executor="process")
def crunch(note: str) -> str:
    """Go on in a process slot until it is released."""
    write(note, "started")
    while not is_released(note):
        time.sleep(0.01)
    return "crunched"


@app.task(name="fork_in_thread", queue=QUEUE)
def fork_in_thread() -> int | None:
    """Fork by multiprocessing, and return the child's exit code."""
    process = _fork.Process(target=nothing)
    process.start()
    process.join()
    return process.exitcode


@app.task(name="fork_in_loop", queue=QUEUE)
async def fork_in_loop() -> int:
    """Fork by a pool of processes, in the event loop's thread."""
    with ProcessPoolExecutor(1, mp_context=_fork) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, abs, -7)


@app.task(name="fork_bare", queue=QUEUE)
def fork_bare() -> int:
    """Fork as C programs do; the child returns into what it does not own."""
    pid = os.fork()
    return 0 if pid == 0 else os.waitpid(pid, 0)[1]


@app.task(name="fork_in_slot", queue=QUEUE, executor="process")
def fork_in_slot() -> int | None:
    """Fork in a process slot, and return how SIGTERM ends the child."""
    return _killed_by(signal.SIGTERM)


@app.task(name="terminate", queue=QUEUE)
def terminate(number: int) -> int | None:
    """Fork in a thread, and return how a signal ends the child."""
    return _killed_by(number)


@app.task(name="terminate_in_loop", queue=QUEUE)
async def terminate_in_loop(number: int) -> int | None:
    """Do the same in the event loop's thread."""
    return _killed_by(number)


def _killed_by(number: int) -> int | None:
    process = _fork.Process(target=time.sleep, args=(3600,))
    process.start()
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join()
    return process.exitcode


@app.task(name="pool", queue=QUEUE)
def pool(note: str) -> str:
    """Give up what a pool of processes does, and with it the pool."""
    with _fork.Pool(2) as workers:
        Path(note).write_text(" ".join(str(p.pid) for p in multiprocessing.active_children()))
        try:
            workers.apply_async(time.sleep, (3600,)).get(timeout=0.2)
        except multiprocessing.TimeoutError:
            return "gave up"
    return "slept"


@app.task(name="leave", queue=QUEUE)
def leave(note: str) -> None:
    """Leave a process behind."""
    process = _fork.Process(target=time.sleep, args=(3600,))
    process.start()
    Path(note).write_text(str(process.pid))
