"""The model of what an enqueue changes of the job that has its id, and of successors."""

from __future__ import annotations

from headrace.job import DEFAULT_LANE, ErrorInfo, JobState
from headrace.request import JobRequest
from headrace.storage.values import End
from headrace.update import Update, UpdateRunAt, cut_options, join_options
from tests.model.gates import stored_names
from tests.model.places import WAITING, Dump, QueueState, Record, Successor
from tests.model.strikes import StrikeModel, is_laid_aside

DATA = ("task", "payload", "tier", "lane", "keep", "on_failed", "gates", "slots")
DUMPED = (*DATA, "options", "max_stalls", "expires", "due", "joined", "created")


def merge(job: Record, said: Record, update: Update, *, takes_time: bool) -> None:
    """Set those parts of a job that an update names; its due time is its place, and not set."""
    (data, retry), (its_data, its_retry) = cut_options(job.options), cut_options(said.options)
    if update.data:
        for name in DATA:
            setattr(job, name, getattr(said, name))
        data = its_data
    if update.retry:
        job.max_stalls, retry = said.max_stalls, its_retry
    job.options = join_options(data, retry)
    if takes_time:
        job.expires = said.expires


def successor_dump(successor: Successor) -> Dump:
    """Return a successor as plain data."""
    job = successor.job
    return {
        **{name: getattr(job, name) for name in DUMPED},
        "channels": sorted(job.channels),
        "update": successor.update.word,
    }


class UpdateModel(StrikeModel):
    """Waiting jobs change in place; an active one has a successor, which its end lets in."""

    def said(self, q: QueueState, job: JobRequest) -> Record:
        """Return what a request asks for, as a job of its own; ``due`` is None for now."""
        due = self.now + job.delay_ms if job.delay_ms else job.run_at_ms
        lane = job.lane or q.lanes.get(job.task, DEFAULT_LANE)
        return Record(
            id=job.id,
            task=job.task,
            payload=job.payload,
            tier=job.priority,
            lane=lane,
            created=self.now,
            at=self.now,
            state=JobState.BLOCKED,
            expires=self.now + job.expires_in_ms if job.expires_in_ms else job.expires_at_ms,
            max_stalls=job.max_stalls,
            keep=job.keep_ms,
            options=job.options,
            due=due if due > self.now else None,
            channels=[job.channel] if job.channel else [],
            on_failed=job.on_failed or None,
            gates=stored_names(job.gates, lane, job.priority),
            slots=job.slots,
        )

    def update(self, q: QueueState, job: Record, said: Record, update: Update) -> None:
        """Change a job that waits or is active by what a request says."""
        said.joined = bool(said.channels)
        if job.state is JobState.ACTIVE:
            self._block(q, job, said, update)
        else:
            self._apply(q, job, said, update)

    def _takes_time(self, update: Update, due: int | None, asked: int | None) -> bool:
        its, new = max(due or 0, self.now), max(asked or 0, self.now)
        match update.run_at:
            case UpdateRunAt.IF_LATER:
                return new > its
            case UpdateRunAt.IF_EARLIER:
                return new < its
        return update.run_at is UpdateRunAt.ALWAYS

    def _apply(self, q: QueueState, job: Record, said: Record, update: Update) -> None:
        due = said.due if said.due is not None and said.due > self.now else None
        takes_time = self._takes_time(update, job.due, due)
        was_queued = job.state in (JobState.QUEUED, JobState.BLOCKED)
        its_line, new_line = ((one.lane, one.tier, one.gates) for one in (job, said))
        is_other_line = update.data and (its_line != new_line or is_laid_aside(job))
        self._hear(job, said)
        if update.reset_counts:
            job.failures = job.stalls = 0
            job.put_back, job.errors = None, []
        moves = takes_time and due is not None
        is_ready = (takes_time and not was_queued) or (was_queued and is_other_line)
        if moves or is_ready:
            self.leave(q, job)
            job.state = JobState.BLOCKED  # what it gave back is not its any more
        merge(job, said, update, takes_time=takes_time)
        if takes_time and due is not None:
            q.moved.add(job.id)
            self.put_delayed(q, job, JobState.SCHEDULED, due)
        elif is_ready:
            self.put_ready(q, job, at_head=False)
        elif is_other_line and job.due == self.first_due(q):
            q.wake(job.lane)
        self.note("updated", job, due=job.due or 0)

    def _hear(self, job: Record, said: Record) -> None:
        for channel in said.channels:
            self.add_channel(job, channel)
        job.joined = job.joined or said.joined

    def _block(self, q: QueueState, job: Record, said: Record, update: Update) -> None:
        """Store the successor of an active job, or change the one that it has."""
        known = q.successors.get(job.id)
        if known is None:
            copy = Record(
                id=job.id,
                task=job.task,
                payload=job.payload,
                tier=job.tier,
                lane=job.lane,
                created=self.now,
                at=self.now,
                state=JobState.BLOCKED,
                expires=0,
                max_stalls=job.max_stalls,
                keep=job.keep,
                options=job.options,
                on_failed=job.on_failed,
                gates=job.gates,
                slots=job.slots,
            )
            nothing = Update(data=False, run_at=UpdateRunAt.NEVER, retry=False)
            known = q.successors[job.id] = Successor(copy, nothing)
        takes_time = update.run_at is not UpdateRunAt.NEVER
        if known.update.run_at is not UpdateRunAt.NEVER:
            takes_time = self._takes_time(update, known.job.due, said.due)
        merge(known.job, said, update, takes_time=takes_time)
        if takes_time:
            known.job.due = said.due
        self._hear(known.job, said)
        known.update = update.over(known.update)
        self.note("blocked", known.job)

    def drop_next(self, q: QueueState, job_id: str) -> bool:
        """End the successor of an active job; whether there was one."""
        known = q.successors.pop(job_id, None)
        if known is None:
            return False
        known.job.state = JobState.CANCELLED
        self.note("cancelled", known.job, detail="next")
        for channel in known.job.channels:
            self.told.append((channel, End(q.name, job_id, JobState.CANCELLED, "next")))
        return True

    def apply_next(self, q: QueueState, job: Record) -> None:
        """Change a job that waits again by its successor, which goes."""
        if job.state in WAITING and (known := q.successors.pop(job.id, None)):
            self._apply(q, job, known.job, known.update)

    def _enter_next(self, q: QueueState, job: Record) -> None:
        """Let the successor of a job in that has ended."""
        if job.state in WAITING or (known := q.successors.pop(job.id, None)) is None:
            return
        new = known.job
        due, new.due = new.due, None
        q.jobs[new.id] = new
        q.outputs.pop(new.id, None)
        self.tally(q, "enqueued")
        if due is not None and due > self.now:
            q.moved.add(new.id)
            self.put_delayed(q, new, JobState.SCHEDULED, due)
            self.note("scheduled", new, due=due, detail="next")
        else:
            self.put_ready(q, new, at_head=False)
            self.note("queued", new, detail="next")

    def complete(
        self, q: QueueState, job: Record, result: bytes, *, ttl_ms: int, keep_ms: int, run_ms: int
    ) -> None:
        """End a job with its result, and let its successor in."""
        super().complete(q, job, result, ttl_ms=ttl_ms, keep_ms=keep_ms, run_ms=run_ms)
        self._enter_next(q, job)

    def fail(
        self, q: QueueState, job: Record, reason: str, error: ErrorInfo | None, *, run_ms: int = 0
    ) -> None:
        """End a job as a dead letter, and let its successor in."""
        super().fail(q, job, reason, error, run_ms=run_ms)
        self._enter_next(q, job)

    def end_cancelled(
        self, q: QueueState, job: Record, keep_ms: int, *, run_ms: int = 0, reason: str = ""
    ) -> None:
        """End a job that was asked to stop, and let its successor in."""
        super().end_cancelled(q, job, keep_ms, run_ms=run_ms, reason=reason)
        self._enter_next(q, job)

    def stall(self, q: QueueState, job: Record, error: ErrorInfo, *, run_ms: int = 0) -> None:
        """Charge a job with the death of what ran it; its successor changes it if it goes on."""
        super().stall(q, job, error, run_ms=run_ms)
        self.apply_next(q, job)
