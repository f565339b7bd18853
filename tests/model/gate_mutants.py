"""Embedded storages whose limits are wrong in one way each, which the machine must find out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

import msgspec

from headrace.job import CancelOutcome, JobState, Verdict
from headrace.limit import Terms, gates_text, read_gates
from headrace.request import JobRequest
from headrace.storage.gates import GateInfo
from headrace.storage.incarnations import ClaimReply, IncarnationInfo, SlotsAsked
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.storage.values import CallId, Settlement


class ChangesGates(SqliteStorage, ABC):
    """Takes something else for the gates that jobs name."""

    @abstractmethod
    def changed(self, gates: str) -> str:
        """Return what it takes gates for."""

    async def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[Verdict]:
        changed = [
            msgspec.structs.replace(job, gates=self.changed(job.gates)) if job.gates else job
            for job in jobs
        ]
        return await super().enqueue(queue, changed, call=call)


class HoldsNobodyUp(ChangesGates):
    """Keeps no gates of jobs."""

    def changed(self, gates: str) -> str:
        return ""


class SeesOneGate(ChangesGates):
    """Looks at the first gate of a job alone."""

    def changed(self, gates: str) -> str:
        return gates.partition("\n")[0]


class HasOneKey(ChangesGates):
    """Does not tell keys apart."""

    def changed(self, gates: str) -> str:
        alike = [msgspec.structs.replace(gate, key="k") for gate in read_gates(gates)]
        return gates_text(alike)


class AsksGatesBackwards(ChangesGates):
    """Has jobs wait at the last gate that holds them up, and not at the first."""

    def changed(self, gates: str) -> str:
        return gates_text(read_gates(gates)[::-1])


class AllowsOneMore(ChangesGates):
    """Has room for one job more than a limit says."""

    def changed(self, gates: str) -> str:
        found = []
        for gate in read_gates(gates):
            terms = gate.terms
            if terms is not None and terms.concurrency:
                terms = msgspec.structs.replace(terms, concurrency=terms.concurrency + 1)
            found.append(msgspec.structs.replace(gate, terms=terms))
        return gates_text(found)


class IgnoresOperators(SqliteStorage):
    """Takes no terms but those that are declared."""

    async def set_limit(self, queue: str, name: str, terms: Terms | None) -> None:
        await super().set_limit(queue, name, None)


class IgnoresWorkers(SqliteStorage):
    """Takes no terms of workers."""

    async def register(self, queue: str, worker: IncarnationInfo) -> None:
        await super().register(queue, msgspec.structs.replace(worker, limits={}))


class SpoilsGates(SqliteStorage):
    """Does something to its gates before a call."""

    async def spoil(self, verb: str, sql: str) -> None:
        """Run a statement as a part of a verb."""
        await self._do(verb, lambda step: step.db.execute(sql).rowcount)


class NeverOpens(SpoilsGates):
    """Leaves those in line who could go on when an attempt ends."""

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        await self.spoil("settle", "UPDATE gates SET active = active + 9")
        settled = await super().settle(queue, settlements, call=call)
        await self.spoil("settle", "UPDATE gates SET active = active - 9")
        return settled


class ForgetsWhenGatesAreDue(SpoilsGates):
    """Opens no gate whose token has come."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        await self.spoil("claim", "UPDATE queues SET gate_due_ms = NULL")
        return await super().claim(queue, call=call, nonce=nonce, slots=slots)


class GivesTokensForNothing(SpoilsGates):
    """Lets a start cost no token."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        reply = await super().claim(queue, call=call, nonce=nonce, slots=slots)
        await self.spoil("claim", "UPDATE gates SET owed = 0")
        return reply


class KeepsThePlacesOfTheCancelled(SpoilsGates):
    """Does not give back what a job has that is cancelled before its start."""

    async def cancel(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        only_next: bool = False,
        states: Collection[JobState] = (),
    ) -> list[CancelOutcome]:
        await self.spoil("cancel", "UPDATE jobs SET gates = NULL WHERE state = 'queued'")
        return await super().cancel(queue, job_ids, only_next=only_next, states=states)


class PurgesNobodyInLine(SqliteStorage):
    """Spares blocked jobs."""

    async def purge(self, queue: str, state: JobState, job_ids: Sequence[str]) -> int:
        if state is JobState.BLOCKED:
            return 0
        return await super().purge(queue, state, job_ids)


class TurnsLinesRound(SpoilsGates):
    """Lets the last in a line go on first."""

    async def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        await self.spoil("settle", "UPDATE jobs SET number = -number WHERE parked IS NOT NULL")
        return await super().settle(queue, settlements, call=call)


class ShowsNobodyInLine(SqliteStorage):
    async def gate(self, queue: str, name: str, key: str) -> GateInfo:
        return msgspec.structs.replace(await super().gate(queue, name, key), blocked=0)


GATE_MUTANTS = (
    HoldsNobodyUp,
    SeesOneGate,
    HasOneKey,
    AsksGatesBackwards,
    AllowsOneMore,
    IgnoresOperators,
    IgnoresWorkers,
    NeverOpens,
    ForgetsWhenGatesAreDue,
    GivesTokensForNothing,
    KeepsThePlacesOfTheCancelled,
    PurgesNobodyInLine,
    TurnsLinesRound,
    ShowsNobodyInLine,
)
"""Each is wrong in one way."""
