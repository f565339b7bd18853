"""The model of why a job does not run: everything is counted anew."""

from __future__ import annotations

from headrace.fairness import is_window
from headrace.job import JobState
from headrace.storage.situation import Before, GateStanding, NextRun, Situation
from headrace.strike import Strike
from tests.model.gates import names_of
from tests.model.maintenance import InspectorModel
from tests.model.places import WAITING, QueueState, Record
from tests.model.strikes import StrikeModel, by_age, is_laid_aside


class WhyModel(StrikeModel, InspectorModel):
    """Adds ``why``; the ids of those that have places are sorted."""

    def why(self, queue: str, job_id: str) -> Situation | None:
        """Return how a job stands."""
        record, q = self.get(queue, job_id), self.queue(queue)
        if record is None:
            return None
        job, followed = q.jobs[job_id], q.successors.get(job_id)
        known = {worker.incarnation: worker for worker in self.workers(queue)}
        live = [
            worker
            for worker in known.values()
            if not worker.is_condemned
            and worker.silent_ms <= q.workers[worker.incarnation].lease_ms
        ]
        return Situation(
            record=record,
            now_ms=self.now,
            is_paused=q.is_paused,
            max_active=q.settings.max_active,
            active=self.counts(q)["active"],
            before=_before(q, job),
            next=NextRun(followed.job.created, followed.job.due or 0) if followed else None,
            gates=self._standings(q, job),
            strikes=_strikes(q, job),
            struck_before=self._struck_before(q, job),
            owner=known.get(job.owner) if job.state is JobState.ACTIVE else None,
            workers=live,
            has_more_workers=False,
        )

    def _struck_before(self, q: QueueState, job: Record) -> Before | None:
        if not is_laid_aside(job):
            return None
        return Before([one.id for one in self._line(q, job.parked)].index(job.id))

    def _standings(self, q: QueueState, job: Record) -> list[GateStanding]:
        if job.state not in (JobState.QUEUED, JobState.BLOCKED):
            return []
        return [self._standing(q, job, name) for name in names_of(job)]

    def _standing(self, q: QueueState, job: Record, name: str) -> GateStanding:
        limit, _, key = name.partition("\t")
        is_turn = is_window(name)
        holders = [
            one
            for one in q.jobs.values()
            if name in names_of(one)
            and (one.state is JobState.QUEUED or (one.state is JobState.ACTIVE and not is_turn))
        ]
        ready = sum(one.state is JobState.QUEUED for one in holders)
        line = [one.id for one in self._line(q, name)]
        return GateStanding(
            name=limit,
            key=key,
            terms=self.terms(q, name) if limit in q.limits else None,
            ready=ready,
            active=len(holders) - ready,
            tokens=self._tokens(q, name),
            token_in_ms=self._token_in(q, name, 1 if job.state is JobState.QUEUED else ready + 1),
            before=Before(line.index(job.id)) if job.id in line else None,
            holders=sorted(one.id for one in holders),
        )

    def _token_in(self, q: QueueState, name: str, needed: int) -> int | None:
        terms, bucket = self.terms(q, name), self._bucket(q, name)
        if not terms.rate or needed > terms.burst:
            return None
        missing = bucket.owed - (terms.burst - needed) * bucket.rate_ms
        return max(0, -(-missing // bucket.rate))


def _strikes(q: QueueState, job: Record) -> list[Strike]:
    if job.state not in WAITING:
        return []
    return [one for one in by_age(q) if one.task in ("", job.task)]


def _before(q: QueueState, job: Record) -> Before | None:
    if job.state is not JobState.QUEUED:
        return None
    better = sum(len(q.ready.get((job.lane, tier), [])) for tier in range(job.tier + 1, 10))
    return Before(better + q.ready[job.lane, job.tier].index(job.id))
