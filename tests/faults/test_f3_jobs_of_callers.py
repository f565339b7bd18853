"""A `Job` is a public value: what a task just made is new once, everything else is checked."""

from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace import App, InvalidOption, Job, JobState, PayloadTooLarge, Task, UsageError, Worker
from headrace.app import sender_of
from headrace.request import JobRequest, fresh
from tests.support.jobs import reached
from tests.support.nowhere import unreachable_app
from tests.support.until import patience


def declare(app: App[None]) -> Task[[int], int]:
    @app.task(name="double", queue="q")
    async def double(number: int) -> int:
        return 2 * number

    return double


COPIES: list[Callable[[Job], Job]] = [
    lambda job: job,
    copy.copy,
    copy.deepcopy,
    lambda job: pickle.loads(pickle.dumps(job)),  # noqa: S301
    msgspec.structs.replace,
    lambda job: msgspec.structs.replace(job, priority=3),
    lambda job: type(job)(**msgspec.structs.asdict(job)),
]


@pytest.mark.parametrize("again", COPIES)
async def test_a_job_that_is_sent_again_is_a_duplicate(
    app: App[None], again: Callable[[Job], Job]
) -> None:
    job = declare(app).job(1)
    second = again(job)
    [handle] = await app.enqueue_many([job])
    assert handle.outcome == "queued"
    for one in (second, job):
        [handle] = await app.enqueue_many([one])
        assert handle.outcome == "duplicate"
        assert (await sender_of(app).submit(one)).outcome == "duplicate"
    assert (await app.queue("q").stats()).queued == 1


async def test_a_job_that_is_sent_twice_at_once_is_stored_once(app: App[None]) -> None:
    job = declare(app).job(1)
    found = await asyncio.gather(
        *[app.enqueue_many([job]) for _ in range(4)], app.enqueue_many([job, job])
    )
    outcomes = [handle.outcome for handles in found for handle in handles]
    assert sorted(str(outcome) for outcome in outcomes) == ["duplicate"] * 5 + ["queued"]
    assert (await app.queue("q").stats()).queued == 1


async def test_a_job_that_is_sent_again_while_it_runs_leaves_its_attempt_alone(
    app: App[None],
) -> None:
    started, may_end = asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    @app.task(name="slow", queue="q")
    async def slow() -> int:
        runs.append(1)
        started.set()
        await may_end.wait()
        return 5

    job = slow.job()
    [handle] = await app.enqueue_many([job])
    worker = Worker(app)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await started.wait()
        [again] = await app.enqueue_many([job])
        assert again.outcome == "duplicate"
        may_end.set()
        assert await handle.result(timeout=patience(15)) == 5
        worker.stop()
    assert runs == [1]
    stats = await app.queue("q").stats()
    assert (stats.queued, stats.active) == (0, 0)


async def test_a_job_made_by_hand_of_valid_values_is_stored(app: App[None]) -> None:
    job = JobRequest(
        id="by hand", queue="q", task="double", payload=b'{"number":1}', is_new_id=True
    )
    first, second = await app.enqueue_many([job, job])
    assert (first.outcome, second.outcome) == ("queued", "duplicate")
    later = msgspec.structs.replace(
        job, id="later", delay_ms=60_000, is_plain=True, max_stalls=7, priority=9
    )
    [handle] = await app.enqueue_many([later])
    assert handle.outcome == "scheduled"
    record = await reached(handle, JobState.SCHEDULED)
    assert record.priority == 9


@pytest.mark.parametrize("is_prepared", [False, True], ids=["as it is", "prepared"])
async def test_a_job_that_leaves_any_record_of_its_id_does_so_whoever_checks_or_changes_it(
    app: App[None], *, is_prepared: bool
) -> None:
    job = JobRequest(id="x", queue="q", task="double", payload=b'{"number":1}')
    [handle] = await app.enqueue_many([job])
    await handle.cancel()
    if is_prepared:
        app.before_enqueue(lambda draft: draft.set(priority=7))
    staying = msgspec.structs.replace(job, replaces_ended=False)
    assert [each.outcome for each in await app.enqueue_many([staying])] == ["duplicate"]
    assert [each.outcome for each in await app.enqueue_many([job])] == ["queued"]


WRONG: list[dict[str, Any]] = [
    {"id": "a\x1b[2J"},
    {"id": ""},
    {"id": "x" * 257},
    {"id": None},
    {"queue": "b}:x{"},
    {"queue": ""},
    {"task": "a\nb"},
    {"task": ""},
    {"payload": b" " * 2_000_000},
    {"payload": "{}"},
    {"payload": None},
    {"priority": 77},
    {"priority": -1},
    {"priority": True},
    {"lane": "a b"},
    {"lane": None},
    {"delay_ms": -1},
    {"delay_ms": 10**18},
    {"delay_ms": 1.5},
    {"run_at_ms": 10**18},
    {"delay_ms": 5, "run_at_ms": 5},
    {"expires_in_ms": -1},
    {"expires_at_ms": "soon"},
    {"expires_in_ms": 5, "expires_at_ms": 5},
    {"max_stalls": 0},
    {"keep_ms": -1},
    {"options": b"rubbish"},
    {"options": b"[" * 100_000},
    {"options": b'{"max_attempts":-1}'},
    {"options": b'{"timeout_ms":0}'},
    {"options": b'{"result_ttl_ms":-5}'},
    {"options": b'{"retry":{"min":-1}}'},
    {"options": b'{"headers":{"a":"%s"}}' % (b"x" * 9000)},
    {"channel": "hr:{other}:channel:abc"},
    {"channel": None},
    {"replaces_ended": None},
    {"replaces_ended": 1},
]


@pytest.mark.parametrize("changes", WRONG, ids=lambda changes: "-".join(changes))
async def test_a_jobs_values_are_checked_before_anything_is_sent(changes: dict[str, Any]) -> None:
    async with unreachable_app() as nowhere:
        made = declare(nowhere).job(1)
        by_hand = JobRequest(id="x", queue="q", task="t", payload=b"{}")
        for job in (made, by_hand):
            wrong = msgspec.structs.replace(job, **changes)
            for send in (
                nowhere.enqueue_many([wrong]),
                sender_of(nowhere).submit(wrong),
                sender_of(nowhere).submit_and_wait(wrong),
            ):
                with pytest.raises(UsageError) as caught:
                    await send
                assert isinstance(caught.value, InvalidOption | PayloadTooLarge)
                assert len(str(caught.value)) < 500


def test_only_what_a_task_made_is_taken_as_it_is() -> None:
    job = JobRequest("x", "q", "t", b"{}", era=1)
    assert job.era == 0
    marked = fresh(job)
    assert marked.era > 0
    for again in COPIES[1:]:
        copied = again(marked)
        assert isinstance(copied, JobRequest)
        assert copied.era == 0


FORK = """
import asyncio, os, sys
from headrace import App

app = App(sys.argv[1])

@app.task(name="double", queue="q")
async def double(number: int) -> int: ...

async def send(job):
    async with app:
        [handle] = await app.enqueue_many([job])
        return handle.outcome.value

job = double.job(1)
child = os.fork()
if child == 0:
    os._exit(0 if asyncio.run(send(job)) == "queued" else 1)
assert os.waitpid(child, 0)[1] == 0
print(asyncio.run(send(job)))
"""


@pytest.mark.parametrize("kind", ["redis", "file"])
def test_a_job_that_a_fork_copied_is_stored_once(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"file://{tmp_path}/data" if kind == "file" else request.getfixturevalue("redis_url")
    ran = subprocess.run(
        [sys.executable, "-c", FORK, url],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert ran.stdout == "duplicate\n", ran.stderr
