"""Workers that are killed while a rate holds jobs up: it holds, charges nobody, and goes on."""

from __future__ import annotations

from functools import partial

import pytest

from headrace import App, JobState
from tests.apps.crash_app import QUEUE, slow
from tests.crash.crew import CrashWorker, Crew
from tests.support.ledger import check_ledger
from tests.support.rates import bursts, starts_ms
from tests.support.until import patience, until

RATE, BURST = 25, 3
JOBS_A_KILL = 30


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
async def test_a_rate_holds_and_goes_on_whoever_is_killed(
    crew: Crew, app: App[None], kills: int
) -> None:
    """BC-91: what waited for its turn sat in active and stalled, or its queue stopped for ever."""
    queue = app.queue(QUEUE)
    await queue.set_limit("api", rate=f"{RATE}/s", burst=BURST)
    call = slow.options(limit_keys={"api": None}, max_stalls=1_000)

    def is_busy(worker: CrashWorker) -> bool:
        states = {
            (e.job_id, e.epoch): e.kind for e in crew.ledger.entries() if e.worker == worker.label
        }
        return "start" in states.values()

    ids: list[str] = []
    others: list[str] = []
    ran: set[str] = set()
    workers = [await crew.worker(f"w{n}").ready() for n in range(2)]
    for kill in range(kills):
        ids += [job.id for job in await app.enqueue_many(call.job(0.3) for _ in range(JOBS_A_KILL))]
        victim = workers.pop(0)
        await until(partial(is_busy, victim), within=20, what="it runs something")
        await queue.pause()
        victim.kill()
        await victim.wait()
        ran |= {row.id async for row in queue.jobs(JobState.ACTIVE)}
        await queue.resume()
        # What no limit holds up goes on meanwhile.
        other = await app.enqueue("echo", value=kill)
        assert await other.result(timeout=patience(20)) == kill
        others.append(other.id)
        workers.append(await crew.worker(f"w{kill + 2}").ready())
    records = await check_ledger(
        app,
        crew.ledger,
        [*ids, *others],
        queue=QUEUE,
        unseen_claims=None,
        within=60 + 3 * kills,
    )
    assert {record.failures for record in records.values()} == {0}
    # Nobody is charged but those that a worker had.
    assert {job_id for job_id, record in records.items() if record.stalls} <= ran
    gate = await queue.gate("api")
    assert (gate.ready, gate.active, gate.blocked) == (0, 0, 0)
    count = sum(records[job_id].starts for job_id in ids)
    starts = await starts_ms(app, QUEUE, set(ids), count)
    assert bursts(app, starts, rate=RATE, burst=BURST) == []
