"""Storages that are wrong about jobs of several slots, in one way each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import msgspec

from headrace.job import Verdict
from headrace.request import JobRequest
from headrace.storage.incarnations import ClaimReply, FreeSlots, SlotsAsked, free_slots
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId


class TakesAllForLight(SqliteStorage):
    """Stores no slots of jobs."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        light = [msgspec.structs.replace(job, slots=1) for job in jobs]
        return await super().enqueue(queue, light, call=call)


class ChangesSlots(SqliteStorage, ABC):
    """Takes something else for the slots of those who claim."""

    @abstractmethod
    def changed(self, asked: FreeSlots) -> FreeSlots:
        """Return what it takes slots for."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        changed = {lane: self.changed(free_slots(asked)) for lane, asked in slots.items()}
        return await super().claim(queue, call=call, nonce=nonce, slots=changed)


class LetsLightJobsOvertake(ChangesSlots):
    """Passes over what needs more slots than are free."""

    def changed(self, asked: FreeSlots) -> FreeSlots:
        return FreeSlots(asked.free, asked.free)


class HoldsUpTheSmall(ChangesSlots):
    """Lets who is too small for a job wait for it too."""

    def changed(self, asked: FreeSlots) -> FreeSlots:
        return FreeSlots(asked.free, 1_000)


class GivesMoreThanThereIs(ChangesSlots):
    """Lets a job start with one slot less than it needs."""

    def changed(self, asked: FreeSlots) -> FreeSlots:
        return FreeSlots(asked.free + 1, asked.total) if asked.free else asked


class TellsNobodyToWait(SqliteStorage):
    """Does not say for how many slots to wait."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        reply = await super().claim(queue, call=call, nonce=nonce, slots=slots)
        return msgspec.structs.replace(reply, awaited={})


SLOT_MUTANTS = (
    TakesAllForLight,
    LetsLightJobsOvertake,
    HoldsUpTheSmall,
    GivesMoreThanThereIs,
    TellsNobodyToWait,
)
