"""The scheduler as its users see it, where no worker is to fire schedules."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import anyio

from headrace.app import App, clients_of, declared_of
from headrace.events import Emit, SchedulerStarted, SchedulerStopped
from headrace.guard import Guard
from headrace.job import check_text
from headrace.listening import listen
from headrace.logs.lines import emitter
from headrace.outage import ClientOutage, connect
from headrace.scheduler.service import SchedulerService
from headrace.storage.base import Storage, check_keeps_schedules
from headrace.twin import AppTwin, app_of

STALL_S = 60.0
"""How long the event loop may stand still before it counts as dead: four leases of a worker."""


class Scheduler:
    """Fires the schedules of an app's tenant, until it is stopped; it runs no jobs.

    Every `Worker` does this too, so a program needs one only where its workers are to have none.
    Any number may run at once, beside workers: an occurrence brings one job.

    Args:
        app: whose declared schedules are stored, and where all those of its tenant are.
        declares: whether to store what the app declares; else it fires what is stored by others.
        name: shown in logs, default ``host:pid``.
        emit: called with every event, default: to the logger ``headrace`` of `logging`.

    Raises:
        UsageError: a declared schedule is not valid.
        AppImportError: a module that the app includes can't be imported.
        InvalidOption: the name is not valid, or ``emit`` is no plain function.
    """

    def __init__(
        self,
        app: App[Any] | AppTwin[Any],
        *,
        declares: bool = True,
        name: str | None = None,
        emit: Emit | None = None,
    ) -> None:
        app = app_of(app)
        app.load()
        self._app = app
        self._declared = declared_of(app) if declares else None
        own_name = f"{socket.gethostname()}:{os.getpid()}"
        self.name: str = check_text(own_name if name is None else name, what="scheduler name")
        self._emit = emitter(emit)
        self._guard = Guard(self._emit)
        self._outage = ClientOutage(self._emit)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._service: SchedulerService | None = None
        self._is_stopping = False

    @property
    def app(self) -> App[Any]:
        """The app whose schedules it knows."""
        return self._app

    @property
    def is_ready(self) -> bool:
        """Whether its last look was answered, all that it does is done, and it is not stopping."""
        service = self._service
        is_firing = service is not None and service.is_firing
        return is_firing and self._guard.is_whole and not self._is_stopping

    @property
    def is_alive(self) -> bool:
        """Whether the event loop turns: it has gone round within a minute."""
        return self._service is None or self._service.stalled_s <= STALL_S

    def stop(self) -> None:
        """Fire no more, and end after what it is at.

        May be called in any thread, in a signal handler, and before `run`.
        """
        self._is_stopping = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it was closed: the scheduler has ended
                self._loop.call_soon_threadsafe(self._act)

    def _act(self) -> None:
        if self._service is not None and self._is_stopping:
            self._service.stop()

    async def run(self) -> None:
        """Run until `stop`; one call a scheduler.

        Raises:
            StorageUnavailable: the storage could not be reached for ten seconds at the start.
            StorageRefused: it can't be used, or keeps no schedules.
        """
        self._loop = asyncio.get_running_loop()
        storage = clients_of(self._app).open_storage()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(storage.aclose)
            check_keeps_schedules(storage)
            await connect(storage.check, self._outage, is_over=lambda: self._is_stopping)
            if not self._is_stopping:
                app = "" if self._declared is None else self._declared.app
                self._emit(SchedulerStarted(scheduler=self.name, app=app))
                await self._serve(storage)
        self._emit(SchedulerStopped(scheduler=self.name))

    async def _serve(self, storage: Storage) -> None:
        channel = storage.open_channel()
        service = self._service = SchedulerService(
            storage,
            self._declared,
            channel=channel.name,
            emit=self._emit,
            guard=self._guard,
            outage=self._outage,
        )
        self._act()  # on what was asked for meanwhile
        async with anyio.create_task_group() as group:
            group.start_soon(partial(listen, channel, service.hear, guard=self._guard))
            await service.run()
            group.cancel_scope.cancel()
