"""How a run is written by hand: one job after another, with the times in seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

from headrace import JobEvent, JobEventKind, JobState, JobSummary
from tests.chaos.evidence import Evidence, Machine
from tests.chaos.notes import Archived, Read, Run, Sent, Window
from tests.chaos.plan import plan_of
from tests.chaos.writes import Try, Write

WRITE = "write.p1-1.0"
PLAIN, OTHER, FAIL = "plain.p1-1.0", "plain.p1-1.1", "fail.p1-1.2"
THIRD = "plain.p1-1.6"
CRASH, DELAYED, CANCEL = "crash.p1-1.3", "delayed.p1-1.4", "cancel.p1-1.5"
PIDS = {"mixed-1": 1, "alone-1": 2, "pair-1": 3}


class Story:
    """A run under construction. Workers are named as `PIDS` says, each one incarnation."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.sent: list[Sent] = []
        self.windows: list[Window] = []
        self.writes: dict[str, Write] = {}
        self.spoil_archive: Callable[[list[Archived]], object] = len
        self.spoil_reads: Callable[[list[Read]], object] = len
        self.rows: dict[str, JobSummary] = {}
        self.events: list[JobEvent] = []
        self.machine = Machine()

    def say(self, word: str, job_id: str, what: str = "-", *, at: float = 0.0) -> None:
        """Write a producer's line."""
        self.sent.append(Sent(word, job_id, what, at))

    def accept(self, job_id: str, *, at: float = 0.0) -> None:
        """Let a job be wanted and accepted; its id is its label."""
        self.say("want", job_id, job_id, at=at)
        self.say("ok", job_id, "queued", at=at)

    def run(
        self, word: str, job_id: str, *, at: float, epoch: int = 1, worker: str = "mixed-1"
    ) -> None:
        """Write a handler's line."""
        nonce = f"{worker}/{epoch}"
        self.runs.append(Run(word, job_id, epoch, nonce, worker, PIDS[worker], at))

    def event(
        self,
        kind: JobEventKind,
        job_id: str,
        *,
        at: float,
        epoch: int = 1,
        worker: str = "mixed-1",
        detail: str = "",
    ) -> None:
        """Write a transition."""
        self.events.append(
            JobEvent(
                **dict.fromkeys(("error", "message", "frame", "due_at", "created_at")),
                **dict.fromkeys(("worker", "host", "version", "app_version")),
                queue="",
                number=len(self.events) + 1,
                stream_id="",
                at=datetime.fromtimestamp(at, UTC),
                kind=kind,
                job_id=job_id,
                task="",
                start=epoch,
                incarnation=worker,
                wait_s=None,
                run_s=None,
                detail=detail or None,
            )
        )

    def row(self, job_id: str, state: JobState, **fields: Any) -> None:
        """Write what is kept of a job."""
        row: dict[str, Any] = {
            **dict.fromkeys(("created_at", "changed_at"), datetime.fromtimestamp(0, UTC)),
            **dict.fromkeys(("due_at", "run_s", "reason", "error", "message")),
            **dict.fromkeys(("failures", "stalls"), 0),
            **dict.fromkeys(("queue", "task"), ""),
            "priority": 5,
            "starts": 1,
            "incarnation": "mixed-1",
        }
        self.rows[job_id] = JobSummary(id=job_id, state=state, **{**row, **fields})

    def start(
        self, job_id: str, *, at: float, epoch: int = 1, worker: str = "mixed-1", word: str = "end"
    ) -> None:
        """Let a worker claim a job and run it for a second; with ``word`` "" it never ends."""
        self.event(JobEventKind.ACTIVE, job_id, at=at, epoch=epoch, worker=worker)
        self.run("start", job_id, at=at, epoch=epoch, worker=worker)
        if word:
            self.run(word, job_id, at=at + 1, epoch=epoch, worker=worker)

    def finish(self, job_id: str, *, at: float, epoch: int = 1, worker: str = "mixed-1") -> None:
        """Let a job end as planned."""
        plan = plan_of(job_id)
        kind = JobEventKind(plan.state.value)
        self.event(kind, job_id, at=at, epoch=epoch, worker=worker, detail=plan.reason)
        self.row(
            job_id, plan.state, reason=plan.reason, failures=plan.failures,
            stalls=plan.stalls or 0, starts=epoch, incarnation=worker,
        )  # fmt: skip

    def job(self, job_id: str, *, at: float = 1.0, worker: str = "mixed-1") -> None:
        """Let a job be accepted, run once, and end as planned."""
        self.accept(job_id)
        self.start(job_id, at=at, worker=worker)
        self.finish(job_id, at=at + 1, worker=worker)

    def taken_over(self, job_id: str, *, word: str = "cut", back_at: float = 6.0) -> None:
        """Let ``mixed-1`` begin a job, and ``alone-1`` end it after it was taken back."""
        self.accept(job_id)
        self.start(job_id, at=1.0, word="")
        self.event(JobEventKind.STALLED, job_id, at=back_at, detail="WorkerDied")
        self.start(job_id, at=back_at + 0.1, epoch=2, worker="alone-1")
        if word:
            self.run(word, job_id, at=back_at + 0.5)
        self.finish(job_id, at=back_at + 1.1, epoch=2, worker="alone-1")
        self.row(job_id, JobState.COMPLETED, stalls=1, starts=2)

    def write(self, *tries: tuple[str, list[str]], stored: Collection[str] = ()) -> None:
        """Let a write have tries, each with its end and rows, and let some rows be stored."""
        made = [Try(rows, end, str(len(rows)) if end == "done" else "") for end, rows in tries]
        self.writes[WRITE] = Write(WRITE, "main", made)
        for job_id in {row for _, rows in tries for row in rows}:
            self.say("want", job_id, job_id)
        for job_id in stored:
            self.event(JobEventKind.QUEUED, job_id, at=0.5, epoch=0)
            self.start(job_id, at=1)
            self.finish(job_id, at=2)

    def evidence(self) -> Evidence:
        """Return it all, archived and read but for what was spoilt."""
        rows = [row for row in self.rows.values() if row.state.is_terminal]
        archive = [Archived(row.queue, row.state, row.id, "") for row in rows]
        reads = [Read(e.queue, e.number, e.kind, e.job_id) for e in self.events]
        self.spoil_archive(archive)
        self.spoil_reads(reads)
        return Evidence(
            runs=sorted(self.runs, key=lambda run: run.at),
            sent=self.sent,
            windows=self.windows,
            writes=self.writes,
            archive=archive,
            reads=reads,
            rows=self.rows,
            events=self.events,
            offset_s=0.0,
            machine=self.machine,
        )
