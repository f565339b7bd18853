"""Many jobs are cancelled at once: by ids, task, states and age; what becomes of each is told."""

from __future__ import annotations

import asyncio
import secrets
from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    App,
    InvalidOption,
    JobHandle,
    JobState,
    Limit,
    Retry,
    StorageError,
    StorageUnavailable,
    SyncApp,
    Task,
    Worker,
)
from headrace.storage import MOVED_A_CALL
from headrace.testing import Kit, running
from tests.support.jobs import reached
from tests.support.nowhere import unreachable_app
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.until import patience, until

STATES = {
    "retrying": "retrying",
    "active": "active",
    "followed": "active",
    "holder": "active",
    "gated": "blocked",
    "scheduled": "scheduled",
    "queued": "queued",
}
"""How the jobs of `Site.fill` stand, by their ids; one more follows ``followed``."""


class Site:
    """A task whose jobs stand in every state, and what it was called with."""

    def __init__(self, app: App[None]) -> None:
        self.app = app
        self.queue = app.queue("default")
        self.starts: list[str] = []

        @app.task(
            name="work", retry=Retry(min=600, max=600), limits=[Limit(by="key", concurrency=1)]
        )
        async def work(what: str, key: str | None) -> None:
            self.starts.append(what)
            if what == "retrying":
                raise ValueError(what)
            await asyncio.Event().wait()

        self.work: Task[[str, str | None], None] = work

    async def add(self, job_id: str, *, key: str = "", **said: Any) -> JobHandle[None]:
        return await self.work.options(id=job_id, **said).enqueue(job_id, key or job_id)

    async def fill(self) -> None:
        """Bring a job to each state, while a worker runs; it may claim nothing any more."""
        failing = await self.add("retrying")
        active = [await self.add(name) for name in ("active", "followed", "holder")]
        await reached(failing, JobState.RETRYING)
        for job in active:
            await reached(job, JobState.ACTIVE)
        await self.queue.pause()
        await self.add("followed", on_conflict="update")
        await self.add("gated", key="holder")
        await self.add("scheduled", delay=600)
        await self.add("queued")
        assert await self.standing() == STATES

    async def standing(self) -> dict[str, str]:
        return {name: (await self.app.job(name).status()).state.value for name in STATES}


@pytest.fixture
def site(app: App[None]) -> Site:
    return Site(app)


async def test_jobs_in_every_state_are_cancelled_and_never_run_again(
    app: App[None], site: Site
) -> None:
    async with running(Worker(app, lease=1, shutdown_timeout=0)):
        await site.fill()
        assert (await site.queue.cancel(all_jobs=True, dry_run=True)).matched == 8
        assert await site.standing() == STATES
        report = await site.queue.cancel(all_jobs=True)
        assert report.to_dict() == {
            "queue": "default",
            "matched": 8,
            "cancelled": 5,
            "requested": 3,
            "finished": 0,
            "not_found": 0,
        }
        await site.queue.resume()
        for name in STATES:
            await reached(app.job(name), JobState.CANCELLED)
        begun = list(site.starts)
        await site.add("control", key="holder")
        await until(lambda: site.starts[len(begun) :] == ["control"])
        again = await site.queue.cancel("control", *STATES, "nobody")
    counts = (again.matched, again.cancelled, again.requested, again.not_found)
    assert counts == (9, 7, 1, 1)
    assert sorted(begun) == ["active", "followed", "holder", "retrying"]


@pytest.mark.parametrize(
    ("states", "gone"),
    [
        (["queued", JobState.SCHEDULED], {"queued", "scheduled"}),
        (["blocked"], {"gated"}),
        (["retrying"], {"retrying"}),
        (["active"], {"active", "followed", "holder"}),
    ],
    ids=["queued", "blocked", "retrying", "active"],
)
async def test_jobs_in_other_states_are_spared(
    app: App[None], site: Site, states: list[str], gone: set[str]
) -> None:
    async with running(Worker(app, lease=1, shutdown_timeout=0)):
        await site.fill()
        report = await site.queue.cancel(task="work", states=states)
        what_follows = states == ["blocked"]
        assert report.matched == report.cancelled + report.requested == len(gone) + what_follows
        for name in gone:
            await reached(app.job(name), JobState.CANCELLED)
        expected = {**STATES, **dict.fromkeys(gone, "cancelled")}
        if "holder" in gone:
            expected["gated"] = "queued"  # there is room for it
        assert await site.standing() == expected
        if "followed" not in gone:
            status = await app.job("followed").status()
            assert (status.has_next, status.cancel_requested) == (not what_follows, False)


async def test_jobs_of_another_task_are_spared_also_where_this_ones_follows(
    app: App[None], site: Site
) -> None:
    @app.task(name="other")
    async def other() -> None: ...

    async with running(Worker(app, lease=1, shutdown_timeout=0)):
        await site.fill()
        await other.options(id="followed", on_conflict="update").enqueue()
        await other.options(id="another").enqueue()
        report = await site.queue.cancel(task="other")
        assert (report.matched, report.cancelled) == (2, 2)
        assert await site.standing() == STATES
        status = await app.job("followed").status()
        assert (status.has_next, status.cancel_requested) == (False, False)


async def test_at_most_so_many_are_cancelled_and_any_number_of_ids_in_several_calls(
    app: App[None], site: Site
) -> None:
    await app.enqueue_many(
        site.work.options(id=f"{n}", delay=600 * (n % 2)).job("x", f"{n}") for n in range(1_200)
    )
    few = await site.queue.cancel(all_jobs=True, limit=7)
    assert (few.matched, few.cancelled) == (7, 7)
    report = await site.queue.cancel(*(f"{n}" for n in range(1_200)))
    assert (report.matched, report.cancelled) == (1_200, 1_200)
    stats = await site.queue.stats()
    assert (stats.queued, stats.scheduled, stats.history) == (0, 0, 1_200)
    assert (await site.queue.cancel(all_jobs=True)).matched == 0


async def test_only_old_ones_are_cancelled() -> None:
    async with Kit(App("memory://")) as kit:
        task = kit.app.task_ref("work", queue="q")
        for hours in range(3):
            await task.options(id=f"{hours}").enqueue()
            await kit.advance(3600)
        queue = kit.app.queue("q")
        report = await queue.cancel(all_jobs=True, older_than=timedelta(hours=1.5))
        assert (report.matched, report.cancelled) == (2, 2)
        assert [job.id async for job in queue.jobs("queued")] == ["2"]


def test_a_program_without_a_loop_cancels_likewise(storage_url: str) -> None:
    with SyncApp(App(storage_url, tenant=f"test-{secrets.token_hex(6)}")) as app:
        task = app.task_ref("work", queue="q")
        task.options(id="later", delay=60).enqueue()
        task.options(id="now").enqueue()
        queue = app.queue("q")
        assert queue.cancel(task="work", states=["scheduled"], dry_run=True).matched == 1
        assert queue.cancel(task="work", states=["scheduled"], older_than=60).matched == 0
        assert queue.cancel(all_jobs=True, states=["scheduled"], limit=5).cancelled == 1
        assert queue.cancel("later", "now").cancelled == 2
        assert app.job("now", queue="q").status().state is JobState.CANCELLED


@pytest.mark.parametrize("is_lost", [False, True], ids=["not sent", "reply lost"])
async def test_after_an_outage_in_the_middle_it_is_told_what_is_done_and_goes_on(
    redis_server: RedisServer, redis_url: str, *, is_lost: bool
) -> None:
    tenant = f"test-{secrets.token_hex(6)}"
    async with Proxy(redis_server.port) as proxy, App(proxy.url, tenant=tenant) as app:
        task, queue = app.task_ref("work", queue="q"), app.queue("q")
        jobs = 3 * MOVED_A_CALL
        await app.enqueue_many(task.options(id=f"{n}").job() for n in range(jobs))
        held = proxy.hold("client" if is_lost else "server", after=b"_cancel", skip=1)
        cancelling = asyncio.ensure_future(queue.cancel(all_jobs=True))
        await asyncio.wait_for(held.happened.wait(), patience(10))
        proxy.reset_all()
        with pytest.raises(StorageError) as lost:
            await cancelling
        report = lost.value.report
        assert (report.matched, report.cancelled) == (jobs, MOVED_A_CALL)
        report = await queue.cancel(all_jobs=True)
        assert report.cancelled == (1 if is_lost else 2) * MOVED_A_CALL
        stats = await queue.stats()
        assert (stats.queued, stats.history) == (0, jobs)


# Bad input, before anything is sent

Said = dict[str, Any]
BAD: list[tuple[tuple[Any, ...], Said, str]] = [
    ((), {}, "say which jobs"),
    (("x",), {"task": "t"}, "say which jobs"),
    ((), {"task": "t", "all_jobs": True}, "say which jobs"),
    (("",), {}, "job id '' is not valid"),
    (("x",), {"states": ["queued"]}, "go with task or all_jobs, not ids"),
    (("x",), {"limit": 1}, "go with task or all_jobs, not ids"),
    ((), {"task": ""}, "task name '' is not valid"),
    ((), {"all_jobs": True, "states": ["failed"]}, "no job can be cancelled in state 'failed'"),
    ((), {"all_jobs": True, "states": ["late"]}, "in state 'late': use scheduled"),
    ((), {"all_jobs": True, "states": "queued"}, "states='queued': pass a list of states"),
    ((), {"all_jobs": True, "states": []}, "states is empty"),
    ((), {"all_jobs": True, "states": [7]}, "no job can be cancelled in state"),
    ((), {"all_jobs": True, "older_than": -1}, "older_than=-1 is out of bounds"),
    ((), {"all_jobs": True, "limit": 0}, "limit=0 is out of bounds"),
    ((), {"all_jobs": True, "dry_run": 1}, "dry_run=1 is not valid"),
]


@pytest.mark.parametrize(("ids", "said", "words"), BAD, ids=[words for _, _, words in BAD])
async def test_what_makes_no_sense_is_refused(ids: tuple[Any, ...], said: Said, words: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        await unreachable_app().queue("q").cancel(*ids, **said)
    assert words in str(refused.value)


async def test_what_makes_sense_would_be_sent() -> None:
    with pytest.raises(StorageUnavailable):
        await unreachable_app().queue("q").cancel(all_jobs=True, states=["queued"], limit=1)
