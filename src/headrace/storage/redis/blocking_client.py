"""The client of any number of threads: a connection for each call in progress, kept for the next.

Nothing is locked, so that a fork in the middle of another thread's call leaves nothing locked.
"""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from headrace.storage.redis.calls.call import Call
from headrace.storage.redis.client import REPLY_TIMEOUT_S, Address
from headrace.storage.redis.library import Library
from headrace.storage.redis.runner import Runner, check_server
from headrace.storage.redis.socket import Socket
from headrace.storage.steps import at_once, sent


class BlockingClient(Runner):
    """Runs calls in the thread that makes them; `at_once` runs its coroutines.

    Args:
        address: of the server.
        library: has the functions.
        allow_eviction: use a server that may evict keys.
        timeout_s: how long it may take to connect, and how long a reply.
        client_name: of its connections, unless the URL says another.
    """

    def __init__(
        self,
        address: Address,
        library: Library,
        *,
        allow_eviction: bool,
        timeout_s: float = REPLY_TIMEOUT_S,
        client_name: str = "headrace",
    ) -> None:
        super().__init__(library)
        self._address = address
        self._allow_eviction = allow_eviction
        self._timeout_s = timeout_s
        self._client_name = client_name
        self._idle: deque[Socket] = deque()
        _clients.add(self)

    async def send(self, call: Call[Any]) -> Any:
        """Send a call and block until its reply is there."""
        idle = self._idle
        socket = self._take(idle)
        try:
            return socket.send(self.words(call)).wait()
        finally:
            _give_back(socket, idle)

    @contextmanager
    def in_line(self) -> Iterator[Runner]:
        """Return a client of one thread, over one connection that is free again at the end."""
        idle = self._idle
        line = _Line(self.library, take=lambda: self._take(idle))
        try:
            yield line
        finally:
            if line.socket is not None:
                _give_back(line.socket, idle)

    def _take(self, idle: deque[Socket]) -> Socket:
        """Return the connection that was used last, a new one if none is idle."""
        while True:
            try:
                socket = idle.pop()
            except IndexError:
                return self._open()
            if socket.is_silent:
                return socket
            socket.close()

    def _open(self) -> Socket:
        socket = self._address.open_socket(timeout_s=self._timeout_s, client_name=self._client_name)
        at_once(check_server(socket.call, allow_eviction=self._allow_eviction))
        return socket

    def close(self) -> None:
        """Close what is idle; what is in use is closed after its call."""
        idle, self._idle = self._idle, deque()
        while idle:
            idle.pop().close()

    async def aclose(self) -> None:
        """Close the connections."""
        self.close()


class _Line(Runner):
    """Sends calls in order on one connection, and stops between each and its reply."""

    def __init__(self, library: Library, *, take: Callable[[], Socket]) -> None:
        super().__init__(library)
        self._take = take
        self.socket: Socket | None = None

    async def send(self, call: Call[Any]) -> Any:
        socket = self.socket
        if socket is None or not socket.is_open:
            socket = self.socket = self._take()
        pending = socket.send(self.words(call))
        await sent()
        return pending.wait()

    async def aclose(self) -> None:
        """Nothing: it ends with its context."""


def _give_back(socket: Socket, idle: deque[Socket]) -> None:
    if socket.is_idle:
        idle.append(socket)
    else:
        socket.close()


_clients: WeakSet[BlockingClient] = WeakSet()


def _close_all() -> None:
    for client in list(_clients):
        client.close()


# Else each open connection would be warned of when the process ends.
atexit.register(_close_all)
