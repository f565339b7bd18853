"""The rules of limits: their terms change, and who waits in their lines goes on."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis.stateful import rule

from headrace.job import JobState
from tests.model import asks
from tests.model.memory import MachineMemory
from tests.model.subjects import QUEUE

LIMITED = tuple(kind for kind, options in sorted(asks.JOB_KINDS.items()) if "gates" in options)
limited = st.lists(st.sampled_from(LIMITED), min_size=1, max_size=3)
ASKED_WHY = 2
"""Jobs in line that are asked about at a time."""


class GateRules(MachineMemory):
    """The rules of what limits jobs."""

    @rule(limit=st.sampled_from(asks.LIMITS), terms=st.sampled_from(sorted(asks.TERMS)))
    def set_limit(self, limit: str, terms: str) -> None:
        self._hit("set_limit")
        self._driver.call("set_limit", limit, asks.TERMS[terms])

    @rule(
        worker=st.sampled_from(asks.WORKERS[:2]),
        kinds=limited,
        copies=st.integers(1, 3),
        outcomes=st.lists(st.sampled_from(sorted(asks.OUTCOMES)), min_size=1, max_size=3),
        limit=st.sampled_from(asks.LIMITS),
        key=st.sampled_from(("k", "")),
        is_purged=st.booleans(),
    )
    def crowd(
        self,
        worker: str,
        kinds: list[str],
        outcomes: list[str],
        limit: str,
        key: str,
        *,
        copies: int,
        is_purged: bool,
    ) -> None:
        """Enqueue more jobs than limits have room for, run some of them, and ask how it stands."""
        self._hit("crowd")
        if self._driver.model.queue(QUEUE).is_paused:
            self._driver.call("resume")
        jobs = self._new_jobs([("", [kind]) for kind in kinds * copies])
        self._numbered("enqueue", jobs, call=self._next_call("enqueue", asks.CLIENTS[0]))
        for outcome in outcomes:
            self._revive(worker)
            call = self._next_call("claim", worker)
            kwargs = {"call": call, "nonce": self._nonce(call), "slots": {"default": 2}}
            self._remember(worker, self._numbered("claim", **kwargs).jobs)
            for job_id in self._all_in(JobState.BLOCKED)[-ASKED_WHY:]:
                self._driver.why(job_id)
            self._settle_one(worker, outcome)
        jobs_now = self._driver.model.queue(QUEUE).jobs.values()
        if is_purged:
            self._driver.call("purge", JobState.BLOCKED, self._all_in(JobState.BLOCKED)[:2])
        asked = {f"{limit}\t{key}", *(job.parked for job in jobs_now)}
        for name, _, its_key in sorted(gate.partition("\t") for gate in asked):
            if name in asks.LIMITS:
                self._driver.call("gate", name, its_key)
        self._driver.call("limits")

    def _settle_one(self, worker: str, outcome: str) -> None:
        held = self._driver.model.queue(QUEUE).held_by(worker)
        for job in [job for job in held if job.state is JobState.ACTIVE][:1]:
            settlement = asks.settlement_of(job, outcome)
            self._numbered("settle", [settlement], call=self._next_call("settle", worker))
