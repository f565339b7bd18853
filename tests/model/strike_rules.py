"""The rules of strikes: they are set and lifted, and jobs run into them."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis.stateful import rule

from headrace.job import JobState
from tests.model import asks
from tests.model.memory import MachineMemory
from tests.model.subjects import QUEUE

strikes = st.sampled_from((*sorted(asks.STRIKES), *[asks.STRUCK_BY] * 2))
kinds = st.lists(st.sampled_from(("", "urgent", "limited", "in a process")), max_size=4)


class StrikeRules(MachineMemory):
    """The rules of what keeps jobs from being run."""

    @rule(strike=strikes)
    def strike(self, strike: str) -> None:
        self._hit("strike")
        self._driver.call("strike", asks.STRIKES[strike])

    @rule(strike=strikes)
    def lift(self, strike: str) -> None:
        self._hit("lift")
        self._driver.call("lift", strike)
        self._driver.call("strikes")

    @rule(
        strike=strikes,
        worker=st.sampled_from(asks.WORKERS[:2]),
        kinds=kinds,
        struck=st.integers(0, 3),
        lifts=st.booleans(),
    )
    def strike_some(
        self, strike: str, worker: str, kinds: list[str], struck: int, *, lifts: bool
    ) -> None:
        """Enqueue some jobs, have a worker meet a strike, and lift it again."""
        self._hit("strike some")
        if self._driver.model.queue(QUEUE).is_paused:
            self._driver.call("resume")
        self._driver.call("strike", asks.STRIKES[strike])
        jobs = self._new_jobs([("", [kind] if kind else []) for kind in kinds])
        if jobs:
            self._numbered("enqueue", jobs, call=self._next_call("enqueue", asks.CLIENTS[0]))
        self._revive(worker)
        self._claim_two(worker)
        held = self._driver.model.queue(QUEUE).held_by(worker)
        settlements = [
            asks.settlement_of(job, "struck") for job in held if job.state is JobState.ACTIVE
        ][:struck]
        if settlements:
            self._numbered("settle", settlements, call=self._next_call("settle", worker))
        if lifts:
            self._driver.call("lift", strike)
            self._claim_two(worker)

    def _claim_two(self, worker: str) -> None:
        call = self._next_call("claim", worker)
        asked = {"call": call, "nonce": self._nonce(call), "slots": {"default": 2}}
        self._remember(worker, self._numbered("claim", **asked).jobs)
