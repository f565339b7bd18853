"""Runs `Call`s on a server: an async client over one shared connection, and a sync one for threads.

Both load the library where it is missing and translate errors; neither ever repeats a call that may
have been executed, since only the caller can repeat it with the same number.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, TypeVar

import redis
from redis.asyncio import ConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from headrace.errors import (
    InvalidOption,
    ReplyLost,
    StorageError,
    StorageFault,
    StorageRefused,
)
from headrace.storage.redis.calls import READS, Call
from headrace.storage.redis.errors import (
    FunctionMissing,
    LibraryKnown,
    NotPermitted,
    translate,
    unsent,
)
from headrace.storage.redis.library import Library
from headrace.storage.redis.server import ServerInfo, parse_info, refusal, server_info
from headrace.storage.redis.wire import CONNECT_TIMEOUT_S, Subscription, Wire

T = TypeVar("T")

REPLY_TIMEOUT_S = 5.0
RECONNECT_PAUSE_S = 0.05


class Address:
    """Where a server is, and how to open connections to it.

    Raises:
        InvalidOption: redis-py can't read the URL.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        try:
            self._pool = ConnectionPool.from_url(
                url,
                socket_timeout=None,
                socket_connect_timeout=CONNECT_TIMEOUT_S,
                client_name="headrace",
                **self._settings(),
            )
        except ValueError as error:
            raise InvalidOption(f"the storage URL can't be read: {error}") from None

    def _settings(self) -> dict[str, Any]:
        # RESP2: replies are the same, and a message on a channel is a plain array.
        settings = {"protocol": 2, "driver_info": None, "retry": Retry(NoBackoff(), 0)}
        # redis-py refuses a TCP option for a Unix socket.
        return settings if self._url.startswith("unix:") else {**settings, "socket_keepalive": True}

    async def open_wire(self, *, reply_timeout_s: float = REPLY_TIMEOUT_S) -> Wire:
        """Return a new open connection for calls."""
        wire = Wire(self._pool.make_connection(), reply_timeout_s=reply_timeout_s)
        await wire.open()
        return wire

    async def open_subscription(self, channel: str) -> Subscription:
        """Return a new connection that is subscribed to a channel."""
        wire = Subscription(self._pool.make_connection(), reply_timeout_s=REPLY_TIMEOUT_S)
        await wire.open()
        try:
            await wire.call("SUBSCRIBE", channel)
        except BaseException:
            await wire.aclose()
            raise
        return wire

    def sync_client(self, *, timeout_s: float) -> redis.Redis:
        """Return a synchronous redis-py client without retries."""
        return redis.Redis.from_url(
            self._url,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            client_name="headrace-beat",
            **self._settings(),
        )


class AsyncClient:
    """Runs calls of one event loop over one connection, opened on use and reopened when lost."""

    def __init__(self, address: Address, library: Library, *, allow_eviction: bool) -> None:
        self._address = address
        self._library = library
        self._allow_eviction = allow_eviction
        self._wire: Wire | None = None
        self._opening = asyncio.Lock()
        self._last_failure: tuple[float, StorageError] | None = None

    async def run(self, call: Call[T]) -> T:
        """Run a call; one that only reads is repeated once when its connection is lost.

        Raises:
            StorageError: see `headrace.errors`; `ReplyLost` when it may have been executed.
        """
        words = self.words(call)
        try:
            reply = await self._run(words)
        except ReplyLost:
            if call.verb not in READS:
                raise
            reply = await self._run(words)
        return call.read(reply)

    def words(self, call: Call[Any]) -> tuple[str | bytes | int, ...]:
        """Return the command that makes a call."""
        return ("FCALL", self._library.function(call.verb), 1, call.root, *call.words)

    async def _run(self, words: tuple[Any, ...]) -> Any:
        try:
            return await self.command(*words)
        except FunctionMissing:
            await self._load()
        return await self.command(*words)

    async def command(self, *words: str | bytes | int) -> Any:
        """Run a plain command and return its raw reply.

        Raises:
            StorageError: as `run`.
        """
        wire = self._wire
        if wire is None or not wire.is_open:
            wire = await self._open()
        return await wire.call(*words)

    async def prepare(self, *words: str | bytes | int) -> Any:
        """Run a command that only makes ready for another one, which is not sent if this fails.

        Raises:
            StorageError: as `run`, but never `ReplyLost`.
        """
        try:
            return await self.command(*words)
        except ReplyLost as error:
            raise unsent(error) from error

    async def _load(self) -> None:
        with suppress(LibraryKnown):
            await self.prepare("FUNCTION", "LOAD", self._library.source)

    async def _open(self) -> Wire:
        async with self._opening:
            if self._wire is not None and self._wire.is_open:
                return self._wire
            now = asyncio.get_running_loop().time()
            # A crowd that waits for a dead server must not try to connect one after another.
            if self._last_failure and now - self._last_failure[0] < RECONNECT_PAUSE_S:
                failure = self._last_failure[1]
                raise type(failure)(str(failure))
            try:
                wire = await self._address.open_wire()
                try:
                    await self._check(wire)
                except BaseException:
                    await wire.aclose()
                    raise
            except StorageError as error:
                self._last_failure = (asyncio.get_running_loop().time(), error)
                raise
            self._wire = wire
            return wire

    async def _check(self, wire: Wire) -> None:
        info = await self._info(wire)
        if info is not None:
            problem = refusal(info, allow_eviction=self._allow_eviction)
            if problem:
                raise StorageRefused(problem)

    async def _info(self, wire: Wire) -> ServerInfo | None:
        try:
            fields = parse_info((await wire.call("INFO")).decode())
        except ReplyLost as error:
            raise unsent(error) from error
        except (NotPermitted, StorageFault):
            return None  # a user without the right to INFO: the operator's choice
        return server_info(fields, {})

    async def aclose(self) -> None:
        """Close the connection."""
        async with self._opening:
            if self._wire is not None:
                await self._wire.aclose()
                self._wire = None


class SyncClient:
    """Runs calls from a thread of its own."""

    def __init__(self, address: Address, library: Library, *, timeout_s: float) -> None:
        self._library = library
        self._redis = address.sync_client(timeout_s=timeout_s)

    def run(self, call: Call[T]) -> T:
        """Run a call; the same contract as the async client's."""
        words = (self._library.function(call.verb), 1, call.root, *call.words)
        try:
            reply = self._command("FCALL", *words)
        except FunctionMissing:
            with suppress(LibraryKnown):
                self._command("FUNCTION LOAD", self._library.source)
            reply = self._command("FCALL", *words)
        return call.read(reply)

    def _command(self, *words: str | bytes | int) -> Any:
        try:
            return self._redis.execute_command(*words)
        except (RedisError, OSError) as error:
            raise translate(error, sent=True) from error

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()
