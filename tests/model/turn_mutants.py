"""Embedded storages that are unfair in one way each, which the machine must find out."""

from __future__ import annotations

import msgspec

from headrace.limit import gates_text, read_gates
from headrace.storage.incarnations import ClaimReply, SlotsAsked
from headrace.storage.values import CallId
from tests.model.gate_mutants import ChangesGates, SpoilsGates


class TakesNoTurns(ChangesGates):
    """Runs jobs in the order in which they come, whatever their keys are."""

    def changed(self, gates: str) -> str:
        return gates_text(gate for gate in read_gates(gates) if gate.name != "fair")


class HasOneKeyForAll(ChangesGates):
    """Does not tell keys that take turns apart."""

    def changed(self, gates: str) -> str:
        said = read_gates(gates)
        return gates_text(
            msgspec.structs.replace(gate, key="k") if gate.name == "fair" else gate for gate in said
        )


class LetsThemInWhereTheyCame(SpoilsGates):
    """Has the next of a key stand before all others, and not behind them."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        reply = await super().claim(queue, call=call, nonce=nonce, slots=slots)
        let_in = "UPDATE jobs SET seq = -key WHERE state = 'queued' AND gates LIKE 'fair:%'"
        await self.spoil("claim", let_in)
        return reply


class LetsNobodyInDuringAClaim(SpoilsGates):
    """Takes one job of a key in a claim, whatever slots are left."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        await self.spoil("claim", "UPDATE gates SET ready = ready + 9 WHERE name LIKE 'fair:%'")
        reply = await super().claim(queue, call=call, nonce=nonce, slots=slots)
        await self.spoil("claim", "UPDATE gates SET ready = ready - 9 WHERE name LIKE 'fair:%'")
        return reply


class KeepsTiersStrict(SpoilsGates):
    """Gives lower tiers one start in a million."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        await self.spoil("claim", "UPDATE queues SET aging = aging + 1000000 WHERE aging > 0")
        reply = await super().claim(queue, call=call, nonce=nonce, slots=slots)
        await self.spoil("claim", "UPDATE queues SET aging = aging - 1000000 WHERE aging > 0")
        return reply


class ForgetsWhatClaimsTook(SpoilsGates):
    """Counts for the share of lower tiers by each claim alone."""

    async def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        await self.spoil("claim", "UPDATE queues SET aged = 0")
        return await super().claim(queue, call=call, nonce=nonce, slots=slots)


TURN_MUTANTS = (
    TakesNoTurns,
    HasOneKeyForAll,
    LetsThemInWhereTheyCame,
    LetsNobodyInDuringAClaim,
    KeepsTiersStrict,
    ForgetsWhatClaimsTook,
)
"""Each is unfair in one way."""
