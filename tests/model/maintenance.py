"""The model of what keeps a queue in order, and of what operators see and steer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Unpack

import msgspec

from headrace.job import DEFAULT_LANE, ErrorInfo, JobRecord, JobRow, JobState
from headrace.storage.incarnations import Beat, IncarnationInfo, worker_info
from headrace.storage.limits import ROW_MESSAGE_LIMIT
from headrace.storage.queues import QueueCounts, SettingChanges
from headrace.storage.values import End
from tests.model.consumer import TIERS
from tests.model.places import BUCKET_MS, COUNTED, MESSAGE_LIMIT, QueueState, Record
from tests.model.state import State

BUCKETS = 6


class MaintenanceModel(State):
    """``beats``, ``reap``, ``forget``, ``prune``, ``repair``."""

    def beats(self, queue: str) -> dict[str, Beat]:
        """Return every listed incarnation."""
        return {
            name: Beat(
                count=-1 if known.is_condemned else known.count,
                lease_ms=known.lease_ms,
                is_condemned=known.is_condemned,
            )
            for name, known in self.queue(queue).workers.items()
        }

    def reap(self, queue: str, incarnation: str, *, seen: int, error: ErrorInfo) -> int | None:
        """Condemn an incarnation whose beat has not moved, and take its jobs back."""
        q = self.queue(queue)
        known = q.workers.get(incarnation)
        if known is None or (not known.is_condemned and known.count != seen):
            return None
        if not known.is_condemned:
            self.note_incarnation("left", incarnation, known.info, "reaped")
        known.is_condemned, known.info = True, b""
        known.claim, known.settle, known.settled = 0, 0, []
        self.hand_back(q, incarnation, lambda job: self.stall(q, job, error))
        self.trim(q)
        q.wake_all()
        return 0

    def forget(self, queue: str, incarnation: str) -> bool:
        """Take a condemned incarnation off the list."""
        q = self.queue(queue)
        if q.live(incarnation) is not None:
            return False
        q.workers.pop(incarnation, None)
        return True

    def prune(self, queue: str) -> None:
        """Remove all that has reached its age."""
        q = self.queue(queue)
        oldest = self.now - q.settings.dead_letter_ttl_ms
        for ended in (q.finished, q.dead):
            for job_id in [i for i in ended if not q.has_ended(i, ended)]:
                del ended[job_id]
        for job_id in [i for i, at in q.dead.items() if at <= oldest]:
            self.erase(q, q.jobs[job_id])

    def repair(self, queue: str) -> int:
        """Put nothing right: the model loses no record."""
        self.queue(queue)
        return 0


class InspectorModel(State):
    """What is read of jobs and queues, and what steers a queue."""

    def get(self, queue: str, job_id: str) -> JobRecord | None:
        """Return all that is kept of a job."""
        job = self.queue(queue).jobs.get(job_id)
        if job is None:
            return None
        return JobRecord(
            id=job.id,
            queue=queue,
            task=job.task,
            state=job.state,
            priority=job.tier,
            lane=job.lane,
            failures=job.failures,
            stalls=job.stalls,
            starts=job.epoch,
            created_ms=job.created,
            changed_ms=job.at,
            due_ms=job.due or 0,
            expires_ms=job.expires,
            run_ms=job.run,
            incarnation=job.owner,
            cancel_requested=job.cancel,
            reason=job.reason,
            options=job.options,
            payload=job.payload,
            result=job.result,
            errors=list(job.errors),
            progress=job.progress,
            progress_text=job.progress_text,
            put_back=job.cause,
            max_stalls=job.max_stalls,
            keep_ms=job.keep,
            has_next=job_id in self.queue(queue).successors,
            on_failed=job.on_failed or "",
            gates=job.gates,
            parked=job.parked,
            slots=job.slots,
        )

    def outcomes(self, queue: str, job_ids: Sequence[str]) -> list[End]:
        """Say how jobs stand."""
        return [self._outcome(self.queue(queue), job_id) for job_id in job_ids]

    def _outcome(self, q: QueueState, job_id: str) -> End:
        job = q.jobs.get(job_id)
        if job is None:
            return End(q.name, job_id, None)
        if not job.state.is_terminal:
            return End(q.name, job_id, job.state)
        is_cut = job.result is not None and len(job.result) > MESSAGE_LIMIT
        is_failed = job.state is JobState.FAILED
        return End(
            q.name,
            job_id,
            job.state,
            job.reason,
            None if is_cut else job.result,
            job.errors[0] if is_failed and job.errors else None,
            is_cut,
        )

    def export(self, queue: str, state: JobState) -> list[JobRecord]:
        """Return the records of all pages: those that ended before this millisecond."""
        q = self.queue(queue)
        places = [(at, i.encode(), i) for i, at in q.ended(state).items() if at < self.now]
        records = (self.get(queue, job_id) for _, _, job_id in sorted(places))
        return [r for r in records if r is not None and r.state is state]

    def list_jobs(self, queue: str, state: JobState) -> list[JobRow]:
        """Return the rows of all pages: queued ones in their order, others sorted by id."""
        q = self.queue(queue)
        if state is JobState.QUEUED:
            lanes = sorted(q.queued_by_lane(), key=lambda lane: (lane != DEFAULT_LANE, lane))
            places = [(lane, tier) for lane in lanes for tier in TIERS]
            return [_row(q.jobs[i]) for place in places for i in q.ready.get(place, [])]
        blocked = [successor.job for successor in q.successors.values()]
        jobs = sorted([*q.jobs.values(), *blocked], key=lambda job: job.id)
        return [_row(job) for job in jobs if job.state is state]

    def stats(self, queue: str) -> QueueCounts:
        """Return counts, and the work of the last minute."""
        q = self.queue(queue)
        counts = self.counts(q)
        last = self.now - self.now % BUCKET_MS
        work: Counter[str] = Counter()
        for (bucket, what), n in q.tallies.items():
            if last - BUCKETS * BUCKET_MS < bucket <= last:
                work[what] += n
        return QueueCounts(
            queue=queue,
            is_paused=q.is_paused,
            **counts,
            workers=sum(1 for known in q.workers.values() if self.now - known.at <= known.lease_ms),
            oldest_ms=self._oldest_ms(q),
            window_ms=(BUCKETS - 1) * BUCKET_MS + self.now % BUCKET_MS,
            enqueued=work["enqueued"],
            completed=work["completed"],
            failed=work["failed"],
            retried=work["retried"],
            cancelled=work["cancelled"],
            stalled=work["stalled"],
            waits_ms=_histogram(work, "wait:"),
            runs_ms=_histogram(work, "run:"),
            settings=q.settings,
            lanes={k: n for k, n in q.queued_by_lane().items() if k != DEFAULT_LANE},
            paused_tasks=sorted(filter(None, (one.paused_task for one in q.strikes.values()))),
            strikes=sum(not one.paused_task for one in q.strikes.values()),
        )

    def counts(self, q: QueueState) -> dict[str, int]:
        """Return how many jobs a queue counts in each place."""
        states = Counter(job.state for job in q.jobs.values())
        counted = {state.value: states[state] for state in COUNTED}
        ended = {"history": len(q.finished), "dead": len(q.dead)}
        blocked = len(q.successors) + states[JobState.BLOCKED]
        return {**counted, "blocked": blocked, **ended}

    def _oldest_ms(self, q: QueueState) -> int:
        heads = {
            lane: q.jobs[ids[0]].at
            for tier in reversed(TIERS)
            for (lane, one), ids in q.ready.items()
            if one == tier and ids
        }
        return max((max(0, self.now - at) for at in heads.values()), default=0)

    def output(self, queue: str, job_id: str) -> list[bytes]:
        """Return the pieces of all pages."""
        q = self.queue(queue)
        output = q.outputs.get(job_id) if job_id in q.jobs else None
        return [] if output is None else list(output.pieces.values())

    def workers(self, queue: str) -> list[IncarnationInfo]:
        """Return the incarnations of a queue, sorted."""
        q = self.queue(queue)
        return [
            worker_info(
                name,
                known.info,
                lease_ms=known.lease_ms,
                registered_ms=known.since if known.info else 0,
                active=len(q.held_by(name)),
                silent_ms=max(0, self.now - known.at),
                is_condemned=known.is_condemned,
            )
            for name, known in sorted(q.workers.items())
        ]

    def pause(self, queue: str) -> None:
        """Stop claims."""
        self.queue(queue).is_paused = True

    def resume(self, queue: str) -> None:
        """Allow claims again, at once."""
        q = self.queue(queue)
        q.is_paused = False
        q.wake_all()

    def configure(self, queue: str, **changes: Unpack[SettingChanges]) -> None:
        """Change what the queue keeps, and how many run at once."""
        q = self.queue(queue)
        before = q.settings.max_active
        q.settings = msgspec.structs.replace(q.settings, **changes)
        if q.settings.max_active != before:
            q.wake_all()

    def delete_queue(self, queue: str, *, is_forced: bool) -> int | None:
        """Forget a queue without jobs, but for its statistics, and for what may be repeated."""
        q = self.queue(queue)
        if any(self.counts(q).values()) or (q.workers and not is_forced):
            return None
        self.queues[queue] = QueueState(
            queue,
            tallies=q.tallies,
            calls=q.calls,
            fired=q.fired,
            idempotent=q.idempotent,
            # What a rate is owed may be known until it is paid.
            buckets={n: one for n, one in q.buckets.items() if n in (self.hint or {})["gates"]},
            # What nobody committed ends by its age, and so do writes that are published.
            stages={name: one for name, one in q.stages.items() if one.dies is not None},
            writes={name: one for name, one in q.writes.items() if one.dies is not None},
        )
        return 0

    def redrive(self, queue: str, job_ids: Sequence[str]) -> int:
        """Queue dead letters again, counts and error history reset."""
        q = self.queue(queue)
        n = 0
        for job_id in job_ids:
            job = q.jobs.get(job_id)
            if job is None or job.state is not JobState.FAILED:
                continue
            del q.dead[job_id]
            job.failures = job.stalls = job.expires = job.run = 0
            job.put_back, job.dies, job.cancel, job.joined = None, None, False, False
            job.reason = job.error = ""
            job.errors, job.channels = [], []
            self.put_ready(q, job, at_head=False)
            self.note("queued", job, detail="redriven")
            n += 1
        return n

    def purge(self, queue: str, state: JobState, job_ids: Sequence[str]) -> int:
        """Delete jobs that are in one state; none that is active."""
        q = self.queue(queue)
        n = 0
        for job_id in job_ids:
            job = q.jobs.get(job_id)
            if job is not None and job.state is state and state is not JobState.ACTIVE:
                self.delete(q, job)
                n += 1
        return n


def _row(job: Record) -> JobRow:
    error = job.cause or (job.errors[0] if job.error else None)
    return JobRow(
        id=job.id,
        task=job.task,
        state=job.state,
        priority=job.tier,
        failures=job.failures,
        stalls=job.stalls,
        starts=job.epoch,
        created_ms=job.created,
        changed_ms=job.at,
        due_ms=job.due or 0,
        run_ms=job.run,
        incarnation=job.owner,
        reason=job.reason,
        error=error.type if error else "",
        error_message=error.message[:ROW_MESSAGE_LIMIT] if error else "",
    )


def _histogram(work: Counter[str], prefix: str) -> dict[int, int]:
    found = {int(what[len(prefix) :]): n for what, n in work.items() if what.startswith(prefix)}
    return dict(sorted(found.items()))
