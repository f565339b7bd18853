"""The model of gates: who gets a place in them, who waits in their lines, and when they open."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.job import JobState
from headrace.limit import Terms, read_gates, read_terms
from headrace.storage.gates import GateInfo, LimitInfo
from tests.model.places import Dump, QueueState, Record
from tests.model.state import State

HOLDERS = (JobState.QUEUED, JobState.ACTIVE)


@dataclass
class Bucket:
    """What is owed to a rate, since when; a token is worth ``rate_ms``, and a ms pays ``rate``."""

    owed: int = 0
    rate: int = 0
    rate_ms: int = 0
    at: int = 0

    def left(self, now: int) -> int:
        """Return what is owed still, by the rate that it was taken from."""
        return max(0, self.owed - max(0, now - self.at) * self.rate)


def names_of(job: Record) -> list[str]:
    """Return the gates that a job meets, in their order."""
    return job.gates.split("\n") if job.gates else []


def is_window(name: str) -> bool:
    """Whether a gate is that of a key that takes turns, in a lane and tier."""
    return name.startswith("fair:")


def stored_names(said: str, lane: str, tier: int) -> str:
    """Return the gates that a job of a lane and tier says, as they are kept."""
    named = ((gate.name, gate.key) for gate in read_gates(said))
    window = f"fair:{lane}:{tier}"
    return "\n".join(f"{window if name == 'fair' else name}\t{key}" for name, key in named)


def shown(line: str) -> str:
    """Return a gate as an event tells of it."""
    return line.replace("\t", " ").rstrip()


KEPT_MS = 3_000
"""How long a bucket that is full is known yet."""


class GateModel(State):
    """Jobs that are ready or active have a place in each of their gates.

    Places are counted anew whenever somebody asks. ``touched`` are the gates that a call has to do
    with, in their order, and whether a place came free in each; ``let_in`` are the jobs whose turn
    has begun in it.
    """

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.touched: dict[str, bool] = {}
        self.let_in: set[str] = set()

    def advance(self, ms: int) -> int:
        """Move the clock, and forget gates that nobody is in and that owe nothing any more."""
        super().advance(ms)
        for q in self.queues.values():
            for name in [name for name in q.buckets if self._is_idle(q, name)]:
                # Storages keep one for a while that has just become full: a clock may be set back.
                if not q.buckets[name].left(self.now - KEPT_MS):
                    del q.buckets[name]
        return self.now

    # Terms

    def terms(self, q: QueueState, name: str) -> Terms:
        """Return what a gate's limit allows; where nothing is known, nothing bounds it."""
        limit, is_gate, _ = name.partition("\t")
        declared, operator = q.limits.get(limit, ("", "")) if is_gate else ("", "")
        return read_terms(operator or declared) or Terms()

    def declare(self, q: QueueState, said: str) -> None:
        """Note the terms that a job brings, where none are known."""
        for gate in read_gates(said):
            declared, operator = q.limits.get(gate.name, ("", ""))
            if gate.terms is not None and not (declared or operator):
                q.limits[gate.name] = (gate.terms.text, operator)

    def set_terms(self, q: QueueState, limit: str, declared: str, operator: str) -> None:
        """Note terms, and open the gates of their limit if they are others than before."""
        before = q.limits.pop(limit, ("", ""))
        if declared or operator:
            q.limits[limit] = (declared, operator)
        if (operator or declared) != (before[1] or before[0]):
            for name in sorted({job.parked for job in q.jobs.values() if job.parked}):
                if name.startswith(f"{limit}\t"):
                    self._open(q, name)

    # Room

    def _holders(self, q: QueueState, name: str, state: JobState) -> int:
        if is_window(name) and state is JobState.ACTIVE:
            return 0
        return sum(job.state is state and name in names_of(job) for job in q.jobs.values())

    def _is_idle(self, q: QueueState, name: str) -> bool:
        holders = any(self._holders(q, name, state) for state in HOLDERS)
        return not (holders or self._line(q, name))

    def _line(self, q: QueueState, name: str) -> list[Record]:
        line = [job for job in q.jobs.values() if job.parked == name]
        return sorted(line, key=lambda job: (-job.tier, job.number))

    def _bucket(self, q: QueueState, name: str) -> Bucket:
        terms, known = self.terms(q, name), q.buckets.get(name, Bucket(at=self.now))
        now = Bucket(0, terms.rate, terms.rate_ms, self.now)
        if now.rate and known.rate:
            owed = known.left(self.now)
            if (known.rate, known.rate_ms) != (now.rate, now.rate_ms):
                owed = -(-owed // known.rate_ms) * now.rate_ms
            now.owed = min(owed, terms.burst * terms.rate_ms)
        return now

    def _tokens(self, q: QueueState, name: str) -> int:
        bucket = self._bucket(q, name)
        burst = self.terms(q, name).burst
        return burst - -(-bucket.owed // bucket.rate_ms) if bucket.rate else 0

    def _is_full(self, q: QueueState, name: str) -> bool:
        most = self.terms(q, name).concurrency
        return bool(most) and sum(self._holders(q, name, state) for state in HOLDERS) >= most

    def _has_room(self, q: QueueState, name: str) -> bool:
        if is_window(name):
            return not self._holders(q, name, JobState.QUEUED)
        if self._is_full(q, name):
            return False
        ready = self._holders(q, name, JobState.QUEUED)
        return not self.terms(q, name).rate or ready < self._tokens(q, name)

    def _due(self, q: QueueState, name: str) -> int | None:
        """Return when time alone lets the first of a line go on, None for never or nobody."""
        terms, bucket = self.terms(q, name), self._bucket(q, name)
        if not self._line(q, name):
            return None
        if self._has_room(q, name):
            return self.now
        ready = self._holders(q, name, JobState.QUEUED)
        if not terms.rate or self._is_full(q, name) or ready + 1 > terms.burst:
            return None
        missing = bucket.owed - (terms.burst - ready - 1) * bucket.rate_ms
        return self.now + max(0, -(-missing // bucket.rate))

    def _touch(self, q: QueueState, name: str) -> None:
        self.touched.setdefault(name, False)
        q.buckets[name] = self._bucket(q, name)

    # Places

    def put_ready(self, q: QueueState, job: Record, *, at_head: bool) -> None:
        """Let a job wait for a worker, or in the line of the first gate that holds it up."""
        self._come(q, job, q.next_head() if at_head else q.next_tail())

    def _come(self, q: QueueState, job: Record, number: int, *, is_let_in: bool = False) -> None:
        line = None
        if job.state is JobState.ACTIVE and job.gates:
            for name in names_of(job):
                self._touch(q, name)
            super().leave(q, job)
            job.state = JobState.BLOCKED
        else:
            self.leave(q, job)
            job.state = JobState.BLOCKED  # it has no place while others are counted
            line = self._held_up(q, job, number)
        if is_let_in and line is None and any(map(is_window, names_of(job))):
            number = q.next_tail()
            self.let_in.add(job.id)
        job.number, job.at = number, self.now
        if line is None:
            super().put_ready(q, job, at_head=False)
            q.ready[job.lane, job.tier].sort(key=lambda job_id: q.jobs[job_id].number)
        else:
            job.parked = line

    def _held_up(self, q: QueueState, job: Record, number: int) -> str | None:
        for name in names_of(job):
            self._touch(q, name)
        for name in names_of(job):
            if not self._has_room(q, name):
                return name
            if any((-one.tier, one.number) < (-job.tier, number) for one in self._line(q, name)):
                return name
        return None

    def leave(self, q: QueueState, job: Record) -> None:
        """Take a job from where it waits, and from its places."""
        super().leave(q, job)
        if job.parked:
            self._touch(q, job.parked)
        elif job.state in HOLDERS:
            for name in names_of(job):
                self._touch(q, name)
                self.touched[name] |= job.state is JobState.QUEUED or not is_window(name)
        job.parked = ""

    def refusing(self, q: QueueState, job: Record) -> str | None:
        """Return the first gate that does not let a ready job start."""
        for name in names_of(job):
            self._touch(q, name)
        for name in names_of(job):
            terms = self.terms(q, name)
            active = self._holders(q, name, JobState.ACTIVE)
            if terms.concurrency and active >= terms.concurrency:
                return name
            if terms.rate and self._tokens(q, name) < 1:
                return name
        return None

    def start(self, q: QueueState, job: Record) -> None:
        """Take a ready job from its line in the queue, with a token of each rate."""
        super().leave(q, job)
        for name in names_of(job):
            q.buckets[name].owed += q.buckets[name].rate_ms
            self.touched[name] |= is_window(name)

    def park(self, q: QueueState, job: Record, line: str) -> None:
        """Take a ready job to the line of a gate that does not let it start."""
        self.leave(q, job)
        job.state, job.parked, job.at = JobState.BLOCKED, line, self.now
        self._touch(q, line)
        self.note("blocked", job, detail=shown(line))

    # Openings

    def _open(self, q: QueueState, name: str) -> None:
        """Let the first of a line take their places, while there is room."""
        self._touch(q, name)
        while self._has_room(q, name) and (line := self._line(q, name)):
            job = line[0]
            if job.is_overdue(self.now):
                self.fail(q, job, "expired", None)
                continue
            self._come(q, job, job.number, is_let_in=True)
            if job.state is JobState.QUEUED:
                self.note("queued", job, detail="admitted")

    def let_next_in(self, q: QueueState) -> None:
        """Let the next of a key in whose turn is over."""
        for name in [name for name, freed in self.touched.items() if freed and is_window(name)]:
            self.touched[name] = False
            self._open(q, name)

    def open_due(self, q: QueueState) -> None:
        """Open the gates whose time has come."""
        due = sorted((at, name) for name, at in q.gate_due.items() if at <= self.now)
        for _, name in due:
            self._open(q, name)
        if due:
            self._note_dues(q)

    def close_gates(self, q: QueueState) -> None:
        """Open the gates in which places came free in a call, and note when which is due."""
        while freed := [name for name, is_freed in self.touched.items() if is_freed]:
            for name in freed:
                self.touched[name] = False
                self._open(q, name)
        self._note_dues(q)
        self.trim(q)

    def _note_dues(self, q: QueueState) -> None:
        for name in self.touched:
            q.gate_due.pop(name, None)
            if (due := self._due(q, name)) is not None:
                q.gate_due[name] = due
        self.touched = {}

    def owes_tokens(self, queue: str) -> bool:
        """Whether tokens of any rate were taken, and have not all come again."""
        q = self.queue(queue)
        return any(bucket.left(self.now) for bucket in q.buckets.values())

    # Verbs

    def set_limit(self, queue: str, name: str, terms: Terms | None) -> None:
        """Set the terms of a limit over what workers and jobs say."""
        q = self.queue(queue)
        self.set_terms(q, name, q.limits.get(name, ("", ""))[0], terms.text if terms else "")

    def limits(self, queue: str) -> list[LimitInfo]:
        """Return the limits of a queue."""
        return [
            LimitInfo(name=name, declared=read_terms(declared), set=read_terms(operator))
            for name, (declared, operator) in sorted(self.queue(queue).limits.items())
        ]

    def gate(self, queue: str, name: str, key: str) -> GateInfo:
        """Return how a gate stands."""
        q, its_name = self.queue(queue), f"{name}\t{key}"
        return GateInfo(
            name=name,
            key=key,
            terms=self.terms(q, its_name) if name in q.limits else None,
            ready=self._holders(q, its_name, JobState.QUEUED),
            active=self._holders(q, its_name, JobState.ACTIVE),
            blocked=len(self._line(q, its_name)),
            tokens=self._tokens(q, its_name),
        )

    def gates_dump(self, q: QueueState) -> Dump:
        """Return what is known of limits and gates; what nobody is in and owes nothing is not."""
        names = {name for job in q.jobs.values() for name in names_of(job)} | set(q.buckets)
        gates = {}
        for name in names:
            owed = q.buckets.get(name, Bucket()).left(self.now)
            places = tuple(self._holders(q, name, state) for state in HOLDERS)
            if owed or any(places):
                gates[name] = (*places, owed)
        parked = {job.parked for job in q.jobs.values() if job.parked}
        return {
            "limits": dict(q.limits),
            "gates": gates,
            "lines": {name: [job.id for job in self._line(q, name)] for name in parked},
        }
