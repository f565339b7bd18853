"""Workers are killed while their job keeps others of its kind from running: none is for ever."""

from __future__ import annotations

import pytest

from headrace import App, EnqueueOutcome, Every, FailReason
from tests.apps.crash_app import QUEUE
from tests.crash.crew import Crew
from tests.support.jobs import drained, ended, gone
from tests.support.ledger import Entry
from tests.support.until import patience, until

TICK_S = 0.25
LIMIT = "one"


async def bound(app: App[None]) -> None:
    """Let one job at a time run, whatever task it is of."""
    await app.queue(QUEUE).set_limit(LIMIT, concurrency=1)


async def is_free(app: App[None]) -> bool:
    gate = await app.queue(QUEUE).gate(LIMIT)
    return (gate.ready, gate.active, gate.blocked) == (0, 0, 0)


def together(entries: list[Entry]) -> int:
    """Return how many runs there were at once, at most."""
    now = most = 0
    for entry in entries:
        now += 1 if entry.kind == "start" else -1
        most = max(most, now)
    return most


@pytest.mark.parametrize("lock", ["overlap", "limit"])
async def test_a_schedule_goes_on_although_its_job_was_killed_while_it_locked_out_others(
    crew: Crew, app: App[None], lock: str
) -> None:
    """BC-34: the lock of a periodic job survived the death of its holder, and no more came."""
    call = app.tasks["hold"]
    if lock == "overlap":
        await app.schedules.put("tick", call.job("gate"), Every(TICK_S), overlap="skip")
    else:
        await bound(app)
        limited = call.options(limit_keys={LIMIT: None})
        await app.schedules.put("tick", limited.job("gate"), Every(TICK_S))
    victim = await crew.worker("victim").ready()
    await until(crew.ledger.starts, within=20, what="the first occurrence runs")
    victim.kill()
    await victim.wait()
    await crew.worker("heir").ready()
    first = crew.ledger.starts()[0].job_id
    await crew.ledger.started(first, by="heir", within=20)
    crew.open("gate")

    def others() -> bool:
        return len({entry.job_id for entry in crew.ledger.starts()} - {first}) >= 3

    await until(others, within=20, what="later occurrences run")
    assert await app.schedules.delete("tick")
    await drained(app.queue(QUEUE), within=20)
    assert together([entry for entry in crew.ledger.entries() if entry.worker == "heir"]) == 1
    assert await is_free(app)


@pytest.mark.parametrize("max_stalls", [1, 3], ids=["given up", "recovered"])
async def test_an_id_and_a_place_are_free_after_the_death_of_who_ran_their_job(
    crew: Crew, app: App[None], max_stalls: int
) -> None:
    """BC-25: by SIGKILL, whether that was the last that the job may stand or it ends elsewhere."""
    await bound(app)
    hold, keys = app.tasks["hold"], {LIMIT: None}
    call = hold.options(id="x", limit_keys=keys, keep=0, max_stalls=max_stalls)
    victim = await crew.worker("victim").ready()
    job = await call.enqueue("gate")
    await crew.ledger.started("x", by="victim")
    victim.kill()
    await victim.wait()
    assert (await call.enqueue("gate")).outcome is EnqueueOutcome.DUPLICATE
    await crew.worker("heir").ready()
    if max_stalls == 1:
        assert (await ended(job)).reason == FailReason.STALLED
        crew.open("gate")
    else:
        await crew.ledger.started("x", by="heir")
        crew.open("gate")
        await gone(job)
    assert await is_free(app)
    again = await hold.options(id="x", limit_keys=keys).enqueue("gate")
    assert again.outcome is EnqueueOutcome.QUEUED
    assert await again.result(timeout=patience(10)) == "heir"
    assert await is_free(app)
