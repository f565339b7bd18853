"""Which faults strike when, by the seed of a run, and that they do.

=================  =====  ====================================================================
processes          both   kill-worker, kill-several, kill-supervised, kill-supervisor,
                          kill-slot, restart-worker (SIGTERM), pause-briefly and pause-long
                          (SIGSTOP below and above the lease), kill-producer, kill-reader
processes          file   kill-writing (in the middle of a commit)
server             redis  restart (SIGKILL), load (-LOADING for seconds), stop-briefly and
                          stop-long (SIGSTOP), pause-clients (CLIENT PAUSE), kill-clients and
                          kill-subscribers (CLIENT KILL), flush-functions, fill-memory
network            redis  drop-replies, reset, half-close, stall-briefly, half-open,
                          stall-one-way, partition, slice-bytes, delay
disk               file   fill-disk, hold-lock, delete-sockets
=================  =====  ====================================================================

Beside them some jobs kill their worker or process, hang in it, or raise what can't be described
(`tests.chaos.plan`). What the kernel would have to do, such as lost packets and power cuts, has no
place here.
"""

from __future__ import annotations

import asyncio
import sys
import time

from tests.chaos.disk_faults import DISK_FAULTS
from tests.chaos.network_faults import NETWORK_FAULTS
from tests.chaos.process_faults import PROCESS_FAULTS
from tests.chaos.server_faults import SERVER_FAULTS
from tests.chaos.site import Site
from tests.chaos.strike import Fault, Strike
from tests.crash.crew import passed
from tests.support.until import until

CATALOGUE: tuple[Fault, ...] = (*PROCESS_FAULTS, *SERVER_FAULTS, *NETWORK_FAULTS, *DISK_FAULTS)
CALM = 0.05
"""The part of the time at both ends in which nothing strikes."""


class Storm:
    """The faults of a run.

    Args:
        site: where they strike.

    Attributes:
        failed: faults that could not be brought about.
        count: how many struck.
    """

    def __init__(self, site: Site) -> None:
        self.failed: list[str] = []
        self.count = 0
        self._site = site

    def deal(self) -> list[tuple[float, Fault]]:
        """Return the faults with their times: every kind once before any comes twice."""
        settings = self._site.settings
        deck = [
            fault
            for fault in CATALOGUE
            if settings.storage in fault.storages
            and (not settings.only or fault.name in settings.only)
            and fault.name not in settings.leave_out
        ]
        dealt: list[Fault] = []
        while deck and len(dealt) < settings.faults:
            self._site.random.shuffle(deck)
            dealt += deck
        del dealt[settings.faults :]
        first, last = CALM * settings.seconds, (1 - CALM) * settings.seconds
        times = sorted(self._site.random.uniform(first, last) for _ in dealt)
        return list(zip(times, dealt, strict=True))

    async def blow(self) -> None:
        """Let all of them strike, at their times, and wait until they are over."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for at, fault in self.deal():
                await passed(max(0.0, began + at - time.monotonic()))
                group.create_task(self._strike(fault))

    async def _strike(self, fault: Fault) -> None:
        strike = Strike(self._site, fault.name)
        try:
            await fault.strike(strike)
        except Exception as error:
            self.failed.append(f"{fault.name}: {type(error).__name__} {error}")
        finally:
            strike.over()
        self.count += 1
        sys.stdout.write(f"  {fault.name}\n")


async def attend(site: Site) -> None:
    """Look after everybody, until cancelled."""

    def look() -> bool:
        site.attend()
        return False

    await until(look, within=float("inf"))
