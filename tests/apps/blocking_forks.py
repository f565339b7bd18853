"""Processes that fork while they use a blocking storage: ``python -m ... URL SCENARIO...``.

Each scenario has a storage of its own, and says its name when every job was counted.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from multiprocessing.context import BaseContext

import pytest

from headrace.errors import StorageRefused, StorageUnavailable
from headrace.storage import BlockingStorage, CallId, EnqueueOutcome, JobRequest, open_blocking
from headrace.storage.redis.calls.call import command
from headrace.storage.redis.storage import BlockingRedisStorage
from headrace.storage.steps import at_once

Opened = Callable[[], BlockingStorage]

QUEUE = "mail"
JOBS = 20


class Producer:
    """Enqueues jobs, one a call."""

    def __init__(self, storage: BlockingStorage) -> None:
        self._storage = storage
        self._client = secrets.token_hex(8)
        self._number = 0

    def enqueue(self, count: int = JOBS) -> None:
        for _ in range(count):
            self._number += 1
            job = JobRequest(id=secrets.token_hex(8), queue=QUEUE, task="send", payload=b"[]")
            call = CallId(self._client, self._number)
            found = at_once(self._storage.enqueue(QUEUE, [job], call=call))
            assert found == [EnqueueOutcome.QUEUED], found


def enqueue(storage: BlockingStorage, count: int = JOBS) -> None:
    Producer(storage).enqueue(count)


def enqueue_in_threads(storage: BlockingStorage) -> None:
    threads = [threading.Thread(target=enqueue, args=(storage,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def queued(storage: BlockingStorage) -> int:
    return at_once(storage.stats(QUEUE)).queued


def in_child(work: Callable[[], object]) -> int:
    """Run it in a fork, and return the child's id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended_well(*children: int) -> None:
    for child in children:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0


def before_use(opened: Opened) -> None:
    """Both sides use what was opened before, and not used."""
    storage = opened()
    child = in_child(lambda: enqueue(storage))
    enqueue(storage)
    ended_well(child)
    assert queued(storage) == 2 * JOBS


def after_use(opened: Opened) -> None:
    """The parent closes its storage while the child still works with its own."""
    storage = opened()
    enqueue(storage)
    goes_on, may_go_on = os.pipe()
    has_begun, begins = os.pipe()

    def work() -> None:
        enqueue(storage)
        os.write(begins, b"x")
        os.read(goes_on, 1)
        enqueue(storage)
        assert queued(storage) == 4 * JOBS
        storage.close()

    child = in_child(work)
    os.read(has_begun, 1)
    enqueue(storage)
    storage.close()
    os.write(may_go_on, b"x")
    ended_well(child)
    assert queued(storage) == 4 * JOBS


def in_call(opened: Opened) -> None:
    """Another thread has calls in progress all the while."""
    storage = opened()
    is_over = threading.Event()
    done: list[int] = []

    def keep_on() -> None:
        producer = Producer(storage)
        while not is_over.is_set():
            producer.enqueue(1)
            done.append(1)

    thread = threading.Thread(target=keep_on)
    thread.start()
    try:
        ended_well(*[in_child(lambda: enqueue(storage)) for _ in range(4)])
    finally:
        is_over.set()
        thread.join()
    assert queued(storage) == 4 * JOBS + len(done)


def prefork(opened: Opened) -> None:
    """A master that has loaded and used everything forks workers that have threads."""
    storage = opened()
    enqueue(storage)
    workers = [in_child(lambda: enqueue_in_threads(storage)) for _ in range(3)]
    ended_well(*workers)
    assert queued(storage) == JOBS + 3 * 4 * JOBS


def grandchild(opened: Opened) -> None:
    """A fork forks again."""
    storage = opened()
    enqueue(storage)

    def work() -> None:
        enqueue(storage)
        ended_well(in_child(lambda: enqueue(storage)))
        enqueue(storage)

    ended_well(in_child(work))
    assert queued(storage) == 4 * JOBS


def by_another(opened: Opened) -> None:
    enqueue(opened())


def with_processes(context: BaseContext, opened: Opened) -> None:
    storage = opened()
    enqueue(storage)
    processes = [context.Process(target=by_another, args=(opened,)) for _ in range(2)]  # type: ignore[attr-defined]  # typeshed has it on each context
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert queued(storage) == 3 * JOBS


def spawn(opened: Opened) -> None:
    """`multiprocessing` starts others anew."""
    with_processes(multiprocessing.get_context("spawn"), opened)


def multiprocessing_fork(opened: Opened) -> None:
    """`multiprocessing` forks."""
    with_processes(multiprocessing.get_context("fork"), opened)


def inbox(opened: Opened) -> None:
    """A fork hears nothing on its parent's connection, and the parent goes on hearing."""
    storage = opened()
    ours = storage.open_inbox()
    assert ours.receive(5) is None

    def work() -> None:
        try:
            ours.receive(0.01)
        except StorageUnavailable:
            assert not isinstance(storage, BlockingRedisStorage)
        ours.close()

    ended_well(in_child(work))
    job = JobRequest(id="x", queue=QUEUE, task="send", payload=b"[]", channel=ours.name)
    at_once(storage.enqueue(QUEUE, [job], call=CallId("c", 1)))
    at_once(storage.cancel(QUEUE, ["x"]))
    end = ours.receive(5)
    assert end is not None
    assert end.id == "x"


def connection(opened: Opened) -> None:
    """A fork leaves its parent's connection as it is, and has another."""
    storage = opened()
    assert isinstance(storage, BlockingRedisStorage)
    who = command("who", "", "CLIENT", "ID", read=int)
    ours = at_once(storage.shared.client.run(who))

    def work() -> None:
        assert at_once(storage.shared.client.run(who)) != ours
        storage.close()

    ended_well(in_child(work))
    ended_well(in_child(storage.close))
    assert at_once(storage.shared.client.run(who)) == ours


def memory(opened: Opened) -> None:
    """The memory of the parent can't be used."""
    storage = opened()
    enqueue(storage)

    def work() -> None:
        for refused in (storage, opened()):
            with pytest.raises(StorageRefused, match=r"forked this one.*file:///"):
                enqueue(refused)
        enqueue(open_blocking("memory://another"))

    ended_well(in_child(work))
    enqueue(storage)
    assert queued(storage) == 2 * JOBS


SCENARIOS = (
    *(before_use, after_use, in_call, prefork, grandchild, spawn, multiprocessing_fork, inbox),
    *(connection, memory),
)


def opener(url: str, name: str) -> Opened:
    """Return what opens the empty storage of a scenario."""
    has_folders = url.startswith(("file:", "acme:"))
    return partial(open_blocking, f"{url}/{name}" if has_folders else url, tenant=name)


if __name__ == "__main__":
    named = {scenario.__name__: scenario for scenario in SCENARIOS}
    for name in sys.argv[2:]:
        named[name](opener(sys.argv[1], name))
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
