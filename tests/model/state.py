"""The moves of a job between its places, which the model's verbs share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable

import msgspec

from headrace.job import ErrorInfo, Job, JobState
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.lines import error_words
from headrace.storage.values import End
from tests.model.fail_jobs import born_of
from tests.model.places import (
    BUCKET_MS,
    CALLS_TTL_MS,
    CREATED_IS_TOLD,
    ERRORS_KEPT,
    JOINED_MS,
    MESSAGE_LIMIT,
    OUTPUT_KEPT_MS,
    Dump,
    Event,
    QueueState,
    Record,
)


class State:
    """Queues, a clock, and the moves between the places where a job can be.

    Nothing is promised about the order of jobs that fall due, are taken back or end in the same
    millisecond, of the fail jobs that come of that, and of output that is over an hour old.
    ``hint`` may hold a storage's dump after
    the step: it decides there, and only there.
    """

    def __init__(self, now: int) -> None:
        self.now: int = now
        self.queues: dict[str, QueueState] = {}
        self.told: list[tuple[str, End]] = []
        self.events: list[Event] = []
        self.hint: Dump | None = None
        self._added: Counter[str] = Counter()
        self.has_stepped_back = False

    def queue(self, name: str) -> QueueState:
        """Return a queue; one that nobody has used is empty."""
        return self.queues.setdefault(name, QueueState(name))

    def advance(self, ms: int) -> int:
        """Move the clock on, or back, and return the time; what has reached its age is gone."""
        self.now += ms
        self.has_stepped_back = self.has_stepped_back or ms < 0
        for q in self.queues.values():
            gone = [i for i, job in q.jobs.items() if job.dies is not None and job.dies <= self.now]
            for job_id in gone:
                del q.jobs[job_id]
            for job in q.jobs.values():
                if job.result_dies is not None and job.result_dies <= self.now:
                    job.result = None
            for output in q.outputs.values():
                if output.at + OUTPUT_KEPT_MS <= self.now:
                    output.is_outworn = True
            for key in [key for key, (_, dies) in q.idempotent.items() if dies <= self.now]:
                del q.idempotent[key]
            for slots in q.calls.values():
                for slot in [s for s, call in slots.items() if call.at + CALLS_TTL_MS <= self.now]:
                    del slots[slot]
        return self.now

    def has_lost_results(self) -> bool:
        """Whether a record outlives its result."""
        jobs = (job for q in self.queues.values() for job in q.jobs.values())
        return any(job.result_dies is not None and job.result is None for job in jobs)

    # Places

    def put_ready(self, q: QueueState, job: Record, *, at_head: bool) -> None:
        """Let a job wait for a worker."""
        self.leave(q, job)
        job.state, job.at = JobState.QUEUED, self.now
        waiting = q.ready.setdefault((job.lane, job.tier), [])
        waiting.insert(0 if at_head else len(waiting), job.id)
        q.wake(job.lane)

    def put_delayed(self, q: QueueState, job: Record, state: JobState, due: int) -> None:
        """Let a job wait for its time; a new earliest one needs a new timer."""
        self.leave(q, job)
        first = min(q.gate_due.values(), default=due + 1)
        if q.delayed:
            first = min(first, q.jobs[q.delayed[0]].due or 0)
        if due < first:
            q.wake(job.lane)
        job.state, job.at, job.due = state, self.now, due
        q.delayed.append(job.id)
        self._sort_delayed(q)

    def _sort_delayed(self, q: QueueState) -> None:
        """Sort by due time; those that have not started yet stand in the order of their creation.

        A clock that was set back may have given a later one an earlier creation.
        """
        order = self._hinted("delayed")
        q.delayed.sort(key=lambda i: (q.jobs[i].due, order.get(i, -1)))
        if self.has_stepped_back:
            return
        created = {job_id: n for n, job_id in enumerate(q.jobs)}
        for due in {q.jobs[i].due for i in q.delayed}:
            places = [
                n
                for n, i in enumerate(q.delayed)
                if q.jobs[i].due == due and not q.jobs[i].epoch and i not in q.moved
            ]
            fresh = sorted((q.delayed[n] for n in places), key=created.__getitem__)
            for n, job_id in zip(places, fresh, strict=True):
                q.delayed[n] = job_id

    def leave(self, q: QueueState, job: Record) -> None:
        """Take a job from where it waits, or runs and others may take its turn."""
        if job.state is JobState.ACTIVE and q.settings.max_active:
            q.wake_all()
        job.due = None
        if job.id in q.delayed:
            q.delayed.remove(job.id)
        waiting = q.ready.get((job.lane, job.tier), [])
        if job.id in waiting:
            waiting.remove(job.id)

    def first_due(self, q: QueueState) -> int | None:
        """Return when the next delayed job or gate is due."""
        dues = [*q.gate_due.values(), *(q.jobs[job_id].due or 0 for job_id in q.delayed[:1])]
        return min(dues, default=None)

    def _hinted(self, place: str) -> dict[str, int]:
        """Return an id's position in one list of the hint."""
        order: Iterable[str] = (self.hint or {}).get(place, [])
        return {job_id: n for n, job_id in enumerate(order)}

    def hinted_order(self, jobs: list[Record]) -> list[Record]:
        """Return jobs in the order in which the hint has them at the head of their lists.

        Between lists, by their numbers where they have any.
        """
        numbers = (self.hint or {}).get("numbers", {})
        at = {
            job_id: n
            for ids in (self.hint or {}).get("ready", {}).values()
            for n, job_id in enumerate(ids)
        }
        return sorted(jobs, key=lambda job: (numbers.get(job.id, 0), at.get(job.id, -1)))

    def sort_come(self, q: QueueState, passed: Collection[str], there: Collection[str]) -> None:
        """Sort those who came to the tails in one claim: passed over, or new."""
        for waiting in q.ready.values():
            places = [n for n, i in enumerate(waiting) if i in passed or i not in there]
            come = self.hinted_order([q.jobs[waiting[n]] for n in places])
            numbers = [q.jobs[waiting[n]].number for n in places]
            for n, number, job in zip(places, numbers, come, strict=True):
                waiting[n], job.number = job.id, number

    def hand_back(self, q: QueueState, incarnation: str, back: Callable[[Record], None]) -> None:
        """Hand back what an incarnation has; what comes to tails by that may be in any order."""
        tail, held = q.tail, self.hinted_order(q.held_by(incarnation))
        for job in reversed(held):
            back(job)
        come = {job.id for job in held if job.id in q.jobs and q.jobs[job.id].number > tail}
        self.sort_come(q, come, frozenset(q.jobs))

    # Ends

    def complete(
        self, q: QueueState, job: Record, result: bytes, *, ttl_ms: int, keep_ms: int, run_ms: int
    ) -> None:
        """End a job with its result, which never outlives the record."""
        if job.joined:
            ttl_ms, keep_ms = max(ttl_ms, JOINED_MS), max(keep_ms, JOINED_MS)
        ttl_ms = min(ttl_ms, keep_ms)
        self._end(q, job, JobState.COMPLETED, keep_ms, run_ms=run_ms)
        job.result = result if ttl_ms else None
        job.result_dies = self.now + ttl_ms if 0 < ttl_ms < keep_ms else None
        is_cut = len(result) > MESSAGE_LIMIT
        self._tell(q, job, result=None if is_cut else result, is_cut=is_cut)

    def fail(
        self, q: QueueState, job: Record, reason: str, error: ErrorInfo | None, *, run_ms: int = 0
    ) -> None:
        """End a job as a dead letter."""
        if error is not None:
            self.note_error(job, error)
        job.reason, job.error = reason, error.type if error else ""
        ttl_ms = q.settings.dead_letter_ttl_ms
        self._end(q, job, JobState.FAILED, ttl_ms, run_ms=run_ms, detail=reason, error=error)
        self._tell(q, job, reason=reason, error=error)
        self._bring(q, born_of(q, job, reason, error, now=self.now, hint=self.hint), of=job)

    def _bring(self, q: QueueState, born: Record | None, *, of: Record) -> None:
        if born is not None:
            q.jobs[born.id] = born
            self.tally(q, "enqueued")
            self.put_ready(q, born, at_head=False)
            self._sort_born(q, q.ready[born.lane, born.tier])
            self.note("queued", born, detail=f"on_failed {of.id}")

    def _sort_born(self, q: QueueState, waiting: list[str]) -> None:
        """Sort the fail jobs of this millisecond, of which many may come of one call."""
        places = [
            n
            for n, job_id in enumerate(waiting)
            if (job := q.jobs[job_id]).on_failed == "" and job.created == self.now
        ]
        born = self.hinted_order([q.jobs[waiting[n]] for n in places])
        numbers = [q.jobs[waiting[n]].number for n in places]
        for n, number, job in zip(places, numbers, born, strict=True):
            waiting[n], job.number = job.id, number

    def end_cancelled(
        self, q: QueueState, job: Record, keep_ms: int, *, run_ms: int = 0, reason: str = ""
    ) -> None:
        """End a job that was asked to stop."""
        job.reason = reason
        keep_ms = max(keep_ms, JOINED_MS) if job.joined else keep_ms
        self._end(q, job, JobState.CANCELLED, keep_ms, run_ms=run_ms, detail=reason)
        self._tell(q, job, reason=reason)

    def stall(self, q: QueueState, job: Record, error: ErrorInfo, *, run_ms: int = 0) -> None:
        """Charge a job with the death of what ran it."""
        job.stalls += 1
        self.tally(q, "stalled")
        self.note("stalled", job, worker=job.owner, run_ms=run_ms, error=error)
        if job.cancel:
            self.end_cancelled(q, job, job.keep, run_ms=run_ms)
        elif job.stalls >= job.max_stalls:
            self.fail(q, job, "stalled", error, run_ms=run_ms)
        else:
            self.note_error(job, error)
            self.put_ready(q, job, at_head=True)

    def _end(
        self,
        q: QueueState,
        job: Record,
        state: JobState,
        keep_ms: int,
        *,
        run_ms: int,
        detail: str = "",
        error: ErrorInfo | None = None,
    ) -> None:
        self.leave(q, job)
        job.state, job.at, job.run = state, self.now, run_ms
        if keep_ms and job.id not in q.successors:
            job.dies = self.now + keep_ms
            q.ended(state)[job.id] = self.now
            self._added["dead" if state is JobState.FAILED else "finished"] += 1
        else:
            del q.jobs[job.id]
        self.tally(q, state.value)
        self.note(state.value, job, worker=job.owner, run_ms=run_ms, detail=detail, error=error)

    def delete(self, q: QueueState, job: Record) -> None:
        """Delete a job that nobody wants; who waits for its end is told that it is gone."""
        self.leave(q, job)
        self.note("purged", job, detail=job.state.value)
        if not job.state.is_terminal:
            for channel in job.channels:
                self.told.append((channel, End(q.name, job.id, None)))
        self.erase(q, job)

    def erase(self, q: QueueState, job: Record) -> None:
        """Delete a record and its place among the ended ones."""
        del q.jobs[job.id]
        if job.state.is_terminal:
            del q.ended(job.state)[job.id]

    def leave_old_place(self, q: QueueState, job_id: str) -> None:
        """Let a new job have the id of one whose record has reached its age.

        The place of the old one may stay until `prune`, so the hint decides.
        """
        for place, ended in (("finished", q.finished), ("dead", q.dead)):
            if job_id not in self._hinted(place):
                ended.pop(job_id, None)

    def trim(self, q: QueueState) -> None:
        """Keep the newest ended jobs only, as many as the settings say."""
        for place, ended, limit in (
            ("finished", q.finished, q.settings.history),
            ("dead", q.dead, q.settings.dead_letters),
        ):
            excess = len(ended) - limit
            if not self._added[place] or excess <= 0:
                continue
            kept = self._hinted(place)
            oldest = sorted((at, job_id in kept, job_id) for job_id, at in ended.items())
            for _, _, job_id in oldest[:excess]:
                if q.has_ended(job_id, ended):
                    del q.jobs[job_id]
                del ended[job_id]
        self._added.clear()

    # Words

    def note_error(self, job: Record, error: ErrorInfo) -> None:
        """Put an error at the front of a job's history."""
        stamped = ErrorInfo(error.type, error.message, error.traceback, job.epoch, self.now)
        job.errors = [stamped, *job.errors][:ERRORS_KEPT]

    def add_channel(self, job: Record, channel: str) -> None:
        """Note who is to be told of a job's end."""
        if channel and channel not in job.channels and len(job.channels) < 64:
            job.channels.append(channel)

    def _tell(
        self,
        q: QueueState,
        job: Record,
        *,
        reason: str = "",
        result: bytes | None = None,
        error: ErrorInfo | None = None,
        is_cut: bool = False,
    ) -> None:
        end = End(q.name, job.id, job.state, reason, result, error, is_cut)
        self.told += [(channel, end) for channel in job.channels]

    def note(
        self,
        kind: str,
        job: Record | Job,
        *,
        worker: str = "",
        wait_ms: int = 0,
        run_ms: int = 0,
        detail: str = "",
        error: ErrorInfo | None = None,
        due: int = 0,
    ) -> None:
        """Write an event; its detail is the error's type, if nothing else."""
        words = error_words(error or ErrorInfo("", ""))
        if kind == "queued" and isinstance(job, Record) and job.parked:
            kind, detail = "blocked", job.parked.replace("\t", " ").rstrip()
        if kind in ("retrying", "stalled") and error is not None:
            detail = error.type
        attempt = job.epoch if isinstance(job, Record) else 0
        created = job.created if isinstance(job, Record) and kind in CREATED_IS_TOLD else 0
        self.events.append(
            (
                kind,
                job.id,
                job.task,
                attempt,
                worker,
                wait_ms,
                run_ms,
                detail,
                words,
                due,
                created,
                "",
            )
        )

    def note_incarnation(self, kind: str, name: str, info: bytes, detail: str = "") -> None:
        """Write an event of an incarnation, ``info`` being what it has said of itself."""
        said = msgspec.json.decode(info, type=IncarnationInfo)
        who = "\t".join((said.name, said.host, said.version, said.app_version))
        self.events.append((kind, name, "", 0, name, 0, 0, detail, "\t\t", 0, 0, who))

    def tally(self, q: QueueState, what: str) -> None:
        """Count for the statistics."""
        q.tallies[self.now - self.now % BUCKET_MS, what] += 1

    def observe(self, q: QueueState, name: str, value_ms: int) -> None:
        """Put a duration in its bucket, whose bounds grow by a tenth."""
        bound = 0
        if value_ms > 0:
            bound = math.ceil(1.1 ** math.ceil(math.log(value_ms) / math.log(1.1) - 1e-9))
        self.tally(q, f"{name}:{bound}")
