"""What an event takes on the server, by its kind: docs/operations.md tells it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import redis

from headrace.events import JobEventKind
from headrace.job import ClaimedJob, ErrorInfo, FailReason, JobIds, JobState
from headrace.outcome import (
    Cancelled,
    Completed,
    Failed,
    Outcome,
    PutBack,
    Retried,
    Snoozed,
    Stalled,
)
from headrace.request import JobRequest
from headrace.storage.incarnations import IncarnationInfo
from headrace.storage.limits import EVENTS_AN_ENTRY
from headrace.storage.redis.storage import RedisStorage
from headrace.storage.values import CallId, Report, Settlement
from headrace.update import Update

DOCUMENT = Path(__file__).parents[3] / "docs" / "operations.md"
QUEUE = "mail"
TASK = "shop.mail.send"
ERROR = ErrorInfo(
    type="ConnectionError",
    message="mail.example.com did not answer within 10 seconds, tried 3x",
    traceback='  File "/srv/shop/shop/mail.py", line 120, in send\n',
)
FAILED = Failed(FailReason.EXHAUSTED, ERROR)
ENTRIES = 1_000
TOLERANCE = 0.12
"""A server sets memory aside in pieces, and entries of one millisecond take less."""

OUTCOMES: tuple[Outcome, ...] = (
    *(Retried(0, ERROR), Snoozed(0, "rate limit"), PutBack(0, ERROR), Stalled(ERROR)),
    *(FAILED, Completed(b"1", 60_000, 60_000), Cancelled(60_000)),
)


class Writer:
    """Has events of every kind written, of ids and names as they are in earnest."""

    def __init__(self, url: str) -> None:
        self.storage = RedisStorage(url).for_tenant("acme")
        self._ids = JobIds()
        self._me = self._ids()
        self._number = 0

    async def write(self) -> None:
        """Take a job through each outcome."""
        info = IncarnationInfo(
            incarnation=self._me, name="box-1:4711", host="box-1", pid=4711, version="0.9.0",
            app_version="9f3c1ab", concurrency=100, lease_ms=15_000, registered_ms=0,
        )  # fmt: skip
        await self.storage.register(QUEUE, info)
        await self._block()
        for outcome in OUTCOMES:
            await self._run(outcome)
        later = await self._enqueue(delay_ms=60_000)
        await self._enqueue(later, delay_ms=90_000, update=Update())
        await self.storage.purge(QUEUE, JobState.SCHEDULED, [later])
        await self.storage.retire(QUEUE, self._me)

    async def _block(self) -> None:
        """Have an active job followed by another."""
        job_id = await self._enqueue()
        [job] = await self._claim()
        await self._enqueue(job_id, update=Update())
        await self._settle(job, Completed(b"1", 60_000, 60_000))
        await self.storage.purge(QUEUE, JobState.QUEUED, [job_id])

    async def _enqueue(self, job_id: str = "", **options: Any) -> str:
        job_id = job_id or self._ids()
        job = JobRequest(job_id, QUEUE, TASK, b"[]", **options)
        await self.storage.enqueue(QUEUE, [job], call=self._call("c"))
        return job_id

    def _call(self, client: str) -> CallId:
        self._number += 1
        return CallId(client, self._number)

    async def _run(self, outcome: Outcome) -> None:
        await self._enqueue(priority=9)
        [job] = await self._claim()
        await self.storage.report(QUEUE, [Report(job.id, job.claim, 0.25, "page 3 of 12", [], 0)])
        await self._settle(job, outcome)

    async def _claim(self) -> list[ClaimedJob]:
        nonce = f"{self._me}/{self._number}"
        found = await self.storage.claim(
            QUEUE, call=self._call(self._me), nonce=nonce, slots={"default": 1}
        )
        return found.jobs

    async def _settle(self, job: ClaimedJob, outcome: Outcome) -> None:
        settlement = Settlement(job.id, job.claim, 12, outcome)
        await self.storage.settle(QUEUE, [settlement], call=self._call(self._me))


@pytest.fixture
async def writer(redis_url: str) -> AsyncIterator[Writer]:
    made = Writer(redis_url)
    yield made
    await made.storage.aclose()


def bytes_an_event(server: redis.Redis, line: bytes, together: int) -> int:
    """Return what the server takes for one of many such events."""
    lines = b"\n".join([line] * together)
    with server.pipeline(transaction=False) as pipeline:
        for n in range(1, ENTRIES + 1):
            pipeline.xadd("sizes", {"n": n * together, "events": lines})
        pipeline.execute()
    size: Any = server.memory_usage("sizes", samples=0)
    server.delete("sizes")
    return int(size / ENTRIES / together + 0.5)


def documented() -> dict[str, tuple[int, int]]:
    """Return the bytes that the document tells: of one of many events in a call, of one alone."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \| (\d+) \|$", DOCUMENT.read_text(), re.MULTILINE)
    return {kind: (int(together), int(alone)) for kind, together, alone in rows}


async def test_an_event_takes_as_many_bytes_as_the_document_tells(
    writer: Writer, redis_server: Any
) -> None:
    await writer.write()
    with redis_server.client() as server:
        entries: Any = server.xrange(f"hr:{{acme:{QUEUE}}}:events")
        lines = [line for _, fields in entries for line in fields[b"events"].split(b"\n")]
        of_kind = {line.split(b"\t")[0].decode(): line for line in lines}
        found = {
            kind: (bytes_an_event(server, line, EVENTS_AN_ENTRY), bytes_an_event(server, line, 1))
            for kind, line in of_kind.items()
        }
    assert set(found) == set(JobEventKind)
    told = documented()
    assert set(told) == set(found)
    for kind, sizes in found.items():
        assert sizes == pytest.approx(told[kind], rel=TOLERANCE), kind
