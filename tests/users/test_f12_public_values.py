"""F12: what the Python API tells is decoded, dated, and fit for a web service to return."""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import msgspec
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from headrace import (
    App,
    ErrorEntry,
    ExportedJob,
    JobEvent,
    JobEventKind,
    JobFailed,
    JobOutcome,
    JobState,
    JobStatus,
    JobSummary,
    Percentiles,
    QueueReader,
    QueueStats,
    QueueWork,
    QueueWorker,
    Reason,
    Schedule,
    ScheduleEvent,
    Task,
    Why,
    Worker,
    WriteReport,
)
from headrace.events import WorkerEvent
from headrace.testing import running
from tests.support.jobs import ended
from tests.support.processes import ROOT
from tests.support.until import patience

REFERENCE = ROOT / "docs" / "reference.md"
PUBLIC = (
    *(JobStatus, JobSummary, ErrorEntry, JobEvent, QueueStats, QueueWork, QueueWorker),
    QueueReader,
    *(Schedule, ScheduleEvent, JobOutcome, ExportedJob, WriteReport, Why, Reason),
)


@pytest.fixture
def bill(app: App[None]) -> Task[[int, str], dict[str, int]]:
    @app.task(name="bill", queue="bills", max_attempts=1)
    async def bill(number: int, to: str) -> dict[str, int]:
        if number < 0:
            raise ValueError(f"no bill {number}")
        return {to: number}

    return bill


async def test_f12_a_status_is_decoded_and_dated(
    app: App[None], bill: Task[[int, str], dict[str, int]]
) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    async with running(Worker(app)):
        job = await bill.options(headers={"user": "ada"}).enqueue(7, "a@b.c")
        assert await job.result(timeout=patience(10)) == {"a@b.c": 7}
    status = await job.status()
    assert (status.state, status.args, status.result) == (
        "completed",
        {"number": 7, "to": "a@b.c"},
        {"a@b.c": 7},
    )
    assert status.options["headers"] == {"user": "ada"}
    assert (
        before < status.created_at <= status.changed_at < datetime.now(UTC) + timedelta(seconds=1)
    )
    assert status.created_at.tzinfo is UTC
    assert status.run_s is not None
    assert 0 <= status.run_s < patience(10)
    assert (status.due_at, status.expires_at, status.reason, status.progress) == (None,) * 4


async def test_f12_a_failure_has_its_errors(
    app: App[None], bill: Task[[int, str], dict[str, int]]
) -> None:
    async with running(Worker(app)):
        job = await bill.enqueue(-1, "a@b.c")
        with pytest.raises(JobFailed):
            await job.result(timeout=patience(10))
    status = await job.status()
    [error] = status.errors
    assert (status.state, status.reason, status.result) == (JobState.FAILED, "exhausted", None)
    assert (error.type, error.message, error.start) == ("ValueError", "no bill -1", 1)
    assert error.at is not None
    [summary] = [job async for job in app.queue("bills").jobs("failed")]
    assert (summary.id, summary.queue, summary.error) == (job.id, "bills", "ValueError")
    assert summary.message == "no bill -1"


async def test_f12_nothing_of_a_call_is_in_the_repr(
    bill: Task[[int, str], dict[str, int]],
) -> None:
    """One that lands in a log must not take what users passed along."""
    status = await (await bill.enqueue(7, "secret@b.c")).status()
    assert "secret@b.c" not in repr(status)
    assert "bill" in repr(status)


async def test_f12_counts_workers_and_events_are_values_too(
    app: App[None], bill: Task[[int, str], dict[str, int]]
) -> None:
    queue = app.queue("bills")
    async with running(Worker(app, concurrency=3)):
        job = await bill.enqueue(7, "a@b.c")
        await job.result(timeout=patience(10))
        [worker] = await queue.workers()
    assert (worker.queue, worker.concurrency, worker.condemned) == ("bills", 3, False)
    assert worker.tasks == {"bill": "default"}
    assert worker.lease_s > 1
    stats = await queue.stats()
    assert (stats.queue, stats.history, stats.paused, stats.oldest_s) == ("bills", 1, False, None)
    assert (stats.last_minute.enqueued, stats.last_minute.completed) == (1, 1)
    assert isinstance(stats.last_minute.wait_s, Percentiles)
    joined, queued, active, completed, left = [event async for event in queue.events()]
    assert (joined.worker, left.detail, left.host) == (worker.name, "retired", worker.host)
    assert joined.incarnation == joined.job_id == left.job_id == worker.incarnation
    assert [event.kind for event in (queued, active, completed)] == [
        "queued",
        "active",
        "completed",
    ]
    assert (queued.wait_s, queued.run_s, queued.incarnation) == (None, None, None)
    assert active.wait_s is not None
    assert completed.run_s is not None
    assert (completed.job_id, completed.incarnation) == (job.id, worker.incarnation)
    assert queued.at <= active.at <= completed.at
    assert completed.created_at == (await job.status()).created_at
    assert [event.number for event in (joined, queued, active, completed, left)] == [1, 2, 3, 4, 5]


async def test_f12_what_a_queue_keeps_is_told_after_a_change(app: App[None]) -> None:
    queue = app.queue("bills")
    changed = await queue.configure(history=7, dead_letter_ttl=60)
    found = await queue.stats()
    assert (changed.keeps_history, changed.keeps_dead_s) == (7, 60.0)
    assert (found.keeps_history, found.keeps_dead_s) == (7, 60.0)


async def test_f12_to_dict_is_ready_for_json(
    app: App[None], bill: Task[[int, str], dict[str, int]]
) -> None:
    async with running(Worker(app)):
        await ended(await bill.enqueue(7, "a@b.c"))
        job = await bill.enqueue(-1, "a@b.c")
        await ended(job)
        [worker] = await app.queue("bills").workers()
    status = await job.status()
    document = json.loads(json.dumps(status.to_dict()))
    assert document["state"] == "failed"
    assert document["args"] == {"number": -1, "to": "a@b.c"}
    assert datetime.fromisoformat(document["created_at"]) == status.created_at
    assert isinstance(document["run_ms"], int)
    assert document["errors"][0]["message"] == "no bill -1"
    stats = json.loads(json.dumps((await app.queue("bills").stats()).to_dict()))
    assert set(stats["last_minute"]["run_ms"]) == {"p50", "p95", "p99"}
    assert json.dumps(worker.to_dict())
    async for event in app.queue("bills").events():
        assert json.dumps(event.to_dict())


def test_f12_to_dict_tells_durations_in_milliseconds() -> None:
    at = datetime(2026, 1, 31, 8, tzinfo=UTC)
    event = JobEvent(
        queue="q", number=7, stream_id="1-0", at=at, kind=JobEventKind.COMPLETED, job_id="x",
        task="t", start=1, incarnation=None, wait_s=None, run_s=0.0125, detail=None,
        error=None, message=None, frame=None, due_at=at, created_at=None, worker=None, host=None,
        version=None, app_version=None,
    )  # fmt: skip
    assert event.to_dict() == {
        "queue": "q", "number": 7, "stream_id": "1-0", "at": "2026-01-31T08:00:00Z",
        "kind": "completed", "job_id": "x", "task": "t", "start": 1,
        "incarnation": None, "wait_ms": None, "run_ms": 12,
        "detail": None, "error": None, "message": None, "frame": None,
        "due_at": "2026-01-31T08:00:00Z", "created_at": None, "worker": None, "host": None,
        "version": None, "app_version": None,
    }  # fmt: skip


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_f12_public_values_are_frozen(kind: type[Any]) -> None:
    value, field = object.__new__(kind), dataclasses.fields(kind)[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, field.name, "x")


def test_f12_a_web_service_returns_them(storage_url: str) -> None:
    jobs = App(storage_url, tenant=f"test-{secrets.token_hex(6)}")

    @jobs.task(name="bill", queue="bills")
    async def bill(number: int) -> int:
        return number

    @asynccontextmanager
    async def lifespan(_service: FastAPI) -> AsyncIterator[None]:
        async with jobs:
            yield

    service = FastAPI(lifespan=lifespan)

    async def status(job_id: str) -> JobStatus:
        return await jobs.job(job_id, queue="bills").status()

    async def start(number: int) -> dict[str, str]:
        return {"id": (await bill.enqueue(number)).id}

    async def stats() -> QueueStats:
        return await jobs.queue("bills").stats()

    service.post("/bills/{number}")(start)
    service.get("/jobs/{job_id}")(status)
    service.get("/plain/{job_id}", response_model=None)(status)
    service.get("/stats")(stats)
    with TestClient(service) as client:
        job_id = client.post("/bills/7").json()["id"]
        for path in ("jobs", "plain"):
            answer = client.get(f"/{path}/{job_id}")
            assert answer.status_code == 200
            document = answer.json()
            assert (document["state"], document["args"]) == ("queued", {"number": 7})
            assert datetime.fromisoformat(document["created_at"]).tzinfo is not None
        assert client.get("/stats").json()["queued"] == 1
        schemas = client.get("/openapi.json").json()["components"]["schemas"]
        assert {"JobStatus", "QueueStats"} <= set(schemas)


@pytest.mark.parametrize("kind", [*PUBLIC, Percentiles], ids=lambda kind: kind.__name__)
def test_f12_every_field_is_in_the_reference(kind: type[Any]) -> None:
    [_, section] = re.split(rf"^## {kind.__name__}$", REFERENCE.read_text(), flags=re.M)
    section = section.partition("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \|", section, flags=re.M)
    assert named == [field.name for field in dataclasses.fields(kind)]


@pytest.mark.parametrize("kind", get_args(WorkerEvent), ids=lambda kind: kind.__name__)
def test_f12_every_worker_event_is_in_the_reference(kind: type[msgspec.Struct]) -> None:
    [fields] = re.findall(
        rf"^\| `{kind.__name__}` \| [^|]* \| ([^|]*) \|", REFERENCE.read_text(), re.M
    )
    assert re.findall(r"`(\w+)`", fields) == [field.name for field in msgspec.structs.fields(kind)]
