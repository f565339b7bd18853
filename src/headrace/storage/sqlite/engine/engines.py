"""Which engines a process has: the storages of one place share one, and a fork has none of them."""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from contextlib import suppress
from typing import Protocol

from headrace.errors import StorageRefused
from headrace.forks import on_fork
from headrace.storage.sqlite.engine.engine import Engine
from headrace.storage.sqlite.engine.location import DatabaseLocation
from headrace.storage.sqlite.engine.writer import Writer

_lock = threading.Lock()
_engines: dict[DatabaseLocation, Engine] = {}
_started: weakref.WeakSet[Writer] = weakref.WeakSet()
_held: list[Writer] = []
_inherited: list[dict[DatabaseLocation, Engine]] = []
_left_behind: set[DatabaseLocation] = set()


class User(Protocol):
    """What uses the engine of a place, in any number of threads.

    Attributes:
        place: where the database is.
        attached: the engine from its first use on.
    """

    place: DatabaseLocation
    attached: Engine | None


def attach(place: DatabaseLocation) -> Engine:
    """Return the engine of a place, started; `detach` it in the end.

    Raises:
        StorageUnavailable: no thread can be started.
        StorageRefused: it is the memory of a process that forked this one.
    """
    with _lock:
        return _attach(place)


def attach_user(user: User) -> Engine:
    """Return the engine of what uses it, which counts as one use however many threads ask.

    Raises:
        StorageError: as `attach`.
    """
    with _lock:
        if user.attached is None or user.attached.is_inherited:
            user.attached = _attach(user.place)
        return user.attached


def _attach(place: DatabaseLocation) -> Engine:
    if place in _left_behind:
        raise StorageRefused(
            f"{place} is in the memory of the process that forked this one, where nobody would "
            "see what is written here: use file:///directory or Redis, or open it only after the "
            "fork"
        )
    engine = _engines.get(place)
    if engine is None:
        engine = _engines[place] = Engine(place)
    if engine.users == 0:
        _started.add(engine.start())
    engine.users += 1
    return engine


def _detach(engine: Engine) -> bool:
    """Give up one use; whether it was the last."""
    if engine.is_inherited:
        return False
    with _lock:
        engine.users -= 1
        if engine.users:
            return False
        if engine.place.is_file:
            _engines.pop(engine.place, None)
        return True


async def detach(engine: Engine) -> None:
    """Give up an engine; wait for its end if this was the last use."""
    writer = engine.writer
    if _detach(engine):
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def notify() -> None:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(ended.set)

        writer.stop(notify)
        await ended.wait()
        writer.join()


def detach_now(engine: Engine) -> None:
    """Do the same outside of an event loop."""
    writer = engine.writer
    if _detach(engine):
        writer.stop()
        writer.join()


def discard(place: DatabaseLocation) -> None:
    """Give up what is in memory under a name, before the process ends, unless it is in use."""
    with _lock:
        engine = _engines.get(place)
        if engine is None or engine.users:
            return
        del _engines[place]
    engine.close_kept()


def _discard_all() -> None:
    for place in list(_engines):
        discard(place)


def _before_fork() -> None:
    _lock.acquire()
    _held.extend(_started)
    for writer in _held:
        writer.turn.acquire()
        writer.let_go()


def _after_fork() -> None:
    for writer in _held:
        writer.turn.release()
    _held.clear()
    _lock.release()


def _after_fork_in_child() -> None:
    """Leave the parent's engines alone: a child must not use or close SQLite's connections."""
    global _lock
    _lock = threading.Lock()
    _inherited.append(dict(_engines))
    _left_behind.update(place for place, engine in _engines.items() if engine.keeps)
    _engines.clear()
    _started.clear()
    _held.clear()


# Newer Pythons warn of a connection that ends with the process.
atexit.register(_discard_all)
on_fork(before=_before_fork, in_parent=_after_fork, in_child=_after_fork_in_child)
