"""Storages that are wrong about why a job does not run, each in one way."""

from __future__ import annotations

from abc import ABC, abstractmethod

import msgspec

from headrace.storage.situation import Before, Situation
from headrace.storage.sqlite.storage import SqliteStorage


class ToldOtherwise(SqliteStorage, ABC):
    """Changes what it tells of a job."""

    @abstractmethod
    def other(self, told: Situation) -> Situation:
        """Return what it tells instead."""

    async def why(self, queue: str, job_id: str) -> Situation | None:
        told = await super().why(queue, job_id)
        return None if told is None else self.other(told)


class SeesNobodyBefore(ToldOtherwise):
    """Takes every ready job for the next."""

    def other(self, told: Situation) -> Situation:
        return msgspec.structs.replace(told, before=told.before and Before(0))


class TellsOneGate(ToldOtherwise):
    """Tells of the first limit only."""

    def other(self, told: Situation) -> Situation:
        return msgspec.structs.replace(told, gates=told.gates[:1])


class NamesOneHolder(ToldOtherwise):
    """Names one of those that have places."""

    def other(self, told: Situation) -> Situation:
        gates = [msgspec.structs.replace(gate, holders=gate.holders[:1]) for gate in told.gates]
        return msgspec.structs.replace(told, gates=gates)


class SeesNobodyInLine(ToldOtherwise):
    """Takes everyone in the line of a limit for the first."""

    def other(self, told: Situation) -> Situation:
        gates = [
            msgspec.structs.replace(gate, before=gate.before and Before(0)) for gate in told.gates
        ]
        return msgspec.structs.replace(told, gates=gates)


class HidesWhatFollows(ToldOtherwise):
    """Tells of no job that follows."""

    def other(self, told: Situation) -> Situation:
        return msgspec.structs.replace(told, next=None)


class TakesTheSilentForAlive(SqliteStorage):
    """Tells of workers that have not beaten for their lease, too."""

    async def why(self, queue: str, job_id: str) -> Situation | None:
        told = await super().why(queue, job_id)
        known = [worker for worker in await self.workers(queue) if not worker.is_condemned]
        return None if told is None else msgspec.structs.replace(told, workers=known)


WHY_MUTANTS = (
    SeesNobodyBefore,
    TellsOneGate,
    NamesOneHolder,
    SeesNobodyInLine,
    HidesWhatFollows,
    TakesTheSilentForAlive,
)
"""Each is wrong in one way."""
