"""How a call is run, whatever carries it to the server: named, loaded for, read, repeated.

A call that may have been executed is repeated only where its verb says so: the caller alone can
repeat any other, with the same number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from headrace.errors import ReplyLost, StorageFault, StorageRefused
from headrace.storage.base import VERBS
from headrace.storage.redis.calls.call import Call, Word
from headrace.storage.redis.calls.doctor import info, load
from headrace.storage.redis.errors import FunctionMissing, LibraryKnown, NotPermitted, unsent
from headrace.storage.redis.library import Library
from headrace.storage.redis.server import refusal, server_info

T = TypeVar("T")


class Runner(ABC):
    """Runs calls; `send` is what each kind of client does in its own way.

    Args:
        library: has the functions.
    """

    def __init__(self, library: Library) -> None:
        self.library: Library = library

    @abstractmethod
    async def send(self, call: Call[Any]) -> Any:
        """Send a call and return the raw reply, its errors translated.

        Args:
            call: its ``root`` says which slot it belongs to.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close what is open; a later call opens it again."""

    def words(self, call: Call[Any]) -> tuple[Word, ...]:
        """Return the command that makes a call."""
        if call.is_command:
            return tuple(call.words)
        return ("FCALL", self.library.function(call.verb), 1, call.root, *call.words)

    async def run(self, call: Call[T]) -> T:
        """Run a call and return what its reply says.

        Raises:
            StorageError: see `headrace.errors`; `ReplyLost` when it may have been executed.
        """
        try:
            reply = await self._loaded(call)
        except ReplyLost:
            if not call.repeats:
                raise
            reply = await self._loaded(call)
        return call.read(reply)

    async def _loaded(self, call: Call[Any]) -> Any:
        try:
            return await self.send(call)
        except FunctionMissing:
            with suppress(LibraryKnown):
                await self.prepare(load(self.library))
        except NotPermitted:
            if call.is_command or not VERBS[call.verb].reads:
                raise
            call = self._as_reader(call)
        return await self.send(call)

    def _as_reader(self, call: Call[T]) -> Call[T]:
        """Return a call that only reads as a user may make it who may not write.

        It is no user's first way: the right to ``FCALL`` does not bring that to ``FCALL_RO``.
        """
        _, *words = self.words(call)
        return call._replace(words=("FCALL_RO", *words), is_command=True)

    async def prepare(self, call: Call[T]) -> T:
        """Run what only makes ready for another call, which is not sent if this fails.

        Raises:
            StorageError: as `run`, but never `ReplyLost`.
        """
        try:
            return call.read(await self.send(call))
        except ReplyLost as error:
            raise unsent(error) from error


async def check_server(ask: Callable[..., Awaitable[Any]], *, allow_eviction: bool) -> None:
    """See that the server at the other end of a new connection can be used.

    Args:
        ask: sends a command there and returns its reply.
        allow_eviction: it may throw keys away.

    Raises:
        StorageRefused: it can't, and why.
        StorageUnavailable: it did not answer.
    """
    call = info()
    try:
        fields = call.read(await ask(*call.words))
    except ReplyLost as error:
        raise unsent(error) from error
    except (NotPermitted, StorageFault):
        return  # a user without the right to INFO: the operator's choice
    problem = refusal(server_info(fields, {}), allow_eviction=allow_eviction)
    if problem:
        raise StorageRefused(problem)
