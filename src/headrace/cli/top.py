"""``headrace top``: a live view of queues, rates, ages and workers."""

from __future__ import annotations

import os
import signal

import anyio
import click
from anyio.abc import TaskGroup

from headrace.cli.app_target import on_app_target
from headrace.cli.live import look_forever
from headrace.cli.options import Target, duration_option, option, run
from headrace.cli.output import echo_styled
from headrace.cli.overview import Overview, look, view
from headrace.cli.screen import Screen
from headrace.storage.base import Storage

LEAST_INTERVAL_S = 0.1
QUIT = "qQ\x04"  # q or Ctrl-D; Ctrl-C is a signal
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@duration_option("--interval", default="2s", help="The pause between two looks.")
@option("--once", is_flag=True, help="Show it once, in lines, and end.")
@on_app_target
def top(*, target: Target, interval: float, once: bool) -> None:
    """Show queues, rates, ages and workers, live.

    It goes on showing how they change; q or Ctrl-C quits. Rates and percentiles are those of the
    last minute; the busiest queues come first. Where standard output is no terminal, it is shown
    once.
    """
    is_live = Screen.is_possible() and not once
    stopped_by = run(_top(target, max(interval, LEAST_INTERVAL_S) if is_live else None))
    if stopped_by in (signal.SIGTERM, signal.SIGHUP):
        raise SystemExit(128 + stopped_by)


async def _top(target: Target, every_s: float | None) -> int:
    """Show the view; return which signal ended it, 0 for none."""
    async with target.open() as storage:
        if every_s is None:
            for line in view(await look(storage, target.where), columns=0, rows=0):
                echo_styled(line)
            return 0
        found = await look(storage, target.where)
        with Screen() as screen:
            return await LiveView(storage, target.where, screen, found, every_s).run()


class LiveView:
    """The view on a screen, which is drawn anew with each look and when its size changes."""

    def __init__(
        self, storage: Storage, where: str, screen: Screen, found: Overview, every_s: float
    ) -> None:
        self._storage = storage
        self._where = where
        self._screen = screen
        self._found = found
        self._every_s = every_s
        self._notice = ""
        self._stopped_by = 0

    async def run(self) -> int:
        """Show it until a key or a signal ends it; return which signal, 0 for none."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._obey_signals, group)
            group.start_soon(self._obey_keys, group)
            await look_forever(self._look, every_s=self._every_s, remark=self._remark)
        return self._stopped_by

    async def _look(self) -> None:
        self._found = await look(self._storage, self._where)
        self._notice = ""
        self._draw()

    def _remark(self, text: str) -> None:
        self._notice = text
        self._draw()

    def _draw(self) -> None:
        columns, rows = self._screen.size
        self._screen.draw(
            view(self._found, columns=columns, rows=rows, hint="q quits", notice=self._notice)
        )

    async def _obey_keys(self, group: TaskGroup) -> None:
        while not set(QUIT) & set(await self._screen.key()):
            pass
        group.cancel_scope.cancel()

    async def _obey_signals(self, group: TaskGroup) -> None:
        with anyio.open_signal_receiver(signal.SIGWINCH, signal.SIGTSTP, *STOPS) as signals:
            async for number in signals:
                if number == signal.SIGWINCH:
                    self._draw()
                elif number == signal.SIGTSTP:
                    self._screen.leave()
                    os.kill(os.getpid(), signal.SIGSTOP)
                    self._screen.enter()
                    self._draw()
                else:
                    self._stopped_by = number
                    group.cancel_scope.cancel()
