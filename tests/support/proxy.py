"""A TCP proxy in front of a Redis server that breaks connections in the ways that networks do."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Literal, Self

import hiredis

from tests.support.ports import HOST, held_port

CHUNK_BYTES = 65536

Side = Literal["client", "server"]


class Proxy:
    """Passes everything on until told otherwise; use it as an async context manager.

    Attributes:
        delay: seconds that each chunk waits, each way.
        is_sliced: pass bytes on one by one.
        refused: how many connections were reset since no server was there.
    """

    def __init__(self, server_port: int) -> None:
        self.delay = 0.0
        self.is_sliced = False
        self.refused = 0
        self.port = 0
        self._server_port = server_port
        self._listener: asyncio.Server | None = None
        self._holder: socket.socket | None = None
        self._links: set[_Link] = set()
        self._connecting = 0
        self._traps: list[_Trap] = []
        self._flowing: dict[Side, asyncio.Event] = {}

    @property
    def url(self) -> str:
        """The proxy's own address as a redis:// URL."""
        return f"redis://{HOST}:{self.port}"

    @property
    def connections(self) -> int:
        """How many connections are open through it."""
        return len(self._links)

    def drop_next_reply(self, *, after: bytes) -> asyncio.Event:
        """Let the next command with ``after`` in an argument reach the server, then lose its reply.

        The client's connection is reset when the reply arrives, so the server did the work and the
        client never hears of it. Other and new connections go on.

        Returns:
            An event that is set when it has happened.
        """
        trap = _Trap(after, loses=True)
        self._traps.append(trap)
        return trap.caught.happened

    def hold(
        self, toward: Side, *, after: bytes, skip: int = 0, is_lasting: bool = False
    ) -> Caught:
        """Keep a command with ``after`` in an argument, or its reply, and all that would follow it.

        Other and new connections go on. Nothing sets this one free but `reset_all`.

        Args:
            toward: ``server``: the command never arrives, nor what was sent in one piece with it;
                ``client``: the server does the work, and its reply never arrives.
            after: in an argument of the command.
            skip: how many such commands pass before.
            is_lasting: hold every such command from then on, as of a client that asks again.
        """
        trap = _Trap(after, skip=skip, is_call=toward == "server", is_lasting=is_lasting)
        self._traps.append(trap)
        return trap.caught

    def reset_all(self) -> None:
        """Answer every open connection, on both sides, with RST."""
        for link in list(self._links):
            link.reset()

    def half_close(self, toward: Side = "client") -> None:
        """Send FIN one way on every open connection; the other way goes on."""
        for link in list(self._links):
            link.finish(toward)

    def stall(self, *toward: Side) -> None:
        """Pass nothing on, both ways or ``toward`` one side; accept and keep connections."""
        for side in toward or ("client", "server"):
            self._flowing[side].clear()

    def flow(self) -> None:
        """End `stall`; what was held back goes on, as after a partition."""
        for event in self._flowing.values():
            event.set()

    async def refuse(self) -> None:
        """Refuse new connections; the open ones go on."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def admit(self) -> None:
        """End `refuse`, on the same port."""
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, HOST, self.port)

    async def __aenter__(self) -> Self:
        # Nobody else is given it between `refuse` and `admit`.
        self.port, self._holder = held_port()
        self._flowing = {"client": asyncio.Event(), "server": asyncio.Event()}
        self.flow()
        await self.admit()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        while self._links or self._connecting:
            self.reset_all()
            await asyncio.sleep(0)
        if self._holder is not None:
            self._holder.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connecting += 1
        try:
            server = await asyncio.open_connection(HOST, self._server_port)
        except OSError:
            self.refused += 1
            _reset(writer)
            return
        finally:
            self._connecting -= 1
        link = _Link(client=writer, server=server[1])
        self._links.add(link)
        try:
            async with asyncio.TaskGroup() as pumps:
                link.pumps = [
                    pumps.create_task(self._pump(reader, link, toward="server")),
                    pumps.create_task(self._pump(server[0], link, toward="client")),
                ]
        except* OSError:
            link.reset()
        finally:
            self._links.discard(link)
            link.close()

    async def _pump(self, reader: asyncio.StreamReader, link: _Link, *, toward: Side) -> None:
        while chunk := await reader.read(CHUNK_BYTES):
            if self.delay:
                await asyncio.sleep(self.delay)
            await self._flowing[toward].wait()
            if toward == "server":
                trap = link.trapped_command(chunk, self._traps)
            else:
                trap = link.trapped_reply(chunk)
            if trap is not None:
                link.catch(trap)
                if trap.loses:
                    link.reset()
                    return
                await asyncio.Event().wait()
            await self._pass_on(chunk, link, toward=toward)
        await self._flowing[toward].wait()
        link.finish(toward)

    async def _pass_on(self, chunk: bytes, link: _Link, *, toward: Side) -> None:
        size = 1 if self.is_sliced else len(chunk)
        for start in range(0, len(chunk), size):
            await link.write(chunk[start : start + size], toward=toward)
            # The receiver gets a turn, or it would read the slices as one.
            await asyncio.sleep(0)


class Caught:
    """What became of a command to hold.

    Attributes:
        happened: is set once it is held.
        client_port: of the connection on which it is.
    """

    def __init__(self) -> None:
        self.happened = asyncio.Event()
        self.client_port = 0


class _Trap:
    """What is to happen to a command that has these bytes, or to its reply."""

    def __init__(
        self,
        after: bytes,
        *,
        skip: int = 0,
        loses: bool = False,
        is_call: bool = False,
        is_lasting: bool = False,
    ) -> None:
        self.after = after
        self.skip = skip
        self.loses = loses
        self.is_call = is_call
        self.is_lasting = is_lasting
        self.caught = Caught()

    def fits(self, command: list[bytes]) -> bool:
        """Whether it is for this command; one to skip is counted."""
        if not any(self.after in word for word in command):
            return False
        self.skip -= 1
        return self.skip < 0


class _Link:
    """One connection: both its sides, and which command each reply answers."""

    def __init__(self, *, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._writers: dict[Side, asyncio.StreamWriter] = {"client": client, "server": server}
        self.pumps: list[asyncio.Task[None]] = []
        self._finished: set[Side] = set()
        self._unfinished = object()
        self._commands = hiredis.Reader(notEnoughData=self._unfinished)
        self._replies = hiredis.Reader(notEnoughData=self._unfinished)
        self._sent = 0
        self._answered = 0
        self._awaited: dict[int, _Trap] = {}

    async def write(self, data: bytes, *, toward: Side) -> None:
        """Write to one side, unless that way is closed: then nothing can follow, and it is lost."""
        if toward not in self._finished and not self._writers[toward].is_closing():
            self._writers[toward].write(data)
            await self._writers[toward].drain()

    def finish(self, toward: Side) -> None:
        """Send FIN to one side."""
        if toward not in self._finished and not self._writers[toward].is_closing():
            self._finished.add(toward)
            with suppress(OSError):  # the peer may be gone already
                self._writers[toward].write_eof()

    def trapped_command(self, chunk: bytes, traps: list[_Trap]) -> _Trap | None:
        """Count the commands that end in this chunk; return what one of them is to be held by.

        A trap for a reply is kept for it.
        """
        self._commands.feed(chunk)
        while (command := self._commands.gets()) is not self._unfinished:
            self._sent += 1
            trap = next((t for t in traps if t.fits(command)), None)
            if trap is not None:
                if not trap.is_lasting:
                    traps.remove(trap)
                if trap.is_call:
                    return trap
                self._awaited[self._sent] = trap
        return None

    def trapped_reply(self, chunk: bytes) -> _Trap | None:
        """Count the replies that end in this chunk; return what one of them meets."""
        self._replies.feed(chunk)
        while (reply := self._replies.gets()) is not self._unfinished:
            if isinstance(reply, hiredis.PushNotification):
                continue
            self._answered += 1
            if trap := self._awaited.pop(self._answered, None):
                return trap
        return None

    def catch(self, trap: _Trap) -> None:
        """Tell that a trap has what it is for."""
        trap.caught.client_port = self._writers["client"].get_extra_info("peername")[1]
        trap.caught.happened.set()

    def reset(self) -> None:
        for writer in self._writers.values():
            _reset(writer)
        for pump in self.pumps:
            pump.cancel()

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN: what a linger of zero seconds means."""
    if not writer.is_closing():
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
