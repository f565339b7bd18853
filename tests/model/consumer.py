"""The model of what runs jobs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from headrace.errors import StaleCall
from headrace.job import DEFAULT_LANE, Claim, ClaimedJob, JobState
from headrace.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    PutBack,
    Retried,
    Snoozed,
    Stalled,
    Struck,
)
from headrace.storage.incarnations import (
    BeatReply,
    ClaimReply,
    FreeSlots,
    IncarnationInfo,
    SlotsAsked,
    free_slots,
)
from headrace.storage.values import CallId, Report, Settlement
from tests.model.places import ContractIncarnation, Output, QueueState, Record
from tests.model.updates import UpdateModel

MANY = 1_000
TIERS = range(9, -1, -1)
GONE = ClaimReply(is_gone=True, is_paused=False, has_more=False, next_due_ms=None, jobs=[])


@dataclass
class Room:
    """What a claim has of a lane: its slots, those that its jobs hold, and what did not fit."""

    slots: FreeSlots
    held: int = 0
    passed: int = 0
    awaited: int = 0


class ConsumerModel(UpdateModel):
    """``register``, ``claim``, ``settle``, ``put_back``, ``beat``, ``held``, ``retire``."""

    def register(self, queue: str, worker: IncarnationInfo) -> None:
        """Make an incarnation known; again: its beats start anew, its calls go on."""
        q = self.queue(queue)
        known = q.workers.get(worker.incarnation)
        new = ContractIncarnation(worker.lease_ms, self.now, self.now, msgspec.json.encode(worker))
        if q.live(worker.incarnation) is None:
            self.note_incarnation("joined", worker.incarnation, new.info)
        if known is not None:
            new.claim, new.settle, new.settled = known.claim, known.settle, known.settled
        for task, lane in worker.tasks.items():
            q.lanes.pop(task, None)
            if lane != DEFAULT_LANE:
                q.lanes[task] = lane
        q.workers[worker.incarnation] = new
        for name, declared in worker.limits.items():
            self.set_terms(q, name, declared, q.limits.get(name, ("", ""))[1])

    def beat(self, queue: str, incarnation: str) -> BeatReply:
        """Say that an incarnation lives; its jobs that are asked to stop, sorted."""
        q = self.queue(queue)
        me = q.live(incarnation)
        if me is None:
            return BeatReply(is_gone=True, cancel_ids=[])
        me.count, me.at = me.count + 1, self.now
        asked = sorted(job.id for job in q.held_by(incarnation) if job.cancel)
        return BeatReply(is_gone=False, cancel_ids=asked)

    def claim(self, queue: str, *, call: CallId, nonce: str, slots: SlotsAsked) -> ClaimReply:
        """Make due jobs ready, then take up to ``slots[lane]`` of each lane, best tier first.

        Raises:
            StaleCall: a newer call of the incarnation came before.
        """
        q = self.queue(queue)
        me = q.live(call.client)
        if me is None:
            return GONE
        if call.number < me.claim:
            raise StaleCall(f"claim call {call.number} is older than {me.claim}")
        if call.number == me.claim:
            return self._reply(q, self._again(q, call.client, nonce))
        me.claim = call.number
        if q.is_paused:
            return ClaimReply(
                is_gone=False, is_paused=True, has_more=False, next_due_ms=None, jobs=[]
            )
        self._promote(q)
        self._begin_to_take(q)
        there, passed = frozenset(q.jobs), set[str]()
        jobs: list[ClaimedJob] = []
        # Who had room in a lane and took nothing can't take what is left there.
        looked_for = [] if slots else list(q.queued_by_lane())
        rooms = {lane: Room(free_slots(asked)) for lane, asked in slots.items()}
        for lane, room in rooms.items():
            taken: list[ClaimedJob] = []
            limit = min(room.slots.free, self._may_start(q))
            if limit:
                taken, behind = self._drain(q, lane, limit, call, nonce, there=there, room=room)
                passed.update(behind)
            jobs += taken
            if (taken or not limit) and not room.awaited:
                looked_for.append(lane)
        if passed or self.let_in:
            self.sort_come(q, passed | self.let_in, there)
        self.close_gates(q)
        left = looked_for if self._may_start(q) or not slots else []
        passed_over = {lane: room.passed for lane, room in rooms.items()}
        queued = q.queued_by_lane()
        left = [lane for lane in left if queued.get(lane, 0) > passed_over.get(lane, 0)]
        awaited = {lane: room.awaited for lane, room in rooms.items() if room.awaited}
        for lane in (*left, *awaited):
            q.wake(lane)
        has_more = bool(left)
        return self._reply(q, jobs, has_more=has_more, awaited=awaited)

    def _may_start(self, q: QueueState) -> int:
        most = q.settings.max_active or MANY
        return max(0, most - sum(job.state is JobState.ACTIVE for job in q.jobs.values()))

    def _reply(
        self,
        q: QueueState,
        jobs: list[ClaimedJob],
        *,
        has_more: bool = False,
        awaited: dict[str, int] | None = None,
    ) -> ClaimReply:
        due = self.first_due(q)
        return ClaimReply(
            is_gone=False,
            is_paused=False,
            has_more=has_more,
            next_due_ms=None if due is None else max(0, due - self.now),
            jobs=jobs,
            awaited=awaited or {},
            strikes=self.strikes_version(q),
            weight=q.settings.weight,
        )

    def _again(self, q: QueueState, incarnation: str, nonce: str) -> list[ClaimedJob]:
        """Return what a repeated claim owns still, sorted."""
        held = [job for job in q.held_by(incarnation) if job.nonce == nonce]
        return [_claimed(q, job, 0) for job in sorted(held, key=lambda job: job.id)]

    def _promote(self, q: QueueState) -> None:
        for job in [q.jobs[job_id] for job_id in q.delayed]:
            if job.due is not None and job.due > self.now:
                continue
            if job.is_overdue(self.now):
                self.fail(q, job, "expired", None)
            else:
                self.put_ready(q, job, at_head=False)
                self.note("queued", job, detail="due")
        self.open_due(q)

    def _drain(
        self,
        q: QueueState,
        lane: str,
        limit: int,
        call: CallId,
        nonce: str,
        *,
        there: frozenset[str],
        room: Room,
    ) -> tuple[list[ClaimedJob], list[str]]:
        """Take from one lane; who must wait goes to the tail, where it holds nobody up.

        What this very claim brings in, as it finds that a job has expired, is not ``there`` yet.

        Returns:
            What was taken, and the ids of those that must wait.
        """
        jobs: list[ClaimedJob] = []
        behind: list[str] = []
        heavy: set[str] = set()
        while len(jobs) < limit and room.held < room.slots.free:
            left = there - heavy - set(behind)
            aged = self._aged(q, lane, left)
            job = aged or self._first(q, lane, left)
            if job is None:
                break
            if self._is_kept_out(q, job):
                pass
            elif job.slots > room.slots.total:
                heavy.add(job.id)
            elif job.slots > room.slots.free - room.held:
                room.awaited = job.slots
                break
            elif self._must_wait(q, job, call.client):
                behind.append(job.id)
            elif line := self.refusing(q, job):
                self.park(q, job, line)
            else:
                room.held += job.slots
                jobs.append(self._take(q, job, nonce))
                _count_start(q, is_aged=aged is not None)
            self.let_next_in(q)
        room.passed = len(heavy)
        _move_behind(q, lane, behind)
        return jobs, behind

    def _is_kept_out(self, q: QueueState, job: Record) -> bool:
        """Put away a ready job that has expired or is struck; whether it is one."""
        if job.is_overdue(self.now):
            self.fail(q, job, "expired", None)
            return True
        strike = self.struck(q, job)
        if strike is not None:
            self.meet(q, job, strike)
        return strike is not None

    def _begin_to_take(self, q: QueueState) -> None:
        self.let_in = set()
        if q.settings.aging:
            q.aged = min(q.settings.aging - 1, q.aged)

    def _heads(self, q: QueueState, lane: str, there: Collection[str]) -> list[Record]:
        """Return the first of each tier of those that are there, best tier first."""
        lines = ([i for i in q.ready.get((lane, tier), []) if i in there] for tier in TIERS)
        return [q.jobs[line[0]] for line in lines if line]

    def _first(self, q: QueueState, lane: str, there: Collection[str]) -> Record | None:
        """Return the first of those that are there, best tier first."""
        return next(iter(self._heads(q, lane, there)), None)

    def _aged(self, q: QueueState, lane: str, there: Collection[str]) -> Record | None:
        """Return who is due by its age, where lower tiers have a share."""
        if not q.settings.aging or q.aged < q.settings.aging - 1:
            return None
        lower = self._heads(q, lane, there)[1:]
        return min(lower, key=lambda job: (job.at, -job.tier), default=None)

    def _must_wait(self, q: QueueState, job: Record, incarnation: str) -> bool:
        """Whether one more death would end this job and another that the incarnation has."""
        return _is_on_last_chance(job) and any(map(_is_on_last_chance, q.held_by(incarnation)))

    def _take(self, q: QueueState, job: Record, nonce: str) -> ClaimedJob:
        waited_ms = max(0, self.now - job.at)
        self.start(q, job)
        job.state, job.at, job.nonce = JobState.ACTIVE, self.now, nonce
        job.epoch += 1
        job.progress, job.progress_text = None, ""
        self.observe(q, "wait", waited_ms)
        self.note("active", job, worker=job.owner, wait_ms=waited_ms)
        return _claimed(q, job, waited_ms)

    def settle(
        self, queue: str, settlements: Sequence[Settlement], *, call: CallId
    ) -> list[bool] | None:
        """Write outcomes, each for the claim that owns it; the same number: the same answer.

        Raises:
            StaleCall: a newer call of the incarnation came before.
        """
        q = self.queue(queue)
        me = q.live(call.client)
        if me is None:
            return None
        if call.number < me.settle:
            raise StaleCall(f"settle call {call.number} is older than {me.settle}")
        if call.number > me.settle:
            me.settled = [self._settle(q, settlement, call.client) for settlement in settlements]
            me.settle = call.number
            self.trim(q)
        return list(me.settled)

    def _settle(self, q: QueueState, settlement: Settlement, incarnation: str) -> bool:
        job = q.jobs.get(settlement.job_id)
        if job is None:
            return True
        if settlement.claim != Claim(job.epoch, job.nonce) or job.owner != incarnation:
            return False
        if job.state is not JobState.ACTIVE:
            return job.state.is_terminal
        if job.stalls:
            q.wake_all()  # one that must wait for this one's end may go on
        outcome, run_ms = settlement.outcome, settlement.run_ms
        if isinstance(outcome, PutBack | Struck):
            run_ms = 0  # it was never run
        else:
            self.observe(q, "run", run_ms)
        if job.cancel and isinstance(outcome, Retried | Snoozed | PutBack | Struck):
            self.end_cancelled(q, job, job.keep, run_ms=run_ms)
        else:
            self._write(q, job, outcome, run_ms)
        return True

    def _write(self, q: QueueState, job: Record, outcome: Outcome, run_ms: int) -> None:
        match outcome:
            case Completed(result, ttl_ms, keep_ms):
                self.complete(q, job, result, ttl_ms=ttl_ms, keep_ms=keep_ms, run_ms=run_ms)
            case Retried(delay_ms, error):
                job.failures += 1
                job.run = run_ms
                self.note_error(job, error)
                self.tally(q, "retried")
                due = self.now + delay_ms
                self.note("retrying", job, worker=job.owner, run_ms=run_ms, error=error, due=due)
                self.put_delayed(q, job, JobState.RETRYING, due)
                self.apply_next(q, job)
            case Snoozed(delay_ms, why):
                job.run, job.put_back = run_ms, None
                due = self.now + delay_ms
                self.note("snoozed", job, worker=job.owner, run_ms=run_ms, detail=why, due=due)
                self.put_delayed(q, job, JobState.SCHEDULED, due)
                self.apply_next(q, job)
            case Failed(reason, error, is_attempt):
                job.failures += is_attempt
                self.fail(q, job, reason.value, error, run_ms=run_ms)
            case Cancelled(keep_ms, reason):
                self.end_cancelled(q, job, keep_ms, run_ms=run_ms, reason=reason)
            case Stalled(error):
                self.stall(q, job, error, run_ms=run_ms)
            case PutBack():
                self._wait_for_another(q, job, outcome)
            case Struck():
                if self.lay_aside(q, job, outcome):
                    self.apply_next(q, job)
                else:
                    self._send_back(q, job)

    def _wait_for_another(self, q: QueueState, job: Record, outcome: PutBack) -> None:
        since = self.now if job.cause is None else job.cause.at_ms
        if self.now - since > outcome.limit_ms:
            self.fail(q, job, outcome.reason.value, outcome.error)
            return
        job.put_back = since, job.failures + job.stalls, outcome.error
        job.run = 0
        due = self.now + outcome.delay_ms
        self.note("put_back", job, worker=job.owner, detail=outcome.reason.value, due=due)
        self.put_delayed(q, job, JobState.SCHEDULED, due)
        self.apply_next(q, job)

    def put_back(self, queue: str, incarnation: str, jobs: Sequence[tuple[str, Claim]]) -> None:
        """Return claimed jobs to the head, in the order given; other claims are passed over."""
        q = self.queue(queue)
        for job_id, claim in reversed(jobs):
            job = q.jobs.get(job_id)
            if job is None or job.state is not JobState.ACTIVE:
                continue
            if claim == Claim(job.epoch, job.nonce):
                self._send_back(q, job)
        self.trim(q)

    def _send_back(self, q: QueueState, job: Record) -> None:
        if job.cancel:
            self.end_cancelled(q, job, job.keep)
            return
        self.put_ready(q, job, at_head=True)
        self.note("put_back", job, worker=job.owner)
        self.apply_next(q, job)

    def report(self, queue: str, reports: Sequence[Report]) -> list[bool]:
        """Store progress and output, each for the claim that owns it."""
        q = self.queue(queue)
        return [self._report(q, said) for said in reports]

    def _report(self, q: QueueState, said: Report) -> bool:
        job = q.jobs.get(said.job_id)
        if job is None or job.state is not JobState.ACTIVE:
            return False
        if said.claim != Claim(job.epoch, job.nonce):
            return False
        if said.chunks:
            self._add_output(q, job, said)
        if said.fraction is not None and (said.fraction, said.text) != (
            job.progress,
            job.progress_text,
        ):
            job.progress, job.progress_text = said.fraction, said.text
            self.note("progress", job, worker=job.owner, detail=f"{said.fraction:g} {said.text}")
        return True

    def _add_output(self, q: QueueState, job: Record, said: Report) -> None:
        output = q.outputs.get(job.id)
        if output is None or output.epoch != job.epoch:
            output = q.outputs[job.id] = Output(job.epoch, self.now)
        if output.is_outworn:
            # All or none are there still. New ones are never put before the last of them.
            found = (self.hint or {}).get("output", {}).get(job.id, (0, {}))[1]
            last = max(output.pieces, default=-1)
            if {number for number in found if number <= last} != set(output.pieces):
                output.pieces = {}
        output.at, output.is_outworn = self.now, False
        for number, chunk in enumerate(said.chunks, said.first):
            if number > max(output.pieces, default=-1):
                output.pieces[number] = chunk

    def held(self, queue: str, incarnation: str) -> list[tuple[str, Claim]]:
        """Return what an incarnation has claimed, sorted."""
        held = self.queue(queue).held_by(incarnation)
        return sorted(((job.id, Claim(job.epoch, job.nonce)) for job in held), key=lambda h: h[0])

    def retire(self, queue: str, incarnation: str) -> int:
        """Hand back what an incarnation has, and forget it."""
        q = self.queue(queue)
        self.hand_back(q, incarnation, lambda job: self._send_back(q, job))
        self.trim(q)
        q.wake_all()  # a token that ends with it must not leave jobs unseen
        if (me := q.live(incarnation)) is not None:
            self.note_incarnation("left", incarnation, me.info, "retired")
        q.workers.pop(incarnation, None)
        return 0


def _claimed(q: QueueState, job: Record, waited_ms: int) -> ClaimedJob:
    return ClaimedJob(
        id=job.id,
        queue=q.name,
        task=job.task,
        payload=job.payload,
        claim=Claim(job.epoch, job.nonce),
        failures=job.failures,
        stalls=job.stalls,
        created_ms=job.created,
        waited_ms=waited_ms,
        options=job.options,
        slots=job.slots,
    )


def _count_start(q: QueueState, *, is_aged: bool) -> None:
    """Count a start where lower tiers have a share: one of theirs begins the count anew."""
    if q.settings.aging:
        q.aged = 0 if is_aged else min(q.settings.aging - 1, q.aged + 1)


def _move_behind(q: QueueState, lane: str, job_ids: Sequence[str]) -> None:
    """Move ready jobs to the tail."""
    for job_id in job_ids:
        job = q.jobs[job_id]
        waiting = q.ready[lane, job.tier]
        waiting.remove(job_id)
        waiting.append(job_id)
        job.number = q.next_tail()


def _is_on_last_chance(job: Record) -> bool:
    return job.stalls > 0 and job.stalls + 1 >= job.max_stalls
