"""Workers that stand still: stopped processes, blocked event loops, partitions.

Who is silent for a lease loses its jobs and can't record them any more; who is silent for less
loses nothing.
"""

from __future__ import annotations

from functools import partial

import pytest

from headrace import App
from headrace.app import clients_of
from tests.apps.crash_app import QUEUE, hold
from tests.crash.crew import LEASE_S, CrashWorker, Crew, passed
from tests.support.ledger import check_ledger, overlaps
from tests.support.proxy import Proxy
from tests.support.until import patience, until


def gave_up(worker: CrashWorker) -> bool:
    return worker.count("QueueFenced") + worker.count("ClaimLost") > 0


@pytest.mark.parametrize("task", ["hold", "block_until"])
async def test_the_late_outcome_of_a_stopped_worker_is_refused(
    loop: str, task: str, crew: Crew, app: App[None]
) -> None:
    """G7, BC-19, fault 9: SIGSTOP past the lease, then SIGCONT; the other one's outcome stands."""
    late = await crew.worker("late", loop=loop, max_loop_stall=60).ready()
    job = await app.enqueue(task, gate="gate")
    await crew.ledger.started(job.id, by="late")
    late.stop()
    await crew.worker("heir", loop=loop, max_loop_stall=60).ready()
    await crew.ledger.started(job.id, by="heir")
    crew.open("gate-late")
    late.cont()
    await until(lambda: gave_up(late), within=8)
    assert (await job.status()).result is None
    crew.open("gate-heir")
    assert await job.result(timeout=patience(5)) == "heir"
    records = await check_ledger(app, crew.ledger, [job.id], queue=QUEUE)
    assert (records[job.id].failures, records[job.id].stalls) == (0, 1)
    # It is a worker again, under a new incarnation.
    await late.ready()


async def test_an_outcome_held_up_in_the_network_past_the_lease_is_refused(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """G7: the settle arrives when another worker owns the job."""
    late = await crew.worker("late", url=proxy.url).ready()
    job = await app.enqueue("hold", gate="gate")
    await crew.ledger.started(job.id, by="late")
    proxy.stall("server")
    crew.open("gate-late")
    await until(lambda: [e for e in crew.ledger.entries(job.id) if e.kind == "end"])
    await crew.worker("heir").ready()
    await crew.ledger.started(job.id, by="heir")
    proxy.flow()
    await late.ready(within=15)
    crew.open("gate-heir")
    assert await job.result(timeout=patience(5)) == "heir"
    await check_ledger(app, crew.ledger, [job.id], queue=QUEUE)


async def test_nothing_is_taken_from_a_worker_stopped_for_half_its_lease(
    crew: Crew, app: App[None]
) -> None:
    """Fault 10."""
    lease = 4.0
    stopped = await crew.worker("stopped", lease=lease).ready()
    (listed,) = await app.queue(QUEUE).workers()
    job = await app.enqueue("hold", gate="gate")
    await crew.ledger.started(job.id)
    watcher = await crew.worker("watcher", lease=lease).ready()

    async def has_beaten(seen: int) -> bool:
        return await beat() != seen

    async def beat() -> int:
        return (await clients_of(app).current().storage.beats(QUEUE))[listed.incarnation].count

    for _ in range(2):
        await until(partial(has_beaten, await beat()))
        stopped.stop()
        await passed(lease / 2)
        stopped.cont()
    crew.open("gate")
    assert await job.result(timeout=patience(5)) == "stopped"
    assert [entry.epoch for entry in crew.ledger.starts()] == [1]
    assert stopped.count("QueueFenced") + watcher.count("WorkerReaped") == 0


async def test_a_handler_that_blocks_the_loop_keeps_its_lease(
    loop: str, crew: Crew, app: App[None]
) -> None:
    """BC-16, fault 11: three leases without a turn of the loop, and it runs exactly once."""
    blocked = await crew.worker("blocked", loop=loop).ready()
    job = await app.enqueue("block", seconds=3 * LEASE_S)
    await crew.ledger.started(job.id, by="blocked")
    watcher = await crew.worker("watcher", loop=loop).ready()
    assert await job.result(timeout=patience(10)) == "blocked"
    records = await check_ledger(app, crew.ledger, [job.id], queue=QUEUE)
    assert (records[job.id].starts, records[job.id].stalls) == (1, 0)
    assert blocked.count("QueueFenced") + watcher.count("WorkerReaped") == 0


async def test_a_loop_blocked_for_too_long_gives_its_jobs_up(
    loop: str, crew: Crew, app: App[None]
) -> None:
    """BC-16: beats stop, loudly; another worker takes over; the late outcome is refused."""
    blocked = await crew.worker("blocked", loop=loop, max_loop_stall=1.5).ready()
    job = await app.enqueue("block_until", gate="gate")
    await crew.ledger.started(job.id, by="blocked")
    crew.open("gate-watcher")
    await crew.worker("watcher", loop=loop).ready()
    assert await job.result(timeout=patience(10)) == "watcher"
    assert blocked.count("LoopStalled") == 1
    crew.open("gate-blocked")
    await until(lambda: gave_up(blocked), within=8)
    records = await check_ledger(app, crew.ledger, [job.id], queue=QUEUE)
    assert (records[job.id].starts, records[job.id].stalls) == (2, 1)
    assert await job.result() == "watcher"


async def test_a_partitioned_worker_stops_its_handlers_before_others_may_run_them(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """G7, fault 24: it fences itself before its lease ends, and comes back when it can."""
    cut_off = await crew.worker("cut-off", url=proxy.url).ready()
    job = await app.enqueue("hold", gate="gate")
    await crew.ledger.started(job.id, by="cut-off")
    await crew.worker("heir").ready()
    proxy.stall()
    await crew.ledger.started(job.id, by="heir")
    assert overlaps(crew.ledger.entries(job.id)) == []
    assert not cut_off.is_ready
    proxy.flow()
    await cut_off.ready(within=10)
    crew.open("gate")
    assert await job.result(timeout=patience(5)) == "heir"
    await check_ledger(app, crew.ledger, [job.id], queue=QUEUE)


async def test_a_worker_that_was_fenced_claims_half_until_a_lease_has_passed(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """What it holds may be what keeps its beats from being answered, so it can't hold as much."""
    lease_s = 2.0
    worker = await crew.worker("full", url=proxy.url, concurrency=8, lease=lease_s).ready()
    handles = await app.enqueue_many(hold.job("gate") for _ in range(8))
    await until(lambda: len(crew.ledger.starts()) == 8)
    proxy.stall()
    await until(lambda: worker.count("QueueFenced") == 1, within=8)
    proxy.flow()
    await until(lambda: len(crew.ledger.starts()) >= 16, within=10)
    again = sorted(start.at for start in crew.ledger.starts())[8:]
    assert again[4] - again[0] > lease_s / 2
    crew.open("gate")
    records = await check_ledger(app, crew.ledger, [h.id for h in handles], queue=QUEUE)
    # On a busy machine a lease this short may be lost once more.
    assert {min(r.starts, 2) for r in records.values()} == {2}
    assert {r.stalls for r in records.values()} == {0}


async def test_a_worker_cut_off_by_resets_works_on(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """Fault 23: a reset of every connection a few times a second is no reason to lose a lease."""
    await app.queue(QUEUE).stats()
    worker = await crew.worker("reset", url=proxy.url, lease=5).ready()
    ids = []
    for number in range(20):
        job = await app.enqueue("echo", value=number)
        ids.append(job.id)
        proxy.reset_all()
        await job.result(timeout=patience(8))
    records = await check_ledger(app, crew.ledger, ids, queue=QUEUE)
    assert {(r.starts, r.stalls) for r in records.values()} == {(1, 0)}
    assert worker.count("QueueFenced") == 0


async def test_a_connection_that_died_without_a_word_is_noticed(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """BC-71, fault 21: replies stop coming, so it is not ready, and it takes new ways by itself."""
    worker = await crew.worker("silent", url=proxy.url).ready()
    proxy.stall("client")
    await until(lambda: not worker.is_ready, within=8, what="the worker knows")
    proxy.reset_all()
    proxy.flow()
    assert await app.tasks["echo"].enqueue_and_wait(1) == 1
    await worker.ready()


async def test_a_worker_survives_a_network_that_cuts_words_to_bytes(
    crew: Crew, app: App[None], proxy: Proxy
) -> None:
    """Fault 22: no reply is taken for another's, however it is sliced and delayed."""
    proxy.is_sliced = True
    proxy.delay = 0.01
    await app.queue(QUEUE).stats()
    await crew.worker("sliced", url=proxy.url, lease=5).ready(within=12)
    handles = [await app.enqueue("echo", value=n) for n in range(30)]
    assert [await handle.result(timeout=patience(12)) for handle in handles] == list(range(30))
