"""The clients of an app, one for each event loop that uses it: connections don't cross loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from headrace import forks
from headrace.client import Client, ClientFactory, CurrentClient, DecoderOf
from headrace.clock import WallClock, wall_clock
from headrace.handle import JobClient
from headrace.storage.base import Storage
from headrace.storage.blocking import BlockingStorage


class Opening(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How an app's storages and clients are opened.

    Attributes:
        storage: returns a storage that is not connected yet; the caller closes it.
        blocking: the same of a storage for threads.
        make: makes a client of a storage, as `Client` does.
        clock: the time where the storages are, as far as it can be told without asking one.
        is_driven: jobs run when a test says so, and not while a thread blocks.
    """

    storage: Callable[[], Storage]
    blocking: Callable[[], BlockingStorage]
    make: ClientFactory = Client
    clock: WallClock = wall_clock
    is_driven: bool = False


class Held:
    """A loop's client, and how many ``async with`` blocks use it."""

    __slots__ = ("client", "entered")

    def __init__(self, client: Client) -> None:
        self.client: Client = client
        self.entered: int = 0


class Clients:
    """Opens clients on use; `aclose` closes that of the running loop.

    One whose loop has ended was cut off with it, and is forgotten when the next is opened.

    Args:
        opening: how storages and clients are opened.
        decoder_of: as for `Client`.
        retry_for_s: as for `Client`.

    Attributes:
        opening: that of the moment.
        jobs: what handles use, so that they outlive a client.
        retry_for_s: as for `Client`.
    """

    def __init__(self, opening: Opening, *, decoder_of: DecoderOf, retry_for_s: float) -> None:
        self.opening: Opening = opening
        self._decoder_of = decoder_of
        self.retry_for_s: float = retry_for_s
        self.jobs: JobClient = CurrentClient(self.current)
        self._held: dict[asyncio.AbstractEventLoop, Held] = {}
        self._forks = forks.count()

    @contextmanager
    def replaced(self, opening: Opening) -> Iterator[None]:
        """Open storages and clients in another way while the block runs.

        What was connected before rests meanwhile, and is used again afterwards.
        """
        resting = self.opening, self._held, self._forks
        self.opening, self._held, self._forks = opening, {}, forks.count()
        try:
            yield
        finally:
            self.opening, self._held, self._forks = resting

    def open_storage(self) -> Storage:
        """Return a storage that is not connected yet; the caller closes it."""
        return self.opening.storage()

    def current(self) -> Client:
        """Return the client of the running loop."""
        held = self._held.get(asyncio.get_running_loop())
        if held is None or self._forks != forks.count():
            held = self._open()
        return held.client

    def _open(self) -> Held:
        if self._forks != forks.count():
            # Those of the parent are not ours to use or to close.
            self._forks, self._held = forks.count(), {}
        for loop in list(self._held):
            if loop.is_closed():
                self._held.pop(loop, None)
        held = self._held[asyncio.get_running_loop()] = Held(self._open_client())
        return held

    def _open_client(self) -> Client:
        return self.opening.make(
            self.opening.storage(),
            decoder_of=self._decoder_of,
            jobs=self.jobs,
            retry_for_s=self.retry_for_s,
        )

    def enter(self) -> None:
        """Note that a block begins in the running loop."""
        self.current()
        self._held[asyncio.get_running_loop()].entered += 1

    async def leave(self) -> None:
        """Note that a block has ended there; the last one closes."""
        held = self._held.get(asyncio.get_running_loop())
        if held is not None:
            held.entered -= 1
            if held.entered <= 0:
                await self.aclose()

    async def aclose(self) -> None:
        """Close the client of the running loop, if this process opened one."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None and self._forks == forks.count():
            await held.client.aclose()
