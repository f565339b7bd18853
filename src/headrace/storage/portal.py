"""Storages that know coroutines alone, for code without an event loop: one runs in a thread.

A call takes two switches of threads. Our own storages need none: their verbs block by themselves.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, Self
from weakref import WeakKeyDictionary, WeakSet

from anyio.from_thread import BlockingPortal, start_blocking_portal

from headrace import forks
from headrace.errors import ReplyLost, StorageUnavailable
from headrace.job import check_name
from headrace.storage.base import VERBS, Beater, Channel, Storage
from headrace.storage.connections import Inbox
from headrace.storage.steps import sent
from headrace.storage.values import End


class LoopThread:
    """The event loop of the storages of all tenants, in one process; it ends with the last of them.

    Args:
        opener: returns the storage that runs there, of any tenant.
    """

    def __init__(self, opener: Callable[[], Storage]) -> None:
        self._opener = opener
        self._lock = threading.Lock()
        self._joined: WeakKeyDictionary[PortalStorage, Storage] = WeakKeyDictionary()
        self._waits: WeakSet[Future[Any]] = WeakSet()
        self._running: Any = None
        self._portal: BlockingPortal | None = None
        self._storage: Storage | None = None

    def join(self, user: PortalStorage) -> Storage:
        """Return what runs in the loop for a storage, until that one leaves.

        Raises:
            StorageUnavailable: no thread can be started.
        """
        with self._lock:
            joined = self._joined.get(user)
            if joined is None:
                portal = self._portal or self._start()
                assert self._storage is not None  # noqa: S101
                joined = portal.call(self._storage.for_tenant, user.tenant)
                self._joined[user] = joined
            return joined

    def _start(self) -> BlockingPortal:
        running = start_blocking_portal(name="headrace-portal")
        try:
            portal: BlockingPortal = running.__enter__()
        except RuntimeError as error:
            raise StorageUnavailable(f"no thread for an event loop: {error}") from None
        self._running, self._portal = running, portal
        self._storage = portal.call(self._opener)
        return portal

    def leave(self, user: PortalStorage) -> None:
        """Close what runs there for a storage; with the last one the loop ends."""
        with self._lock:
            joined = self._joined.pop(user, None)
            if joined is None or self._portal is None:
                return
            self._portal.call(joined.aclose)
            if not self._joined:
                for pending in list(self._waits):
                    pending.cancel()
                running, self._running, self._portal = self._running, None, None
                running.__exit__(None, None, None)

    def wait(self, function: Callable[[], Any]) -> Future[Any]:
        """Call what may never return; it ends with the loop.

        Raises:
            StorageUnavailable: the loop has ended.
        """
        pending = self.submit(function)
        self._waits.add(pending)
        return pending

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """Call something in the loop, and await what it returns if that can be.

        The loop does not end before it.

        Raises:
            StorageUnavailable: the loop has ended.
        """
        portal = self._portal
        try:
            if portal is not None:
                return portal.start_task_soon(function)
        except RuntimeError:
            pass  # it ended just now
        raise StorageUnavailable("the storage was closed in another thread")


class PortalStorage:
    """A storage of coroutines as one that blocks; see `BlockingStorage`.

    It has the verbs that the other one has. A channel or waiter of it belongs to its own loop.

    Args:
        opener: returns the other one, of any tenant; not connected yet.
        tenant: whose queues.
    """

    def __init__(self, opener: Callable[[], Storage], tenant: str) -> None:
        self.tenant: str = check_name(tenant, what="tenant")
        self._opener = opener
        self._loops: dict[int, LoopThread] = {}
        found = opener()
        self._verbs = frozenset(v for v in VERBS if callable(getattr(found, v, None)))

    def for_tenant(self, tenant: str) -> Self:
        """Return the storage of another tenant in the same loop."""
        other = copy(self)
        other.tenant = check_name(tenant, what="tenant")
        return other

    def __getattr__(self, name: str) -> Any:
        if name in VERBS and name in self._verbs:
            return partial(self._run, name)
        raise AttributeError(f"{type(self).__name__} has no {name!r}")

    async def _run(self, verb: str, *args: Any, **options: Any) -> Any:
        answer = self.submit(lambda storage: getattr(storage, verb)(*args, **options))
        await sent()
        return _result(answer)

    def submit(self, function: Callable[[Storage], Any]) -> Future[Any]:
        """Call something with the other storage, in its loop, and await what can be awaited.

        Raises:
            StorageUnavailable: no thread can be started for the loop.
        """
        loop = self.loop()
        return loop.submit(partial(function, loop.join(self)))

    def loop(self) -> LoopThread:
        """Return this process's: a fork has the objects of its parent's, and no thread."""
        _open.add(self)
        number = forks.count()
        loop = self._loops.get(number)
        return loop or self._loops.setdefault(number, LoopThread(self._opener))

    def open_inbox(self) -> Inbox:
        """Return a new inbox over a channel of the other storage."""
        channel = _result(self.submit(lambda storage: storage.open_channel()))
        return PortalInbox(self, channel)

    def open_beater(self, *, timeout_s: float) -> Beater:
        """Return a beater of the other storage."""
        beater: Beater = _result(
            self.submit(lambda storage: storage.open_beater(timeout_s=timeout_s))
        )
        return beater

    @contextmanager
    def in_line(self) -> Iterator[Self]:
        """Return this storage: its loop begins calls in the order in which they come."""
        yield self

    async def aclose(self) -> None:
        """Leave the loop, which ends with its last user."""
        self.close()

    def close(self) -> None:
        """Do the same."""
        loop = self._loops.get(forks.count())
        if loop is not None:
            loop.leave(self)


class PortalInbox:
    """An inbox over a channel that belongs to the loop of its storage."""

    def __init__(self, storage: PortalStorage, channel: Channel) -> None:
        self.name: str = channel.name
        self._storage = storage
        self._channel = channel
        self._forks = forks.count()
        self._next: Future[Any] | None = None

    def receive(self, timeout_s: float) -> End | None:
        """Block until the next end; None: nothing came in time, or it has just connected.

        Raises:
            StorageError: as `Channel.receive`, or the loop is that of a process which forked this
                one.
        """
        if self._forks != forks.count():
            raise StorageUnavailable("the inbox was opened before a fork: open one of this process")
        # It goes on from call to call, so that no end is lost between two.
        if self._next is None:
            self._next = self._storage.loop().wait(self._channel.receive)
        done, _ = wait([self._next], max(0.0, timeout_s))
        if not done:
            return None
        received, self._next = self._next, None
        end: End | None = _result(received)
        return end

    def close(self) -> None:
        """Close the channel."""
        self._next = None
        if self._forks == forks.count():
            _result(self._storage.submit(lambda _: self._channel.aclose()))


def _result(answer: Future[Any]) -> Any:
    try:
        return answer.result()
    except CancelledError:
        raise ReplyLost("the storage was closed meanwhile") from None
    except BaseException:
        answer.cancel()  # where this thread was interrupted
        raise


_open: WeakSet[PortalStorage] = WeakSet()


def _close_all() -> None:
    for storage in list(_open):
        storage.close()


# Else the loop would be frozen in the middle when the process ends.
atexit.register(_close_all)
