"""Programs that use a sync app in ways that break careless clients; each says how it went."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

from headrace import Job, StorageRefused, SyncApp, SyncTask
from tests.apps.sync_app import app, bound, double, thrice


def show(*lines: object) -> None:
    """Write lines, at once."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def in_child(number: int) -> str:
    """Enqueue in a process of a pool."""
    return double.enqueue(number).id


def by_task(task: SyncTask[[int], int]) -> str:
    """Enqueue a task that was sent there."""
    return task.enqueue(1).id


def by_app(app: SyncApp[Any]) -> str:
    """Enqueue with an app that was sent there."""
    return app.enqueue("anything", queue="work").id


def forks_before_use() -> None:
    """Fork workers first, as a server does that forks; each enqueues, as does the parent."""
    _fork_and_enqueue()


def forks_after_use() -> None:
    """Fork workers from a process that has used the app."""
    double.enqueue(0)
    app.enqueue_many(double.job(n) for n in range(600))
    _fork_and_enqueue()


def _fork_and_enqueue() -> None:
    children = []
    for number in range(4):
        pid = os.fork()
        if not pid:
            ids = [double.enqueue(number).id for _ in range(25)]
            show(*ids)
            os._exit(0)
        children.append(pid)
    show(*(double.enqueue(9).id for _ in range(25)))
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0


def forks_in_a_pool() -> None:
    """Use the app by the processes of `multiprocessing`, forked and spawned."""
    double.enqueue(0)
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            show(*pool.map(in_child, range(10)))
            show(*pool.map(by_task, [double, thrice]))
            show(*pool.map(by_app, [app, bound]))


def forks_a_memory() -> None:
    """Use what is in the memory of a parent."""
    double.enqueue(1)
    pid = os.fork()
    if not pid:
        try:
            double.enqueue(2)
        except StorageRefused as error:
            show(error)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    double.enqueue(3)
    show(app.queue("work").stats().queued)


def ends_in_use() -> None:
    """End with connections open, also those of a wait, and threads that use them."""
    job = double.enqueue(1)
    thread = threading.Thread(target=job.result, daemon=True)
    thread.start()
    app.enqueue_many(double.job(n) for n in range(600))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(double.enqueue, range(100)))
    show("done")


def _interrupt(_number: int, frame: FrameType | None) -> None:
    # In the middle of a call, and not where the last interrupt is caught.
    if frame is None or frame.f_code is not is_interrupted.__code__:
        raise KeyboardInterrupt


def is_interrupted() -> None:
    """Be interrupted again and again, in the middle of calls; say what was stored for sure."""
    signal.signal(signal.SIGALRM, _interrupt)
    stored = [double.enqueue(0).id]
    ends_at = time.monotonic() + 1.5
    while time.monotonic() < ends_at:
        for work in (
            lambda: stored.append(double.enqueue(1).id),
            lambda: stored.extend([job.id for job in app.enqueue_many(_jobs())]),
            lambda: app.job(stored[0], queue="work").result(),
        ):
            try:
                # Again and again, since one that comes in a finalizer is ignored.
                signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
                while True:
                    work()
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
    stored.append(double.enqueue(1).id)
    show(*stored)


def _jobs() -> Iterator[Job[int]]:
    return (double.job(n) for n in range(40))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
