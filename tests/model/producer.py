"""The model of what brings jobs in and asks how they end."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headrace.errors import StaleCall
from headrace.job import CancelOutcome, EnqueueOutcome, FirstUse, JobState, Verdict
from headrace.request import JobRequest
from headrace.storage.values import CallId, End
from tests.model.lengths import LengthModel
from tests.model.places import MESSAGE_LIMIT, WAITING, QueueState, Record, Remembered
from tests.model.updates import UpdateModel

CALLS_REMEMBERED = 2
CHANGES_NOTHING = (EnqueueOutcome.DUPLICATE, EnqueueOutcome.COMPLETED)


class ProducerModel(UpdateModel, LengthModel):
    """``enqueue``, ``cancel``, ``watch``."""

    def enqueue(self, queue: str, jobs: Sequence[JobRequest], *, call: CallId) -> list[Verdict]:
        """Store jobs, unless the call is a repetition.

        Raises:
            StaleCall: a newer call than this was answered in its place.
            QueueFull: more would wait than the queue takes.
        """
        q = self.queue(queue)
        slot = call.number % CALLS_REMEMBERED
        known = q.calls.get(call.client, {}).get(slot)
        if known is not None and known.number == call.number:
            return list(known.answer)
        if known is not None and call.number < known.number:
            raise StaleCall(f"enqueue call {call.number} is older than {known.number}")
        with self.within_length(queue):
            answer = [self._enqueue(q, job) for job in jobs]
        slots = q.calls.setdefault(call.client, {})
        slots[slot] = Remembered(call.number, answer, self.now)
        return list(answer)

    def _enqueue(self, q: QueueState, job: JobRequest) -> Verdict:
        first_id, _ = q.idempotent.get(job.idempotency_key, ("", 0))
        if first_id:
            first = q.jobs.get(first_id)
            is_completed = first is not None and first.state is JobState.COMPLETED
            outcome = EnqueueOutcome.COMPLETED if is_completed else EnqueueOutcome.DUPLICATE
            return FirstUse(outcome, first_id)
        outcome = self._store(q, job)
        if job.idempotency_key and outcome not in CHANGES_NOTHING:
            q.idempotent[job.idempotency_key] = (job.id, self.now + job.idempotency_ttl_ms)
        return outcome

    def _store(self, q: QueueState, job: JobRequest) -> EnqueueOutcome:
        standing = q.jobs.get(job.id)
        if standing is not None and job.update is not None and not standing.state.is_terminal:
            if job.update.data:
                self.declare(q, job.gates)
            self.update(q, standing, self.said(q, job), job.update)
            return EnqueueOutcome.UPDATED
        if standing is not None and job.update is not None:
            self.erase(q, standing)
            standing = None
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
        self.declare(q, job.gates)
        record = q.jobs[job.id] = self.said(q, job)
        q.moved.discard(job.id)
        q.outputs.pop(job.id, None)
        self.tally(q, "enqueued")
        if (due := record.due) is not None:
            self.put_delayed(q, record, JobState.SCHEDULED, due)
            self.note("scheduled", job, due=due)
            return EnqueueOutcome.SCHEDULED
        self.put_ready(q, record, at_head=False)
        self.note("queued", record)
        return EnqueueOutcome(record.state.value)

    def cancel(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        only_next: bool = False,
        states: Collection[JobState] = (),
    ) -> list[CancelOutcome]:
        """End waiting jobs, ask active ones to stop, or end successors alone; by states, or all."""
        q = self.queue(queue)
        if only_next:
            return [
                CancelOutcome.CANCELLED if self.drop_next(q, i) else CancelOutcome.NOT_FOUND
                for i in job_ids
            ]
        outcomes = [self._cancel(q, q.jobs.get(job_id), states) for job_id in job_ids]
        self.trim(q)
        return outcomes

    def _cancel(
        self, q: QueueState, job: Record | None, states: Collection[JobState]
    ) -> CancelOutcome:
        if job is None:
            return CancelOutcome.NOT_FOUND
        if job.state is JobState.CANCELLED:
            return CancelOutcome.CANCELLED
        if job.state.is_terminal:
            return CancelOutcome.FINISHED
        if states and job.state not in states:
            is_gone = JobState.BLOCKED in states and self.drop_next(q, job.id)
            return CancelOutcome.CANCELLED if is_gone else CancelOutcome.NOT_FOUND
        if job.state is JobState.ACTIVE:
            job.cancel = True
            if channel := q.channel_of(job.owner):
                self.told.append((channel, End(q.name, job.id, JobState.ACTIVE)))
            self.drop_next(q, job.id)
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
            known = q.successors.get(job_id)
            self.add_channel(known.job if known else job, channel)
        return End(q.name, job_id, job.state)
