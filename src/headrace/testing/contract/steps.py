"""The steps of which contract tests are made: jobs, clients that enqueue, incarnations that run."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Self

import anyio

from headrace.storage import (
    BATCH_LIMIT,
    BeatReply,
    CallId,
    Cancelled,
    Claim,
    ClaimedJob,
    ClaimReply,
    Completed,
    ErrorInfo,
    EventRecord,
    Failed,
    FailReason,
    Gate,
    IncarnationInfo,
    JobEventKind,
    JobRecord,
    JobRequest,
    JobState,
    Outcome,
    PutBack,
    Report,
    Retried,
    Settlement,
    SlotsAsked,
    Snoozed,
    Stalled,
    Storage,
    Terms,
    Verdict,
    Waiter,
    gates_text,
)

QUEUE = "mail"
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
ERROR = ErrorInfo(type="ValueError", message="no such address", traceback="line 1")
DEATH = ErrorInfo(type="WorkerDied", message="its beat stopped")
KILLED = ErrorInfo(type="ProcessDied", message="it was killed by signal 9")
WAITING = [JobState.SCHEDULED, JobState.QUEUED, JobState.RETRYING]
UNENDED = [*WAITING, JobState.ACTIVE]
ENDED = [JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED]
STATES = [*UNENDED, *ENDED]
WRONG_CLAIMS = ["epoch", "nonce", "owner"]
# An order in which one job of each can be brought to its state.
EACH_STATE = [state for state in STATES if state is not JobState.QUEUED] + [JobState.QUEUED]


def a_job(job_id: str = "x", payload: bytes = b"[]", **options: Any) -> JobRequest:
    """Return a job of the test's queue."""
    return JobRequest(id=job_id, queue=QUEUE, task="send", payload=payload, **options)


def a_gated_job(
    job_id: str, key: str = "", terms: Terms | None = None, *, name: str = "stripe", **options: Any
) -> JobRequest:
    """Return a job that meets one limit."""
    return a_job(job_id, gates=gates_text([Gate(name, key, terms)]), **options)


async def gate_counts(
    storage: Storage, key: str = "", *, name: str = "stripe"
) -> tuple[int, int, int]:
    """Return how many jobs of a gate are ready, active and blocked."""
    gate = await storage.gate(QUEUE, name, key)
    return gate.ready, gate.active, gate.blocked


def completed(result: bytes = b"1", *, ttl_ms: int = HOUR_MS, keep_ms: int = HOUR_MS) -> Outcome:
    """Return that the handler returned."""
    return Completed(result, ttl_ms, keep_ms)


def retried(delay_ms: int = MINUTE_MS, error: ErrorInfo = ERROR) -> Outcome:
    """Return that the handler failed and is to run again."""
    return Retried(delay_ms, error)


def failed(
    reason: FailReason = FailReason.EXHAUSTED, error: ErrorInfo = ERROR, *, is_attempt: bool = True
) -> Outcome:
    """Return that the job is to become a dead letter."""
    return Failed(reason, error, is_attempt)


def cancelled(keep_ms: int = HOUR_MS, reason: str = "") -> Outcome:
    """Return that the job stopped as it was asked to, or could not."""
    return Cancelled(keep_ms, reason)


def stalled() -> Outcome:
    """Return that the process that ran the handler died."""
    return Stalled(KILLED)


def unknown_task(delay_ms: int = 5_000) -> Outcome:
    """Return that the worker does not know the task."""
    return PutBack(delay_ms, ErrorInfo(type="UnknownTask", message="send"))


def misfit(limit_ms: int) -> Outcome:
    """Return that the worker's release does not take these arguments."""
    return PutBack(
        1_000,
        ErrorInfo(type="ValidationError", message="\tno field `b`\n", start=1),
        limit_ms,
        FailReason.UNDECODABLE,
    )


def snoozed(delay_ms: int = MINUTE_MS, reason: str = "") -> Outcome:
    """Return that the handler asked to run again, which is no failure."""
    return Snoozed(delay_ms, reason)


ANY_OUTCOME = [completed(), retried(), failed(), cancelled(), unknown_task(), stalled(), snoozed()]


class ContractClient:
    """Enqueues with rising call numbers."""

    def __init__(self, storage: Storage, name: str = "c1") -> None:
        self._storage = storage
        self._name = name
        self._number = 0

    def call(self, number: int) -> CallId:
        """Return the name of this client's call of that number."""
        return CallId(self._name, number)

    async def enqueue(self, *jobs: JobRequest, number: int | None = None) -> list[Verdict]:
        """Enqueue in one call: the next one, or the one that is numbered."""
        if number is None:
            self._number = number = self._number + 1
        return await self._storage.enqueue(QUEUE, jobs, call=self.call(number))

    async def enqueue_all(self, jobs: Iterable[JobRequest]) -> None:
        """Enqueue more jobs than go into one call."""
        source = iter(jobs)
        while batch := list(islice(source, BATCH_LIMIT)):
            await self.enqueue(*batch)


class ContractIncarnation:
    """Claims and settles with rising call numbers."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        *,
        lease_ms: int = 15_000,
        tasks: Mapping[str, str] | None = None,
        channel: str = "",
        limits: Mapping[str, str] | None = None,
        lanes: Mapping[str, int] | None = None,
    ) -> None:
        self.name: str = name
        self.info: IncarnationInfo = IncarnationInfo(
            incarnation=name,
            name="mailer",
            host="host-1",
            pid=77,
            version="1.2.3",
            app_version="2025-11",
            concurrency=8,
            lease_ms=lease_ms,
            registered_ms=0,
            tasks=dict(tasks or {}),
            channel=channel,
            limits=dict(limits or {}),
            lanes=dict(lanes or {}),
        )
        self._storage = storage
        self._claims = 0
        self._settles = 0

    async def register(self) -> Self:
        await self._storage.register(QUEUE, self.info)
        return self

    def nonce(self) -> str:
        """Return a new nonce for a claim."""
        return f"{self.name}/{secrets.token_hex(8)}"

    async def ask(
        self,
        limit: int = 500,
        *,
        slots: SlotsAsked | None = None,
        number: int | None = None,
        nonce: str | None = None,
    ) -> ClaimReply:
        """Claim, and return the whole reply."""
        if number is None:
            self._claims = number = self._claims + 1
        return await self._storage.claim(
            QUEUE,
            call=CallId(self.name, number),
            nonce=nonce or self.nonce(),
            slots={"default": limit} if slots is None else slots,
        )

    async def ask_behind(
        self, waiter: Waiter, *, number: int | None = None, nonce: str | None = None
    ) -> ClaimReply:
        """Claim one job when the pending wait ends, and return the whole reply."""
        if number is None:
            self._claims = number = self._claims + 1
        return await waiter.claim(
            call=CallId(self.name, number), nonce=nonce or self.nonce(), slots={"default": 1}
        )

    async def claim(self, limit: int = 500, *, slots: SlotsAsked | None = None) -> list[ClaimedJob]:
        """Claim, and return the jobs."""
        return (await self.ask(limit, slots=slots)).jobs

    async def claim_one(self) -> ClaimedJob:
        """Claim one job that must be there."""
        [job] = await self.claim(1)
        return job

    async def settle_all(
        self, *settlements: Settlement, number: int | None = None
    ) -> list[bool] | None:
        """Settle in one call: the next one, or the one that is numbered."""
        if number is None:
            self._settles = number = self._settles + 1
        return await self._storage.settle(QUEUE, settlements, call=CallId(self.name, number))

    async def settle(
        self, job: ClaimedJob, outcome: Outcome, *, claim: Claim | None = None, run_ms: int = 7
    ) -> bool:
        """Settle one attempt, on demand with another claim; whether the claim was current."""
        reply = await self.settle_all(Settlement(job.id, claim or job.claim, run_ms, outcome))
        assert reply is not None
        [is_current] = reply
        return is_current

    async def report(
        self,
        job: ClaimedJob,
        fraction: float | None = None,
        text: str = "",
        *,
        chunks: Sequence[bytes] = (),
        first: int = 0,
        claim: Claim | None = None,
    ) -> bool:
        """Report one attempt, on demand with another claim; whether the claim was current."""
        report = Report(job.id, claim or job.claim, fraction, text, list(chunks), first)
        [is_current] = await self._storage.report(QUEUE, [report])
        return is_current

    def beat(self) -> BeatReply:
        beater = self._storage.open_beater(timeout_s=5)
        try:
            return beater.beat(QUEUE, self.name)
        finally:
            beater.close()

    async def reap_once(self, *, seen: int | None = None) -> int | None:
        """Let a sweep that saw this beat condemn it; without a number: the present beat."""
        if seen is None:
            seen = (await self._storage.beats(QUEUE))[self.name].count
        return await self._storage.reap(QUEUE, self.name, seen=seen, error=DEATH)

    async def die(self) -> None:
        """Be reaped and forgotten."""
        while await self.reap_once():
            pass
        assert await self._storage.forget(QUEUE, self.name)


async def bring(
    state: JobState,
    client: ContractClient,
    worker: ContractIncarnation,
    job_id: str = "x",
    **options: Any,
) -> ClaimedJob | None:
    """Bring a new job to ``state``; return its attempt if it had one."""
    if state is JobState.SCHEDULED:
        await client.enqueue(a_job(job_id, delay_ms=MINUTE_MS, **options))
        return None
    await client.enqueue(a_job(job_id, **options))
    if state is JobState.QUEUED:
        return None
    job = await worker.claim_one()
    assert job.id == job_id
    outcome = {
        JobState.RETRYING: retried(),
        JobState.COMPLETED: completed(),
        JobState.FAILED: failed(),
        JobState.CANCELLED: cancelled(),
    }.get(state)
    if outcome is not None:
        assert await worker.settle(job, outcome)
    return job


async def started(
    client: ContractClient, worker: ContractIncarnation, job_id: str = "x", **options: Any
) -> ClaimedJob:
    """Return a new attempt."""
    job = await bring(JobState.ACTIVE, client, worker, job_id, **options)
    assert job is not None
    return job


async def record_of(storage: Storage, job_id: str = "x") -> JobRecord:
    """Return what is kept of a job, which must be something."""
    record = await storage.get(QUEUE, job_id)
    assert record is not None
    return record


async def left_events(storage: Storage) -> list[EventRecord]:
    """Return the events of incarnations that have left."""
    events = (await storage.events(QUEUE, limit=10_000)).events
    return [event for event in events if event.kind is JobEventKind.LEFT]


def wrong(claim: Claim, what: str) -> Claim:
    """Return a claim that is not this one, one of `WRONG_CLAIMS`."""
    return {
        "epoch": Claim(claim.epoch + 1, claim.nonce),
        "nonce": Claim(claim.epoch, claim.nonce + "0"),
        "owner": Claim(claim.epoch, "w2/" + claim.nonce.partition("/")[2]),
    }[what]


async def until(is_so: Callable[[], Awaitable[bool]], *, within_s: float = 5.0) -> None:
    """Wait for what comes a little later: a record's end by the server's own clock, a token.

    Raises:
        TimeoutError: it was still not so after ``within_s``.
    """
    with anyio.fail_after(within_s):
        while True:
            if await is_so():
                return
            await anyio.sleep(0.005)


async def state_of(storage: Storage, job_id: str = "x") -> JobState | None:
    """Return a job's state, None without a record."""
    record = await storage.get(QUEUE, job_id)
    return None if record is None else record.state


def ids(jobs: list[ClaimedJob]) -> list[str]:
    """Return the ids of claimed jobs, in order."""
    return [job.id for job in jobs]
