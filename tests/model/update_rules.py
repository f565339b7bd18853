"""The rules of updates: of active jobs, whose successors come in or change them."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis.stateful import rule

from headrace.job import Claim, JobState
from headrace.storage.values import Settlement
from tests.model import asks
from tests.model.memory import MachineMemory
from tests.model.subjects import QUEUE

UPDATING = "updates"
ENDS = ("put back to the head", "reap", "retire", "cancel", "cancel the next alone", "nothing")
LATER = ("in 1 ms", "in an hour", "at a time")
"""Kinds of jobs that wait for a time: half of what updates ask for."""
updates = st.tuples(
    st.sampled_from(sorted(asks.UPDATES)),
    st.lists(
        st.one_of(st.sampled_from(LATER), st.sampled_from(sorted(asks.JOB_KINDS))), max_size=2
    ),
)

ends = st.one_of(st.sampled_from(ENDS), st.sampled_from(sorted(asks.OUTCOMES)))


class UpdateRules(MachineMemory):
    """The rules of what changes jobs."""

    @rule(
        job_id=st.sampled_from(asks.IDS),
        kinds=st.lists(st.sampled_from(sorted(asks.JOB_KINDS)), max_size=1),
        drawn=st.lists(updates, min_size=1, max_size=3),
    )
    def update(self, job_id: str, kinds: list[str], drawn: list[tuple[str, list[str]]]) -> None:
        """Enqueue a job, and change it in the same call or in others."""
        self._hit("update")
        jobs = [(job_id, kinds), *((job_id, [*kinds, update]) for update, kinds in drawn)]
        self._enqueue(jobs[:2])
        for job in jobs[2:]:
            self._enqueue([job])

    @rule(
        worker=st.sampled_from(asks.WORKERS[:2]),
        job_id=st.sampled_from(asks.IDS),
        kinds=st.lists(
            st.sampled_from(("two lives", "fragile", "watched", "in the lane of its task"))
        ),
        drawn=st.lists(updates, min_size=1, max_size=2),
        ends=st.lists(ends, min_size=2, max_size=4),
    )
    def update_an_active_one(
        self,
        worker: str,
        job_id: str,
        kinds: list[str],
        drawn: list[tuple[str, list[str]]],
        ends: list[str],
    ) -> None:
        """Enqueue, claim, enqueue updates, and end the attempt; in several ways."""
        for how in ends:
            if self._driver.model.queue(QUEUE).is_paused:
                self._driver.call("resume")
            self._revive(worker)
            self._enqueue([(job_id, [*kinds, UPDATING])])
            self._claim_all(worker)
            for update, its_kinds in drawn:
                self._enqueue([(job_id, [*its_kinds, update])])
            self._driver.call("get", job_id)
            self._driver.why(job_id)
            self._end(worker, job_id, how)

    def _enqueue(self, jobs: Sequence[tuple[str, list[str]]]) -> None:
        call = self._next_call("enqueue", asks.CLIENTS[0])
        self._numbered("enqueue", self._new_jobs(jobs), call=call)

    def _claim_all(self, worker: str) -> None:
        call = self._next_call("claim", worker)
        slots = {"default": 10, "process": 10, "gpu": 10}
        reply = self._numbered("claim", call=call, nonce=self._nonce(call), slots=slots)
        self._remember(worker, reply.jobs)

    def _end(self, worker: str, job_id: str, how: str) -> None:
        """End the attempt of a job that the worker has, if it has it still."""
        job = self._driver.model.queue(QUEUE).jobs.get(job_id)
        if job is None or job.state is not JobState.ACTIVE or job.owner != worker:
            return
        self._hit(f"end an attempt of an updated job: {how if how in ENDS else 'settle'}")
        claim = Claim(job.epoch, job.nonce)
        if how in asks.OUTCOMES:
            settlement = Settlement(job_id, claim, 120, asks.OUTCOMES[how])
            self._numbered("settle", [settlement], call=self._next_call("settle", worker))
        elif how == "put back to the head":
            self._driver.call("put_back", worker, [(job_id, claim)])
        elif how == "reap":
            seen = self._driver.model.queue(QUEUE).workers[worker].count
            self._driver.call("reap", worker, seen=seen, error=asks.DEATH)
        elif how == "retire":
            self._driver.call("retire", worker)
        elif how != "nothing":
            self._driver.call("cancel", [job_id], only_next=how != "cancel")
        self._forget_numbers(worker)
