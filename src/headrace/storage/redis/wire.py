"""One connection that many coroutines share.

Calls are written at once and answered in order, so that a cancelled caller never leaves its reply
for the next one, and calls in flight together share round trips. Here asyncio is used directly: the
reader belongs to the connection and outlives any caller's task group; `aclose` ends it.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from contextlib import suppress
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError, ResponseError

from headrace.storage.redis.errors import translate

CONNECT_TIMEOUT_S = 5.0


class Wire:
    """A connection with a reader of its own.

    Args:
        connection: not yet connected, with redis-py's own time-outs and retries off.
        reply_timeout_s: silence after which the oldest call in flight counts as lost.
    """

    def __init__(self, connection: AbstractConnection, *, reply_timeout_s: float) -> None:
        self._connection = connection
        self._reply_timeout_s = reply_timeout_s
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._heard_at = 0.0
        self._reader: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._broken: BaseException | None = None

    @property
    def is_open(self) -> bool:
        """Whether calls can be made."""
        return self._reader is not None and self._broken is None

    async def open(self) -> None:
        """Connect and authenticate.

        Raises:
            StorageUnavailable: not reached.
            StorageRefused: wrong credentials.
        """
        try:
            # redis-py bounds the connecting alone, and not the words exchanged after it.
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._connection.connect()
        except (RedisError, OSError) as error:
            with suppress(Exception):
                await self._connection.disconnect(nowait=True)
            raise translate(error) from error
        loop = asyncio.get_running_loop()
        self._reader = loop.create_task(self._read(), name="headrace-wire")
        self._watch = loop.call_later(self._reply_timeout_s / 4, self._check)

    async def call(self, *words: str | bytes | int) -> Any:
        """Send a command and return its reply, strings as bytes.

        Raises:
            ResponseError: the server's own error, untranslated.
            ReplyLost: the connection ended before the reply.
        """
        if self._broken is not None:
            raise translate(self._broken)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if not self._waiting:
            self._heard_at = loop.time()
        self._waiting.append(future)
        try:
            await self._connection.send_packed_command(
                hiredis.pack_command(words),  # type: ignore[arg-type]  # its stub misses bytes
                check_health=False,
            )
        except BaseException as error:
            # redis-py closed the connection, since a part may have been sent. uvloop's error for
            # a closed transport is a bare RuntimeError.
            is_loss = isinstance(error, RedisError | OSError | RuntimeError)
            self._break(ConnectionError(str(error)) if is_loss else error)
            if not is_loss:
                raise
        return await future

    async def _read(self) -> None:
        read = self._connection.read_response
        loop = asyncio.get_running_loop()
        try:
            while True:
                reply: Any
                try:
                    reply = await read(disable_decoding=True, timeout=math.inf)
                except ResponseError as error:
                    reply = error
                self._heard_at = loop.time()
                future = self._waiting.popleft()
                if future.done():
                    continue
                if isinstance(reply, Exception):
                    future.set_exception(reply)
                else:
                    future.set_result(reply)
        except (RedisError, OSError, IndexError) as error:
            self._break(error)
        finally:
            with suppress(Exception):
                await self._connection.disconnect(nowait=True)

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        if self._waiting and loop.time() - self._heard_at > self._reply_timeout_s:
            self._break(TimeoutError(f"no reply for {self._reply_timeout_s:g} s"))
        elif self._broken is None:
            self._watch = loop.call_later(self._reply_timeout_s / 4, self._check)

    def _break(self, error: BaseException) -> None:
        """Fail what is in flight; the reader, if it still runs, closes the connection."""
        if self._broken is None:
            self._broken = error
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(translate(error, sent=True))
                future.exception()  # a caller that was cancelled meanwhile never looks
        if self._watch is not None:
            self._watch.cancel()
        if self._reader is not None and self._reader is not asyncio.current_task():
            self._reader.cancel()

    async def aclose(self) -> None:
        """Close the connection; calls in flight end as lost."""
        self._break(ConnectionError("the connection was closed"))
        if self._reader is not None:
            await asyncio.wait([self._reader])
