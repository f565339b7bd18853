"""Heavy jobs in worker processes, also in those that are killed: never more than their slots.

The ledger says which slots each worker held at each moment, whatever the storage thinks.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count

import pytest

from headrace import App, JobState
from tests.apps.crash_app import QUEUE, hold, slow
from tests.crash.crew import CrashWorker, Crew
from tests.support.ledger import Entry, check_ledger, overlaps
from tests.support.until import patience, until

HEAVY = 10
SLOTS = HEAVY + 2
SIZES = (1, 1, 1, 1, 4, HEAVY)
JOBS_A_KILL = 30
WORKERS = 2

pytestmark = pytest.mark.timeout(900)


def slots_of(job_id: str) -> int:
    """Return the slots of a job, which its id begins with."""
    return int(job_id.partition(":")[0])


def runs(crew: Crew, worker: str) -> set[str]:
    """Return the jobs whose handlers a worker is in, or was in when it died."""
    found: set[str] = set()
    for entry in crew.ledger.entries():
        if entry.worker == worker:
            (found.add if entry.kind == "start" else found.discard)(entry.job_id)
    return found


def too_many(crew: Crew) -> list[Entry]:
    """Return the starts at which a worker held more than its slots."""
    held: Counter[str] = Counter()
    found = []
    for entry in crew.ledger.entries():
        slots = slots_of(entry.job_id)
        held[entry.worker] += slots if entry.kind == "start" else -slots
        if held[entry.worker] > SLOTS:
            found.append(entry)
    return found


def doubled(crew: Crew, deaths: Mapping[str, float]) -> list[Entry]:
    """Return the starts of jobs that somebody else ran; what the dead ran ended with them."""
    cut = [
        Entry("cut", entry.job_id, entry.epoch, worker, died_at)
        for worker, died_at in deaths.items()
        for entry in crew.ledger.starts()
        if entry.worker == worker and entry.job_id in runs(crew, worker)
    ]
    return overlaps([*crew.ledger.entries(), *cut])


async def killed(worker: CrashWorker) -> float:
    """Kill a worker, and return when it is dead."""
    worker.kill()
    assert await worker.wait() == -signal.SIGKILL
    return time.monotonic()


async def test_a_killed_workers_heavy_job_runs_again_and_gives_its_slots_back(
    crew: Crew, app: App[None]
) -> None:
    victim = await crew.worker("victim", concurrency=SLOTS).ready()
    ids = [f"{HEAVY}:heavy", "1:a", "1:b"]
    for job_id in ids:
        await app.enqueue_many(
            [hold.options(id=job_id, slots=slots_of(job_id)).job(f"first-{job_id}")]
        )
    await until(lambda: runs(crew, "victim") == set(ids), within=10, what="the victim is full")
    await crew.worker("heir", concurrency=SLOTS).ready()
    before = [f"1:before-{n}" for n in range(30)]
    await app.enqueue_many(slow.options(id=job_id).job(0.01) for job_id in before)
    deaths = {"victim": await killed(victim)}
    await until(lambda: runs(crew, "heir") >= set(ids), within=10, what="the heir runs all three")
    # It is full: who comes now has to wait.
    behind = [f"1:behind-{n}" for n in range(SLOTS + 5)]
    await app.enqueue_many(hold.options(id=job_id).job("behind") for job_id in behind)
    crew.open("first-1:a")
    crew.open("first-1:b")
    await until(lambda: len(runs(crew, "heir") & set(behind)) == 2, what="two slots are free")
    crew.open(f"first-{HEAVY}:heavy")
    await until(lambda: len(runs(crew, "heir")) == SLOTS, what="all slots are free again")
    crew.open("behind")
    records = await check_ledger(app, crew.ledger, [*ids, *before, *behind], queue=QUEUE)
    charged = {job_id: (r.starts, r.failures, r.stalls) for job_id, r in records.items()}
    assert charged == {**dict.fromkeys(records, (1, 0, 0)), **dict.fromkeys(ids, (2, 0, 1))}
    assert await app.job(ids[0], queue=QUEUE).result(timeout=patience(5)) == "heir"
    assert too_many(crew) == []
    assert doubled(crew, deaths) == []


@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=pytest.mark.slow)])
async def test_whoever_is_killed_no_worker_holds_more_than_its_slots(
    crew: Crew, app: App[None], kills: int
) -> None:
    """Jobs of one, four and ten slots come and go; each kill hits a worker with one of ten."""
    rng = random.Random(12)
    numbers, names = count(), (f"w{n}" for n in count())
    ids: list[str] = []

    async def enqueue() -> None:
        chosen = [rng.choice(SIZES) for _ in range(JOBS_A_KILL)] + [HEAVY] * WORKERS
        jobs = [(f"{slots}:{next(numbers)}", slots) for slots in chosen]
        ids.extend(job_id for job_id, _ in jobs)
        await app.enqueue_many(
            slow.options(id=job_id, slots=slots, max_stalls=1_000).job(0.02 * slots)
            for job_id, slots in jobs
        )

    async def start(names: Iterator[str]) -> CrashWorker:
        return await crew.worker(next(names), concurrency=SLOTS).ready()

    def has_heavy(worker: CrashWorker) -> bool:
        return any(slots_of(job_id) == HEAVY for job_id in runs(crew, worker.label))

    workers = [await start(names) for _ in range(WORKERS)]
    deaths: dict[str, float] = {}
    hit = 0
    while hit < kills:
        await enqueue()
        victim = workers.pop(0)
        await until(partial(has_heavy, victim), within=20, what="it runs a heavy job")
        deaths[victim.label] = await killed(victim)
        hit += has_heavy(victim)
        workers.append(await start(names))
    records = await check_ledger(
        app, crew.ledger, ids, queue=QUEUE, unseen_claims=None, within=60 + kills
    )
    assert {record.state.value for record in records.values()} == {"completed"}
    assert sum(record.stalls for record in records.values()) >= hit
    assert too_many(crew) == []
    assert doubled(crew, deaths) == []


async def test_a_stream_of_light_jobs_does_not_starve_a_heavy_one(
    crew: Crew, app: App[None]
) -> None:
    """One light job holds on, so that the heavy one has to wait; meanwhile others keep coming."""
    await crew.worker("only", concurrency=SLOTS).ready()
    heavy = f"{SLOTS}:heavy"
    numbers = count()
    later: list[str] = []

    async def more(lights: int) -> list[str]:
        ids = [f"1:{next(numbers)}" for _ in range(lights)]
        await app.enqueue_many(slow.options(id=job_id).job(0.005) for job_id in ids)
        return ids

    await app.enqueue_many([hold.options(id="1:holds").job("holds")])
    await crew.ledger.started("1:holds")
    earlier = await more(50)
    await app.enqueue_many([slow.options(id=heavy, slots=SLOTS).job(0.01)])
    for _ in range(20):
        later += await more(10)
    await until(lambda: {*earlier} <= {e.job_id for e in crew.ledger.entries() if e.kind == "end"})
    later += await more(50)
    assert runs(crew, "only") == {"1:holds"}
    crew.open("holds")
    while not crew.ledger.starts(heavy):
        later += await more(10)
    await check_ledger(app, crew.ledger, ["1:holds", *earlier, heavy, *later], queue=QUEUE)
    began = [entry.job_id for entry in crew.ledger.starts()]
    assert set(began[: began.index(heavy)]) == {"1:holds", *earlier}
    assert too_many(crew) == []


async def test_a_backlog_of_another_queue_does_not_starve_a_heavy_job(
    crew: Crew, app: App[None]
) -> None:
    """The slots are shared: the queue of the heavy one has its turn until it has as many."""
    heavy, lights = f"{SLOTS}:heavy", 1_500
    backlog = [f"1:{n}" for n in range(lights)]
    await app.enqueue_many(slow.options(id=i, queue="other").job(0.02) for i in backlog)
    await crew.worker("only", queues=[QUEUE, "other"], concurrency=SLOTS).ready()
    await until(lambda: len(crew.ledger.starts()) > 2 * SLOTS, what="the backlog is worked off")
    await app.enqueue_many([slow.options(id=heavy, slots=SLOTS).job(0.01)])
    before = len(crew.ledger.starts())
    await crew.ledger.started(heavy)
    began = [entry.job_id for entry in crew.ledger.starts()]
    # What runs ends, and what was claimed by then begins.
    assert began.index(heavy) - before <= 3 * SLOTS
    assert await app.queue("other").purge(JobState.QUEUED, all_jobs=True) > 0
    assert await app.job(heavy, queue=QUEUE).result(timeout=patience(10)) == 0.01
    assert too_many(crew) == []
