"""One process's share of a database: the writer's thread, who waits here, and the way to others.

Every storage of a process with the same place shares one engine, so that they wake each other
without a detour. It ends with the last of them; what is in memory stays as long as the process.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable

import msgspec

from headrace.forks import count
from headrace.guard import Drops, Guard
from headrace.storage.sqlite.engine.database import open_database
from headrace.storage.sqlite.engine.location import DatabaseLocation
from headrace.storage.sqlite.engine.step import Clock, Effects, QueueName, Step
from headrace.storage.sqlite.engine.tokens import Tokens
from headrace.storage.sqlite.engine.wakeup_socket import WakeupSocket
from headrace.storage.sqlite.engine.writer import Writer
from headrace.storage.values import End

Deliver = Callable[[End], None]


class Engine:
    """What the storages of one place share; made by `engines.attach`.

    Args:
        place: which database.
    """

    def __init__(self, place: DatabaseLocation) -> None:
        self.place: DatabaseLocation = place
        self.name: str = secrets.token_hex(8)
        self.tokens: Tokens = Tokens()
        self.users: int = 0
        self._channels: dict[str, Deliver] = {}
        self._seen: dict[QueueName, int] = {}
        self._kept: sqlite3.Connection | None = None
        self._socket: WakeupSocket | None = None
        self._is_look_due = False
        self._writer: Writer | None = None
        self._forks = count()
        self._guard = Guard()
        self._drops = Drops(self.name)

    def start(self) -> Writer:
        """Start the thread and return it."""
        self._writer = Writer(
            self.place,
            self._connect,
            process=self.name,
            committed=self._committed,
            ended=self._ended,
            guard=self._guard,
            before=self._writer,
        )
        return self._writer

    @property
    def writer(self) -> Writer:
        """The thread that does the work."""
        assert self._writer is not None, "attach started it"  # noqa: S101
        return self._writer

    @property
    def is_inherited(self) -> bool:
        """Whether it is the engine of the process that forked this one, and has no thread here."""
        return self._forks != count()

    async def listen(self, clock: Clock) -> None:
        """Hear from now on what other processes commit.

        Raises:
            StorageError: the database can't be opened.
        """
        if not self._hears:
            await self.writer.run(lambda step: self._listen(step, clock), clock, is_durable=False)

    def listen_now(self, clock: Clock) -> None:
        """Do the same outside of an event loop."""
        if not self._hears:
            self.writer.ask(lambda step: self._listen(step, clock), clock, is_durable=False).wait()

    @property
    def _hears(self) -> bool:
        return not self.place.is_file or (self._socket is not None and self._socket.is_open)

    def subscribe(self, channel: str, deliver: Deliver) -> None:
        """Call ``deliver`` in the writer's thread for every end that the channel is told."""
        self._channels[channel] = deliver

    def unsubscribe(self, channel: str) -> None:
        """Undo it."""
        self._channels.pop(channel, None)

    def _connect(self) -> sqlite3.Connection:
        if self._kept is not None:
            return self._kept
        if not self.place.is_file:
            self._kept = open_database(self.place)
            return self._kept
        # The socket first: if the process has no descriptor left, nothing is open yet.
        if self._socket is None:
            self._socket = WakeupSocket(self.place.wake_folder, self.name, self.place.mode)
        return open_database(self.place)

    def _listen(self, step: Step, clock: Clock) -> None:
        if self._socket is not None and self._socket.listen(lambda: self._on_wakeup(clock)):
            self._look(step)  # at what came before there was a socket to tell

    def _on_wakeup(self, clock: Clock) -> None:
        """Have a look, soon; called in the thread of the socket."""
        if not self._is_look_due:
            self._is_look_due = True
            self.writer.post(self._look, clock, self._looked)

    def _looked(self) -> None:
        self._is_look_due = False

    def _look(self, step: Step) -> None:
        """Find what other processes have left for this one."""
        self._looked()  # what is told from now on needs another look
        for tenant, queue, wake in step.db.execute("SELECT tenant, name, wake FROM queues"):
            if self._seen.get((tenant, queue), 0) != wake:
                step.effects.seen[tenant, queue] = wake
        sql = "SELECT key, channel, body FROM messages WHERE process = ? ORDER BY key"
        rows = step.db.execute(sql, (self.name,)).fetchall()
        for _, channel, body in rows:
            try:
                end = msgspec.msgpack.decode(body, type=End)
            except (msgspec.DecodeError, TypeError) as error:
                self._drops.drop(error)
            else:
                step.effects.ends.append((channel, end))
        if rows:
            sql = "DELETE FROM messages WHERE process = ? AND key <= ?"
            step.db.execute(sql, (self.name, rows[-1][0]))

    def _committed(self, effects: Effects) -> None:
        """Tell who waits; called in the writer's thread after every commit."""
        for queue, (number, lanes) in effects.wakes.items():
            self._seen[queue] = number
            self.tokens.leave(queue, lanes)
        for queue, number in effects.seen.items():
            self._seen[queue] = number
            self.tokens.leave(queue, None)
        for channel, end in effects.ends:
            deliver = self._channels.get(channel)
            if deliver is not None:
                deliver(end)
        if self._socket is not None and (effects.wakes or effects.has_messages):
            self._socket.nudge()

    @property
    def keeps(self) -> bool:
        """Whether something is in the memory of this process alone."""
        return self._kept is not None

    def close_kept(self) -> None:
        """Give up what is in memory, when nobody can use it any more."""
        if self._kept is not None and not self.users:
            self._kept.close()
            self._kept = None

    def _ended(self, connection: sqlite3.Connection | None) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if connection is not None and connection is not self._kept:
            connection.close()
