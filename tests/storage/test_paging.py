"""Pages of jobs while others come and go, on every storage."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from headrace.errors import InvalidOption
from headrace.job import JobState
from headrace.storage.base import Storage
from headrace.storage.values import Settlement
from headrace.testing.contract import Subject
from headrace.testing.contract.steps import (
    EACH_STATE,
    QUEUE,
    STATES,
    ContractClient,
    ContractIncarnation,
    a_job,
    bring,
    completed,
    ids,
)
from tests.storage.conftest import RedisSubject, SqliteSubject, in_order
from tests.support.redis_server import RedisServer

STRANGE = [
    "nonsense", "0", "-1", "[]", "[1]", "[1,2,3,4]", "[1,2e99]", "1:", "w1/", "\ud800:1",
    "default:5:0:", "a b:5:0:1:x", "default:x:0:1:x", '["default",5]', '["default","5",1]',
    "[5,5,5]",
]  # fmt: skip


@pytest.fixture(params=["redis", "memory", "file"])
async def subject(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Subject]:
    """Open an empty storage of each kind, and see at the end that it is in order."""
    opened: Subject
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        with server.client() as client:
            client.flushall()
        opened = RedisSubject(server.url)
    elif request.param == "memory":
        opened = SqliteSubject(f"memory://test-{secrets.token_hex(6)}")
    else:
        opened = SqliteSubject(f"file://{tmp_path}/data")
    async with in_order(opened) as subject:
        yield subject


async def rest(storage: Storage, state: JobState, cursor: str, *, limit: int) -> list[str]:
    """Return the ids of all pages from a cursor on."""
    found: list[str] = []
    while cursor:
        page = await storage.list_jobs(QUEUE, state, cursor=cursor, limit=limit)
        found += [row.id for row in page.rows]
        cursor = page.cursor
    return found


async def take_away(
    storage: Storage, worker: ContractIncarnation, state: JobState, job_ids: Sequence[str]
) -> None:
    """Let jobs leave their state, the way that goes without a purge where there is one."""
    if state is JobState.QUEUED:
        assert ids(await worker.claim(len(job_ids))) == list(job_ids)
    elif state is JobState.ACTIVE:
        for job_id, claim in await storage.held(QUEUE, worker.name):
            if job_id in job_ids:
                await worker.settle_all(Settlement(job_id, claim, 1, completed()))
    else:
        assert await storage.purge(QUEUE, state, job_ids) == len(job_ids)


@pytest.mark.parametrize("apart_ms", [0, 1], ids=["at once", "one by one"])
@pytest.mark.parametrize("state", STATES)
async def test_jobs_that_stay_are_listed_once_while_others_come_and_go(
    subject: Subject,
    client: ContractClient,
    worker: ContractIncarnation,
    state: JobState,
    apart_ms: int,
) -> None:
    storage = subject.storage
    for n in range(14):
        await bring(state, client, worker, f"job {n:02}")
        await subject.advance(apart_ms)
    everything = (await storage.list_jobs(QUEUE, state)).rows
    names = [row.id for row in everything]
    assert len(names) == 14
    page = await storage.list_jobs(QUEUE, state, limit=4)
    assert [row.id for row in page.rows] == names[:4]
    # All that was shown is gone, what comes next is too, and there is something new.
    await take_away(storage, worker, state, names[:6])
    if state is not JobState.QUEUED:
        await take_away(storage, worker, state, names[10:11])
        del names[10]
    for n in range(3):
        if state is JobState.ACTIVE:
            await client.enqueue(a_job(f"new {n}"))
            await worker.claim_one()
        else:
            await bring(state, client, worker, f"new {n}")
    listed = await rest(storage, state, page.cursor, limit=3)
    assert [name for name in listed if not name.startswith("new")] == names[6:]
    assert len(set(listed)) == len(listed)


async def test_a_page_goes_on_behind_a_job_that_more_was_put_before(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    names = [f"{n}" for n in range(8)]
    await client.enqueue(*(a_job(name) for name in names))
    claimed = await worker.claim(2)
    page = await storage.list_jobs(QUEUE, JobState.QUEUED, limit=3)
    assert [row.id for row in page.rows] == names[2:5]
    await storage.put_back(QUEUE, worker.name, [(job.id, job.claim) for job in claimed])
    assert await rest(storage, JobState.QUEUED, page.cursor, limit=2) == names[5:]


async def test_a_page_goes_on_where_cancelled_jobs_were(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    names = [f"{n}" for n in range(8)]
    await client.enqueue(*(a_job(name, priority=9 - int(name) // 3) for name in names))
    page = await storage.list_jobs(QUEUE, JobState.QUEUED, limit=3)
    await storage.cancel(QUEUE, names[1:4])
    assert await rest(storage, JobState.QUEUED, page.cursor, limit=2) == names[4:]


async def test_pages_go_on_through_lanes_while_their_jobs_come_and_go(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    names = [f"{lane} {n}" for lane in ("default", "gpu", "process") for n in range(4)]
    await client.enqueue(*(a_job(name, lane=name.partition(" ")[0]) for name in reversed(names)))
    names = [f"{lane} {n}" for lane in ("default", "gpu", "process") for n in (3, 2, 1, 0)]
    page = await storage.list_jobs(QUEUE, JobState.QUEUED, limit=6)
    assert [row.id for row in page.rows] == names[:6]
    await storage.cancel(QUEUE, [names[1], names[5], names[6]])
    await client.enqueue(
        a_job("before", lane="a"), a_job("between", lane="h"), a_job("behind", lane="z")
    )
    expected = [names[7], "between", *names[8:], "behind"]
    assert await rest(storage, JobState.QUEUED, page.cursor, limit=2) == expected


@pytest.mark.parametrize("cursor", STRANGE)
@pytest.mark.parametrize("state", STATES)
async def test_a_cursor_of_nowhere_is_refused(
    storage: Storage, state: JobState, cursor: str
) -> None:
    with pytest.raises(InvalidOption, match="is not one of a page of"):
        await storage.list_jobs(QUEUE, state, cursor=cursor)


async def test_a_cursor_of_another_state_is_refused_or_finds_a_place(
    storage: Storage, client: ContractClient, worker: ContractIncarnation
) -> None:
    cursors = {}
    for state in EACH_STATE:
        for n in range(2):
            await bring(state, client, worker, f"{state} {n}")
        cursors[state] = (await storage.list_jobs(QUEUE, state, limit=1)).cursor
    assert all(cursors.values())
    for state in STATES:
        for cursor in cursors.values():
            try:
                page = await storage.list_jobs(QUEUE, state, cursor=cursor)
            except InvalidOption:
                continue
            assert {row.state for row in page.rows} <= {state}
