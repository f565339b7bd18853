"""The one thread that uses a database: what is queued goes in one transaction (group commit).

Each call has a savepoint, so that one that fails does not undo its neighbours, and every caller is
answered after the commit only.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from headrace.errors import StorageError, StorageFault, StorageFull, StorageUnavailable
from headrace.guard import Guard
from headrace.storage.sqlite.engine.damage import is_damage, mend
from headrace.storage.sqlite.engine.errors import code_of, start, translate
from headrace.storage.sqlite.engine.location import DatabaseLocation
from headrace.storage.sqlite.engine.presence import Presence
from headrace.storage.sqlite.engine.request import Request, Work, answer, nothing
from headrace.storage.sqlite.engine.step import Clock, Effects, Step

T = TypeVar("T")
GROUP = 32
"""Most calls in one transaction, so that none waits for long."""


class Writer:
    """A thread with the database's only connection in this process.

    ``turn`` is held while SQLite is at work: a fork waits for it, or the child would inherit locks
    that nobody opens any more.

    Args:
        place: which database.
        connect: opens the connection, in the thread.
        process: this process's name among those that share the database.
        committed: called in the thread with what a transaction's calls left to be told.
        ended: called in the thread, last.
        guard: keeps the thread alive.
        before: an earlier thread that may still use the same connection.
    """

    def __init__(
        self,
        place: DatabaseLocation,
        connect: Callable[[], sqlite3.Connection],
        *,
        process: str,
        committed: Callable[[Effects], None],
        ended: Callable[[sqlite3.Connection | None], None],
        guard: Guard,
        before: Writer | None = None,
    ) -> None:
        self._place = place
        self._connect = connect
        self._process = process
        self._committed = committed
        self._ended = ended
        self._guard = guard
        self._before = before
        self._is_ending = False
        self._requests: SimpleQueue[Request[Any] | None] = SimpleQueue()
        self._db: sqlite3.Connection | None = None
        self._presence = Presence(place)
        self._is_durable = True
        self._failure: StorageError | None = None
        self._whenever_ended: list[Callable[[], object]] = []
        # Not the thread's own `is_alive`, nor `join` first: up to Python 3.12, an interrupt inside
        # of them makes a thread that runs pass for one that has ended.
        self._is_over = threading.Event()
        self.turn: threading.Lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="headrace-sqlite", daemon=True)
        start(self._thread)

    async def run(
        self, work: Work[T], clock: Clock, *, is_durable: bool = True, grows: bool = False
    ) -> T:
        """Do ``work`` in a transaction and return what it returned, once that is committed.

        Args:
            work: it may raise `StorageError`; then its own changes are undone.
            clock: the storage's.
            is_durable: False: a power loss may undo it, a crash of the process may not.
            grows: whether it adds jobs, so that a full disk is an error of its own.
        """
        request = Request(work, clock, is_durable=is_durable, grows=grows)
        request.loop = asyncio.get_running_loop()
        request.future = request.loop.create_future()
        self._requests.put(request)
        return await request.future

    def ask(
        self, work: Work[T], clock: Clock, *, is_durable: bool = True, grows: bool = False
    ) -> Request[T]:
        """Have the same done from another thread, which waits by `Request.wait`."""
        request = Request(work, clock, is_durable=is_durable, grows=grows)
        request.is_for(self._is_over.is_set)
        self._requests.put(request)
        return request

    def call(self, work: Work[T], clock: Clock, *, timeout_s: float) -> T:
        """Do what need not outlive a power loss from another thread, without an event loop.

        Raises:
            ReplyLost: it took longer than ``timeout_s``.
        """
        return self.ask(work, clock, is_durable=False).wait(timeout_s)

    def post(self, work: Work[None], clock: Clock, done: Callable[[], object]) -> None:
        """Do something that nobody waits for; ``done`` is called whether or not it failed."""
        request = Request(work, clock, is_durable=False, grows=False)
        request.done = done
        self._requests.put(request)

    def let_go(self) -> None:
        """Close the file before a fork, while ``turn`` is held; the next call opens it again.

        SQLite knows by its memory which locks its process holds. A child has that memory and none
        of the locks: whoever closed the file last but for it would remove what it commits.
        """
        if self._place.is_file and self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None
            self._presence.closed()

    def stop(self, whenever_ended: Callable[[], object] = nothing) -> None:
        """End the thread after what is queued; it tells when it has closed everything."""
        self._whenever_ended.append(whenever_ended)
        self._requests.put(None)

    def join(self, timeout_s: float = 10.0) -> None:
        """Wait for the thread to be gone."""
        if self._is_over.wait(timeout_s):
            self._thread.join(timeout_s)

    def _run(self) -> None:
        if self._before is not None:
            self._before.join()
            self._before = None
        self._guard.keep_thread("sqlite", self._serve)
        try:
            with self.turn:
                self._ended(self._db)
                self._presence.ended()
        finally:
            self._is_over.set()
            for end in self._whenever_ended:
                end()

    def _serve(self) -> None:
        while not self._is_ending:
            first = self._requests.get()
            if first is None:
                return
            batch = [first]
            self._gather(batch)
            try:
                with self.turn:
                    self._commit(batch)
            finally:
                answer(batch)  # also where those could not be told who wait for what it did

    def _gather(self, batch: list[Request[Any]]) -> None:
        """Take along what else is queued, and note it if the end is among it."""
        while len(batch) < GROUP:
            try:
                request = self._requests.get_nowait()
            except Empty:
                return
            if request is None:
                self._is_ending = True
                return
            batch.append(request)

    def _commit(self, batch: list[Request[Any]]) -> None:
        effects = Effects()
        try:
            db = self._ready(is_durable=any(request.is_durable for request in batch))
            db.execute("BEGIN IMMEDIATE")
            try:
                for request in batch:
                    self._do(db, request, effects)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        except Exception as error:  # whatever it was, every caller waits for an answer
            self._fail(batch, error)
            return
        self._committed(effects)

    def _ready(self, *, is_durable: bool) -> sqlite3.Connection:
        if self._failure is not None:
            raise self._failure
        self._presence.check()
        if self._db is None:
            self._db = self._connect()
            self._presence.opened()
            self._is_durable = True
            if self._place.is_file:
                self._set_sync(self._db, is_full=self._place.is_full_sync)
        if self._place.is_file and self._place.is_full_sync and is_durable != self._is_durable:
            self._set_sync(self._db, is_full=is_durable)
            self._is_durable = is_durable
        return self._db

    def _set_sync(self, db: sqlite3.Connection, *, is_full: bool) -> None:
        db.execute(f"PRAGMA synchronous = {'FULL' if is_full else 'NORMAL'}")

    def _do(self, db: sqlite3.Connection, request: Request[Any], effects: Effects) -> None:
        db.execute("SAVEPOINT call")
        step = Step(db, request.clock(), self._process, Effects())
        try:
            try:
                request.won = request.work(step)
            except sqlite3.OperationalError as error:
                if not is_damage(error):
                    raise
                db.execute("ROLLBACK TO call")
                mend(db)
                step = Step(db, step.now_ms, self._process, Effects())
                request.won = request.work(step)
        except Exception as error:
            if not db.in_transaction:
                raise  # SQLite has undone everything: the disk is full or failed
            db.execute("ROLLBACK TO call")
            request.error = self._translated(error, request)
        else:
            effects.add(step.effects)
        db.execute("RELEASE call")

    def _fail(self, batch: list[Request[Any]], error: Exception) -> None:
        if self._db is not None and code_of(error) == sqlite3.SQLITE_IOERR:
            # After a failed fsync nobody knows what is on the disk: repeating proves nothing.
            self._failure = translate(error, str(self._place))
        for request in batch:
            if request.error is None:
                request.error = self._translated(error, request)

    def _translated(self, error: Exception, request: Request[Any]) -> StorageError:
        ours = translate(error, str(self._place))
        if isinstance(ours, StorageFull) and not request.grows:
            # Outcomes and the like are kept by who has them, and written when there is room.
            ours = StorageUnavailable(str(ours))
        if isinstance(ours, StorageFault) and ours is not error:
            ours.__cause__ = error
        return ours
