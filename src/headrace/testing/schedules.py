"""The schedules of a kit, which are fired when its time has come to them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from typing import Any

import msgspec

from headrace.app import App, declared_of
from headrace.events import Emit
from headrace.schedule_records import all_schedules
from headrace.scheduled import Declared
from headrace.scheduler.step import Steps
from headrace.scheduler.sync import Sync
from headrace.storage.base import Storage


class Upcoming(msgspec.Struct, frozen=True):
    """The schedule that falls due next, or is due already."""

    id: str
    timing: str
    due_ms: int


class KitSchedules:
    """A scheduler without a loop: it fires what is due when it is told to.

    Args:
        app: whose declared schedules these are.
        storage: where they are.
        emit: told what happens.
    """

    def __init__(self, app: App[Any], storage: Storage, *, emit: Emit) -> None:
        self._app = app
        self._storage = storage
        self._emit = emit
        self._steps = Steps(storage, emit=emit)

    def declare(self) -> None:
        """Store the schedules that the app declares; in a thread, since there may be no loop."""
        declared = declared_of(self._app)
        if declared.schedules:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, self._synchronise(declared)).result()

    async def _synchronise(self, declared: Declared) -> None:
        sync = Sync(self._storage, declared, alive=[declared.release], known=set(), emit=self._emit)
        async for _ in sync.run():
            pass

    async def fire(self) -> bool:
        """Fire what is due, until nothing is; return whether anything was."""
        was_due = False
        while await self._steps.step() == 0:
            was_due = True
        return was_due

    async def upcoming(self) -> Upcoming | None:
        """Return what falls due next; None if nothing will ever be fired.

        One that is paused stops no clock: its occurrences are passed over when another one does.
        """
        found = [
            Upcoming(record.id, str(body.timing), body.fire_ms(record.id, body.next_ms))
            async for record in all_schedules(self._storage)
            if (body := record.body).next_ms is not None and not body.is_paused
        ]
        return min(found, key=attrgetter("due_ms"), default=None)
