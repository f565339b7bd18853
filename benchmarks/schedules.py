"""Schedules: how late an idle worker fires them, what very many cost, and many due at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import datetime

import anyio
import psutil
from msgspec.structs import replace

from benchmarks.harness import Figure, Goal, percentile, repeated, serving, working
from benchmarks.workload import QUEUE, Workload
from headrace import App, At, Every, Job, JobState
from headrace.app import clients_of, declared_of
from headrace.clock import datetime_of
from headrace.events import WorkerEvent
from headrace.occurrences import job_body
from headrace.schedule import ScheduleBody, encode_body
from headrace.scheduler.releases import Releases
from headrace.storage import ScheduleWrite, Storage
from headrace.storage.batches import batches
from tests.support.redis_server import RedisServer
from tests.support.until import until

LATE_SCHEDULES = 10
LATE_S = 20.0
MANY = 100_000
CPU_S = 10.0
BURST = 10_000
BURST_QUEUE = "burst"
BURST_IN_MS = 5_000
"""How far ahead what is due at once is put: longer than putting it takes."""

JOBS_A_SECOND = 100
LOAD_S = 4.0
"""For how long other jobs are enqueued from that instant on."""

DAY_S = 86_400


def storage_of(load: Workload) -> Storage:
    """Return the storage of a workload's app."""
    return clients_of(load.app).current().storage


async def now_of(storage: Storage) -> int:
    """Return the time by the storage's clock."""
    return (await storage.read_schedules([])).now_ms


def due_ms_of(job_id: str) -> int:
    """Return the instant in the id of an occurrence's job."""
    return round(datetime.fromisoformat(job_id.partition(":")[2]).timestamp() * 1000)


async def put_many(load: Workload, job: Job, body: ScheduleBody, ids: Iterator[str]) -> None:
    """Store schedules that differ by their ids, 500 in a call."""
    storage = storage_of(load)
    now_ms = await now_of(storage)
    made = replace(body, job=job_body(job, load.app.tasks)).in_place_of(None, now_ms)
    encoded = encode_body(made)
    for batch in batches(list(ids), lambda _id: len(encoded)):
        await storage.write_schedules(
            [
                ScheduleWrite(id=i, expected=0, due_ms=made.due_ms(i, now_ms), body=encoded)
                for i in batch
            ],
            wakes=True,
        )


async def measure_late() -> list[Figure]:
    """Measure from an occurrence's instant to its job's being in the queue, among 100,000."""

    async def run() -> list[float]:
        with serving() as server:
            load = Workload(server.url)
            async with load.app, working(server, load):
                job = load.noop.job(0)
                tomorrow = At(datetime_of(await now_of(storage_of(load)) + DAY_S * 1000))
                body = ScheduleBody(job=job_body(job, load.app.tasks), timing=tomorrow)
                await put_many(
                    load, job, body, (f"later-{n}" for n in range(MANY - LATE_SCHEDULES))
                )
                start_ms = await now_of(storage_of(load)) + 500
                for number in range(LATE_SCHEDULES):
                    start = datetime_of(start_ms + number * 1000 // LATE_SCHEDULES)
                    job = load.noop.job(number)
                    await load.app.schedules.put(f"s{number}", job, Every(1), start=start)
                await asyncio.sleep(LATE_S)
                jobs = [job async for job in load.app.queue(QUEUE).jobs(JobState.COMPLETED)]
                fired = [job for job in jobs if ":" in job.id]
                assert len(fired) > LATE_SCHEDULES * (LATE_S - 3)
                late = [j.created_at.timestamp() * 1000 - due_ms_of(j.id) for j in fired]
                return [percentile(late, 50), percentile(late, 99)]

    p50s, p99s = await repeated(run, warm_ups=0, repeats=3)
    return [
        Figure(f"of {MANY:,} schedules: due to enqueued, p50", "ms", p50s),
        Figure(f"of {MANY:,} schedules: due to enqueued, p99", "ms", p99s, Goal(50)),
    ]


def declaring(url: str, count: int, *, every_s: float) -> App[None]:
    """Return an app that declares many schedules."""
    app: App[None] = App(url, name="many")

    @app.task(name="nothing", queue=BURST_QUEUE)
    async def nothing() -> None: ...

    job = nothing.job()
    for number in range(count):
        app.schedule(f"many-{number}", job, Every(every_s))
    return app


async def synchronise(app: App[None]) -> float:
    """Synchronise what an app declares, as a worker does at its start; return the seconds."""

    def emit(_event: WorkerEvent) -> None:
        """Say nothing."""

    storage = clients_of(app).current().storage
    began_at = time.monotonic()
    await Releases(storage, declared_of(app), emit=emit).turn()
    return time.monotonic() - began_at


async def used_by(server: RedisServer) -> float:
    """Return the bytes that a server's data take."""
    with server.client() as client:
        return float(client.info("memory")["used_memory"])


async def measure_many() -> list[Figure]:
    """Measure 100,000 schedules of which none is due: memory, idle processor, synchronising."""

    async def run() -> list[float]:
        with serving() as server:
            load = Workload(server.url)
            async with load.app, working(server, load) as worker:
                process = psutil.Process(worker.pid)
                resident, used = process.memory_info().rss, await used_by(server)
                own = psutil.Process().memory_info().rss
                async with declaring(server.url, MANY, every_s=DAY_S) as app:
                    declared_of(app)
                    declared = (psutil.Process().memory_info().rss - own) / 1e6
                    first_s = await synchronise(app)
                    again_s = await synchronise(app)
                bytes_each = (await used_by(server) - used) / MANY
                async with declaring(server.url, MANY - 1, every_s=DAY_S) as app:
                    stamp_s = await synchronise(app)
                before = process.cpu_times()
                await asyncio.sleep(CPU_S)
                after = process.cpu_times()
                cpu_s = after.user + after.system - before.user - before.system
                grown = (process.memory_info().rss - resident) / 1e6
                percent = round(cpu_s, 2) / CPU_S * 100
                return [bytes_each, grown, declared, percent, first_s, again_s, stamp_s]

    columns = await repeated(run, warm_ups=0, repeats=1)
    bytes_each, grown, declared, percent, first_s, again_s, stamp_s = columns
    of_many = f"{MANY:,} schedules"
    return [
        Figure(f"{of_many}: server, each", "B", bytes_each),
        Figure(f"{of_many}: idle worker grows by", "MB", grown),
        Figure(f"{of_many}: who declares them grows by", "MB", declared),
        Figure(f"{of_many}: idle worker", "% CPU", percent, Goal(1)),
        Figure(f"{of_many}: first stored in", "s", first_s),
        Figure(f"{of_many}: found unchanged in", "s", again_s),
        Figure(f"{of_many}: of a new release in", "s", stamp_s),
    ]


async def start_times(load: Workload) -> list[float]:
    """Enqueue other jobs one after the other for a while; return from call to handler, in ms."""
    late: list[float] = []

    async def one() -> None:
        late.append(await load.since.enqueue_and_wait(time.monotonic_ns()) / 1e6)

    async with anyio.create_task_group() as group:
        for _ in range(round(JOBS_A_SECOND * LOAD_S)):
            group.start_soon(one)
            await asyncio.sleep(1 / JOBS_A_SECOND)
    return late


async def measure_burst() -> list[Figure]:
    """Measure 10,000 schedules that are due at one instant, and other jobs meanwhile."""

    async def run() -> list[float]:
        with serving() as server:
            load = Workload(server.url)
            async with load.app, working(server, load):
                alone_ms = await start_times(load)
                storage = storage_of(load)
                due_ms = await now_of(storage) + BURST_IN_MS
                body = ScheduleBody(
                    job=job_body(load.noop.job(0), load.app.tasks), timing=At(datetime_of(due_ms))
                )
                job = load.noop.options(queue=BURST_QUEUE).job(0)
                await put_many(load, job, body, (f"s{n}" for n in range(BURST)))
                left_ms = due_ms - await now_of(storage)
                assert left_ms > 0
                await asyncio.sleep(left_ms / 1000 - 0.1)
                beside_ms = await start_times(load)
                await until(lambda: is_enqueued(load), within=60)
                rows = [row async for row in load.app.queue(BURST_QUEUE).jobs(JobState.QUEUED)]
                all_ms = max(row.created_at.timestamp() for row in rows) * 1000 - due_ms
                return [all_ms, percentile(alone_ms, 99), percentile(beside_ms, 99)]

    all_ms, alone, beside = await repeated(run, warm_ups=0, repeats=3)
    return [
        Figure(f"{BURST:,} due at once, all enqueued", "ms", all_ms),
        Figure("other jobs without, start p99", "ms", alone),
        Figure("other jobs meanwhile, start p99", "ms", beside),
    ]


async def is_enqueued(load: Workload) -> bool:
    """Whether all that was due at once has its job."""
    return (await load.app.queue(BURST_QUEUE).stats()).queued == BURST
