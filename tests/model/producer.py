"""The model of what brings jobs in and asks how they end."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import StaleCall
from headrace.job import DEFAULT_LANE, CancelOutcome, EnqueueOutcome, JobState
from headrace.request import JobRequest
from headrace.storage.values import CallId, End
from tests.model.places import MESSAGE_LIMIT, WAITING, QueueState, Record, Remembered
from tests.model.state import State

CALLS_REMEMBERED = 2


class ProducerModel(State):
    """``enqueue``, ``cancel``, ``watch``."""

    def enqueue(
        self, queue: str, jobs: Sequence[JobRequest], *, call: CallId
    ) -> list[EnqueueOutcome]:
        """Store jobs, unless the call is a repetition.

        Raises:
            StaleCall: a newer call than this was answered in its place.
        """
        q = self.queue(queue)
        slot = call.number % CALLS_REMEMBERED
        known = q.calls.get(call.client, {}).get(slot)
        if known is not None and known.number == call.number:
            return list(known.answer)
        if known is not None and call.number < known.number:
            raise StaleCall(f"enqueue call {call.number} is older than {known.number}")
        answer = [self._enqueue(q, job) for job in jobs]
        slots = q.calls.setdefault(call.client, {})
        slots[slot] = Remembered(call.number, answer, self.now)
        return list(answer)

    def _enqueue(self, q: QueueState, job: JobRequest) -> EnqueueOutcome:
        standing = q.jobs.get(job.id)
        if standing is not None and standing.state is JobState.COMPLETED:
            return EnqueueOutcome.COMPLETED
        if standing is not None and not standing.state.is_terminal:
            self.add_channel(standing, job.channel)
            standing.joined = standing.joined or bool(job.channel)
            return EnqueueOutcome.DUPLICATE
        if standing is not None and not job.replaces_ended:
            return EnqueueOutcome.DUPLICATE
        if standing is not None:
            self.erase(q, standing)
        self.leave_old_place(q, job.id)
        record = self._new_record(q, job)
        q.jobs[job.id] = record
        q.outputs.pop(job.id, None)
        self.tally(q, "enqueued")
        due = self.now + job.delay_ms if job.delay_ms else job.run_at_ms
        if due > self.now:
            self.put_delayed(q, record, JobState.SCHEDULED, due)
            self.note("scheduled", job, due=due)
            return EnqueueOutcome.SCHEDULED
        self.put_ready(q, record, at_head=False)
        self.note("queued", job)
        return EnqueueOutcome.QUEUED

    def _new_record(self, q: QueueState, job: JobRequest) -> Record:
        return Record(
            id=job.id,
            task=job.task,
            payload=job.payload,
            tier=job.priority,
            lane=job.lane or q.lanes.get(job.task, DEFAULT_LANE),
            created=self.now,
            at=self.now,
            state=JobState.QUEUED,
            expires=self.now + job.expires_in_ms if job.expires_in_ms else job.expires_at_ms,
            max_stalls=job.max_stalls,
            keep=job.keep_ms,
            options=job.options,
            channels=[job.channel] if job.channel else [],
        )

    def cancel(self, queue: str, job_ids: Sequence[str]) -> list[CancelOutcome]:
        """End waiting jobs, ask active ones to stop."""
        q = self.queue(queue)
        outcomes = [self._cancel(q, q.jobs.get(job_id)) for job_id in job_ids]
        self.trim(q)
        return outcomes

    def _cancel(self, q: QueueState, job: Record | None) -> CancelOutcome:
        if job is None:
            return CancelOutcome.NOT_FOUND
        if job.state is JobState.CANCELLED:
            return CancelOutcome.CANCELLED
        if job.state.is_terminal:
            return CancelOutcome.FINISHED
        if job.state is JobState.ACTIVE:
            job.cancel = True
            if channel := q.channel_of(job.owner):
                self.told.append((channel, End(q.name, job.id, JobState.ACTIVE)))
            return CancelOutcome.REQUESTED
        self.end_cancelled(q, job, job.keep)
        return CancelOutcome.CANCELLED

    def watch(self, queue: str, job_ids: Sequence[str], *, channel: str) -> list[End]:
        """Register a channel for jobs' ends and say how each stands."""
        q = self.queue(queue)
        ends = [self._stand(q, job_id, channel) for job_id in job_ids]
        self.trim(q)
        return ends

    def _stand(self, q: QueueState, job_id: str, channel: str) -> End:
        job = q.jobs.get(job_id)
        if job is None:
            return End(q.name, job_id, None)
        if job.state in WAITING and job.is_overdue(self.now):
            self.fail(q, job, "expired", None)
        if job.state is JobState.COMPLETED:
            result = job.result
            is_cut = result is not None and len(result) > MESSAGE_LIMIT
            return End(q.name, job_id, job.state, result=None if is_cut else result, is_cut=is_cut)
        if job.state is JobState.FAILED:
            error = job.errors[0] if job.errors else None
            return End(q.name, job_id, job.state, job.reason, error=error)
        if not job.state.is_terminal:
            self.add_channel(job, channel)
        return End(q.name, job_id, job.state)
