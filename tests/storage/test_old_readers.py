"""A program of an older release reads the events that this one writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headrace.job import JobState
from headrace.outcome import Cancelled, Stalled
from headrace.storage import EventRecord, JobEventKind, Storage
from headrace.testing.contract import Subject
from headrace.testing.contract.event_words import RAISED
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_job,
    completed,
    failed,
    retried,
    snoozed,
    unknown_task,
)
from headrace.testing.contract.updates import an_update
from tests.storage.conftest import RedisSubject, SqliteSubject, in_order

OLD_KINDS = (
    *("queued", "scheduled", "active", "retrying", "snoozed", "completed", "failed"),
    *("cancelled", "stalled", "put_back", "progress"),
)
NEW_KINDS = ("purged", "joined", "left", "blocked", "updated")


class OldEvent(NamedTuple):
    """What the first release read of an event."""

    kind: str
    job_id: str
    task: str
    start: int
    incarnation: str
    wait_ms: int
    run_ms: int
    detail: str


def read_as_the_first_release_did(line: str) -> OldEvent | None:
    """Read a line, None of a kind that was not known: a copy that does not change any more."""
    kind, job_id, task, start, incarnation, wait, run, detail = line.split("\t", 7)
    if kind not in OLD_KINDS:
        return None
    return OldEvent(
        kind=kind,
        job_id=job_id,
        task=task,
        start=int(start or 0),
        incarnation=incarnation,
        wait_ms=int(wait or 0),
        run_ms=int(run or 0),
        detail=detail,
    )


@pytest.fixture(params=["redis", "memory", "file"])
async def subject(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Subject]:
    """Return each of our storages."""
    if request.param == "redis":
        made: Subject = RedisSubject(request.getfixturevalue("redis_url"))
    else:
        made = SqliteSubject(f"file://{tmp_path}/data" if request.param == "file" else "memory://x")
    async with in_order(made) as checked:
        yield checked


def raw_lines(subject: Any) -> list[str]:
    """Return the lines as they are stored."""
    texts: list[str]
    if isinstance(subject, RedisSubject):
        entries: Any = subject._client.xrange(f"hr:{{acme:{QUEUE}}}:events")  # noqa: SLF001
        texts = [fields[b"events"].decode() for _, fields in entries]
    else:
        sql = "SELECT lines FROM events ORDER BY key"
        rows = subject._call(lambda step: step.db.execute(sql).fetchall())  # noqa: SLF001
        texts = [text for (text,) in rows]
    return [line for text in texts for line in text.split("\n")]


async def write_every_kind(storage: Storage, client: ContractClient) -> None:
    worker = await ContractIncarnation(storage, "w1").register()
    await client.enqueue(a_job("later", delay_ms=60_000), a_job(max_stalls=9))
    job = await worker.claim_one()
    await worker.report(job, 0.5, "half")
    for outcome in (retried(0, RAISED), snoozed(0, "not yet"), unknown_task(0), Stalled(RAISED)):
        await worker.settle(job, outcome)
        job = await worker.claim_one()
    await storage.put_back(QUEUE, worker.name, [(job.id, job.claim)])
    await worker.settle(await worker.claim_one(), failed(error=RAISED))
    await storage.redrive(QUEUE, ["x"])
    await worker.settle(await worker.claim_one(), completed())
    await client.enqueue(a_job("stopped"))
    await worker.settle(await worker.claim_one(), Cancelled(60_000, "could_not_stop"))
    await client.enqueue(an_update(job_id="later", delay_ms=30_000), a_job("y"))
    job = await worker.claim_one()
    await client.enqueue(an_update(job_id="y", delay_ms=60_000))
    await worker.settle(job, completed())
    await storage.purge(QUEUE, JobState.SCHEDULED, ["later"])
    await storage.retire(QUEUE, worker.name)


async def test_an_old_reader_reads_every_line(
    subject: Subject, storage: Storage, client: ContractClient
) -> None:
    await write_every_kind(storage, client)
    lines = raw_lines(subject)
    events: list[EventRecord] = (await storage.events(QUEUE, limit=1_000)).events
    assert {event.kind for event in events} == set(JobEventKind)
    assert len(lines) == len(events)
    for line, event in zip(lines, events, strict=True):
        old = read_as_the_first_release_did(line)
        if event.kind in NEW_KINDS:
            assert old is None
            continue
        assert old is not None
        assert old[:7] == (
            event.kind.value, event.job_id, event.task, event.start, event.incarnation,
            event.wait_ms, event.run_ms,
        )  # fmt: skip
        # What it has read until now still stands first.
        assert old.detail.split("\t")[0] in (event.detail, str(event.due_ms or event.created_ms))
