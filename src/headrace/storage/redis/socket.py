"""A connection that blocks the thread which uses it, and one that brings a channel's messages.

redis-py connects and authenticates; then it is hiredis on the bare socket, for half of the
processor time a call. Whatever interrupts a call breaks its connection, since an answer may come
that nobody expects: it is closed, and what is in flight is lost. A forked child closes its copy,
which leaves the connection alone.
"""

from __future__ import annotations

# Looking a host up imports it: a fork in the middle of that would leave a child waiting for ever.
import encodings.idna  # noqa: F401
import select
import socket
import ssl
import struct
import time
from collections import deque
from typing import Any

import hiredis
from redis.connection import AbstractConnection, SSLConnection
from redis.exceptions import InvalidResponse, RedisError

from headrace import forks
from headrace.storage.redis.calls.call import Word
from headrace.storage.redis.connection import PING_AFTER_S
from headrace.storage.redis.errors import lost, not_connected, refused, translate

BUFFER_BYTES = 65536
_UNREAD = object()


class Socket:
    """A connection for one thread at a time, with any number of calls in flight.

    Args:
        connection: not yet connected, with redis-py's own retries off.
        where: the server, for messages.
        timeout_s: how long it may take to connect, and silence after which a reply is lost.

    Raises:
        StorageUnavailable: not reached.
        StorageRefused: wrong credentials, or no such database.
    """

    def __init__(self, connection: AbstractConnection, where: str, *, timeout_s: float) -> None:
        self._where = where
        self._timeout_s = timeout_s
        self._sock: socket.socket = _connected(connection, where)
        limit(self._sock, timeout_s)
        self._forks = forks.count()
        self._replies: Any = hiredis.Reader(protocolError=InvalidResponse, replyError=refused)
        self._buffer = bytearray(BUFFER_BYTES)
        self._waiting: deque[Pending] = deque()
        self._broken: BaseException | None = None
        self._arrivals = select.poll()
        self._arrivals.register(self._sock, select.POLLIN)

    @property
    def is_open(self) -> bool:
        """Whether calls can be made, in this process."""
        return self._broken is None and self._forks == forks.count()

    @property
    def is_idle(self) -> bool:
        """Whether it is open, and every call that was sent has been answered."""
        return self.is_open and not self._waiting

    @property
    def is_silent(self) -> bool:
        """Whether it is open and has nothing to read, not even that the server has closed it."""
        return self.is_open and not self._arrivals.poll(0)

    def send(self, words: tuple[Word, ...]) -> Pending:
        """Send a command.

        Raises:
            StorageUnavailable: the connection has ended, and the command was not sent.
        """
        if self._broken is not None:
            raise translate(self._broken, self._where)
        # An interrupt that comes while hiredis takes the text of a number crashes the process.
        texts = tuple([str(word) if word.__class__ is int else word for word in words])
        command = hiredis.pack_command(texts)  # type: ignore[arg-type]  # its stub misses bytes
        pending = Pending(self)
        try:
            self._waiting.append(pending)
            self._sock.sendall(command)
        except OSError as error:
            self._break(error)
            raise translate(error, self._where) from None  # the server has not got all of it
        except BaseException as error:
            self._break(error)
            raise
        return pending

    async def call(self, *words: Word) -> Any:
        """Send a command and return its reply.

        Raises:
            StorageError: as `send` and `Pending.wait`.
        """
        return self.send(words).wait()

    def read_until(self, pending: Pending) -> None:
        """Read replies, each for the oldest call, until one call has its own.

        Raises:
            ReplyLost: the connection ends before.
        """
        if self._broken is not None:
            raise lost(self._broken, self._where)
        try:
            while pending.reply is _UNREAD:
                self._read()
        except (OSError, RedisError, IndexError) as error:
            self._break(error)
            raise lost(error, self._where) from None
        except BaseException as error:
            self._break(error)
            raise

    def _read(self) -> None:
        """Take the replies that are complete, at least a part of one."""
        try:
            length = self._sock.recv_into(self._buffer)
        except (BlockingIOError, TimeoutError):
            raise TimeoutError(f"no reply for {self._timeout_s:g} s") from None
        if not length:
            raise ConnectionError("the server closed the connection")
        replies = self._replies
        replies.feed(self._buffer, 0, length)
        while (reply := replies.gets()) is not False:
            self._take(reply)

    def _take(self, reply: Any) -> None:
        self._waiting.popleft().reply = reply

    def _break(self, error: BaseException) -> None:
        if self._broken is None:
            self._broken = error
        self._sock.close()

    def close(self) -> None:
        """Close it; what is in flight is lost."""
        self._break(ConnectionError("the connection was closed"))

    def __del__(self) -> None:
        """Close one that was given up where its thread was interrupted."""
        if hasattr(self, "_sock"):
            self._sock.close()


class SubscribedSocket(Socket):
    """A connection that is subscribed to a channel, on which the server speaks unasked."""

    def __init__(self, connection: AbstractConnection, where: str, *, timeout_s: float) -> None:
        super().__init__(connection, where, timeout_s=timeout_s)
        self._messages: deque[bytes] = deque()
        self._heard_at = time.monotonic()

    def message(self, timeout_s: float) -> bytes | None:
        """Return the next message, None if none comes in time.

        Raises:
            StorageUnavailable: the connection has ended.
        """
        give_up_at = time.monotonic() + timeout_s
        try:
            while not self._messages:
                self._see_life()
                left_s = give_up_at - time.monotonic()
                if left_s <= 0 or not self._arrivals.poll(left_s * 1000):
                    return None
                self._read()
                self._heard_at = time.monotonic()
        except (OSError, RedisError, IndexError) as error:
            self._break(error)
            raise translate(error, self._where) from None
        except BaseException as error:
            self._break(error)
            raise
        return self._messages.popleft()

    def _see_life(self) -> None:
        """Ask a server from which nothing was heard for a while for a sign of life."""
        silent_s = time.monotonic() - self._heard_at
        if self._waiting and silent_s > PING_AFTER_S + self._timeout_s:
            raise TimeoutError(f"no reply for {self._timeout_s:g} s")
        if not self._waiting and silent_s > PING_AFTER_S:
            self.send(("PING",))

    def _take(self, reply: Any) -> None:
        if isinstance(reply, list) and reply[0] == b"message":
            self._messages.append(reply[2])
        else:
            super()._take(reply)


class Pending:
    """A command that was sent, and whose reply is read later.

    Attributes:
        reply: what came for it; an error of the server is an exception.
    """

    __slots__ = ("_socket", "reply")

    def __init__(self, ours: Socket) -> None:
        self._socket = ours
        self.reply: Any = _UNREAD

    def wait(self) -> Any:
        """Return the reply, strings as bytes.

        Raises:
            ReplyLost: the connection ended before the reply.
            StorageError: the server's own error; see `errors.refused`.
        """
        if self.reply is _UNREAD:
            self._socket.read_until(self)
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def limit(sock: socket.socket, timeout_s: float) -> None:
    """Bound how long it may wait to read or to write."""
    if isinstance(sock, ssl.SSLSocket):
        sock.settimeout(timeout_s)
        return
    # By the kernel: Python's own time-out polls before each, which is two more system calls a call.
    sock.settimeout(None)
    # 0 would be for ever.
    interval = struct.pack("ll", *divmod(max(1, round(timeout_s * 1_000_000)), 1_000_000))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        sock.setsockopt(socket.SOL_SOCKET, option, interval)


class TlsConnection(SSLConnection):
    """redis-py's, but with a context that is made once.

    To make one takes longer than all else, and a fork in the middle leaves OpenSSL's locks closed
    in the child for ever.

    Args:
        context: what the settings say of TLS.
        settings: as for redis-py's.
    """

    def __init__(self, *, context: ssl.SSLContext, **settings: Any) -> None:
        super().__init__(**settings)
        self._context = context

    def _wrap_socket_with_ssl(self, sock: socket.socket) -> ssl.SSLSocket:
        return self._context.wrap_socket(sock, server_hostname=self.host)


def _connected(connection: Any, where: str) -> socket.socket:
    try:
        connection.connect()
    except (RedisError, OSError) as error:
        raise not_connected(error, where) from None
    # redis-py has no public name for it, and closes what it has when it is given up.
    sock: socket.socket = connection._sock  # noqa: SLF001
    connection._sock = None  # noqa: SLF001
    forks.keep(sock)
    return sock
