"""Where a server is, and the client of one event loop over one shared connection."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from typing import Any

import redis
from redis.asyncio import Connection as TcpConnection
from redis.asyncio import (
    ConnectionPool,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.errors import InvalidOption, StorageError
from headrace.storage.redis.calls.call import Call
from headrace.storage.redis.calls.producer import subscribe
from headrace.storage.redis.connection import CONNECT_TIMEOUT_S, Connection, Subscription
from headrace.storage.redis.library import Library
from headrace.storage.redis.location import TLS_PATHS, location_of
from headrace.storage.redis.runner import Runner, check_server
from headrace.storage.redis.socket import Socket, SubscribedSocket, TlsConnection
from headrace.storage.steps import at_once

_CLASSES: dict[str, type[AbstractConnection]] = {
    "tcp": TcpConnection,
    "tls": SSLConnection,
    "unix": UnixDomainSocketConnection,
}
_BLOCKING_CLASSES: dict[str, Callable[..., redis.connection.AbstractConnection]] = {
    "tcp": redis.Connection,
    "tls": TlsConnection,
    "unix": redis.UnixDomainSocketConnection,
}

REPLY_TIMEOUT_S = 5.0
RECONNECT_PAUSE_S = 0.05


class Address:
    """Where a server is, and how to open connections to it.

    Raises:
        InvalidOption: the URL is not valid, or a file that it names for TLS can't be used.
    """

    def __init__(self, url: str) -> None:
        self._location = location_of(url)
        self._pool = ConnectionPool(
            connection_class=_CLASSES[self._location.kind],
            socket_timeout=None,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            **self._settings("headrace"),
        )
        self._tls: dict[str, Any] = {}
        if self._location.kind == "tls":
            self._tls["context"] = self._tls_context()

    def _settings(self, client_name: str) -> dict[str, Any]:
        # RESP2: replies are the same, and a message on a channel is a plain array.
        settings = {
            "client_name": client_name,
            **self._location.settings,
            "protocol": 2,
            "driver_info": None,
            "retry": Retry(NoBackoff(), 0),
        }
        # redis-py refuses a TCP option for a Unix socket.
        return settings if self._location.kind == "unix" else {**settings, "socket_keepalive": True}

    def _tls_context(self) -> ssl.SSLContext:
        named = [name for name in TLS_PATHS if name in self._location.settings]
        for name in named:
            path = self._location.settings[name]
            if not os.access(path, os.R_OK):
                raise InvalidOption(f"the storage URL's {name}={path!r} can't be read")
        try:
            connection: Any = self._pool.make_connection()
            context: ssl.SSLContext = connection.ssl_context.get()
        except (OSError, ValueError) as error:  # ssl's own is an OSError
            said = ", ".join(named) or "settings for TLS"
            raise InvalidOption(f"the storage URL's {said} can't be used: {error}") from None
        return context

    async def open_connection(self, *, reply_timeout_s: float = REPLY_TIMEOUT_S) -> Connection:
        """Return a new open connection for calls."""
        connection = Connection(
            self._pool.make_connection(), self._location.where, reply_timeout_s=reply_timeout_s
        )
        await connection.open()
        return connection

    async def open_subscription(self, channel: str) -> Subscription:
        """Return a new connection that is subscribed to a channel."""
        connection = Subscription(
            self._pool.make_connection(), self._location.where, reply_timeout_s=REPLY_TIMEOUT_S
        )
        await connection.open()
        try:
            await connection.call(*subscribe(channel).words)
        except BaseException:
            await connection.aclose()
            raise
        return connection

    def open_socket(
        self, *, timeout_s: float = REPLY_TIMEOUT_S, client_name: str = "headrace"
    ) -> Socket:
        """Return a new open connection that blocks.

        Args:
            timeout_s: how long it may take to connect, and how long a reply.
            client_name: of the connection, unless the URL says another.
        """
        connection = self._blocking(timeout_s, client_name)
        return Socket(connection, self._location.where, timeout_s=timeout_s)

    def open_subscribed_socket(self, channel: str) -> SubscribedSocket:
        """Return a new connection that blocks and is subscribed to a channel."""
        blocking = self._blocking(REPLY_TIMEOUT_S, "headrace")
        connection = SubscribedSocket(blocking, self._location.where, timeout_s=REPLY_TIMEOUT_S)
        at_once(connection.call(*subscribe(channel).words))
        return connection

    def _blocking(self, timeout_s: float, client_name: str) -> redis.connection.AbstractConnection:
        return _BLOCKING_CLASSES[self._location.kind](
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            **self._settings(client_name),
            **self._tls,
        )


class AsyncClient(Runner):
    """Runs calls of one event loop over one connection, opened on use and reopened when lost."""

    def __init__(self, address: Address, library: Library, *, allow_eviction: bool) -> None:
        super().__init__(library)
        self._address = address
        self._allow_eviction = allow_eviction
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._last_failure: tuple[float, StorageError] | None = None

    async def send(self, call: Call[Any]) -> Any:
        """Send a call on the shared connection."""
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = await self._open()
        return await connection.call(*self.words(call))

    async def _open(self) -> Connection:
        async with self._opening:
            if self._connection is not None and self._connection.is_open:
                return self._connection
            now = asyncio.get_running_loop().time()
            # A crowd that waits for a dead server must not try to connect one after another.
            if self._last_failure and now - self._last_failure[0] < RECONNECT_PAUSE_S:
                failure = self._last_failure[1]
                raise type(failure)(str(failure))
            try:
                connection = await self._address.open_connection()
                try:
                    await check_server(connection.call, allow_eviction=self._allow_eviction)
                except BaseException:
                    await connection.aclose()
                    raise
            except StorageError as error:
                self._last_failure = (asyncio.get_running_loop().time(), error)
                raise
            self._connection = connection
            return connection

    async def aclose(self) -> None:
        """Close the connection."""
        async with self._opening:
            if self._connection is not None:
                await self._connection.aclose()
                self._connection = None
