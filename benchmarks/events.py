"""Events as a reader gets them page by page, and what it costs the server to hold them back."""

from __future__ import annotations

import time

import redis

from benchmarks.harness import Figure, repeated, serving
from benchmarks.workload import QUEUE
from headrace.job import JobState
from headrace.request import JobRequest
from headrace.storage import EVENT_LINES_LIMIT, CallId, Storage, open_storage

ENTRIES = 50_000
BATCH = 500
PAGE = 500
PLACES = 100
READER = "archive"
PIECE = 2_000
"""Entries that one acknowledgement trims at most."""


async def make_events(storage: Storage) -> list[str]:
    """Hold events of jobs that come and are purged; return the ids of the last of each piece."""
    await storage.configure(QUEUE, events=1, events_cap=2 * ENTRIES)
    await storage.acknowledge(QUEUE, READER, "0")
    ids = [f"job-{n:022}" for n in range(BATCH)]
    jobs = [JobRequest(id=i, queue=QUEUE, task="work", payload=b"{}", is_plain=True) for i in ids]
    for number in range(1, ENTRIES // 50 + 1):  # 25 entries a call
        await storage.enqueue(QUEUE, jobs, call=CallId("bench", number))
        await storage.purge(QUEUE, JobState.QUEUED, ids)
    pieces = []
    last_id = "0"
    while (page := await storage.events(QUEUE, after=last_id, limit=PIECE)).last_id:
        last_id = page.last_id
        pieces.append(last_id)
    return pieces


async def read(storage: Storage) -> float:
    """Read all events; return how many a second came."""
    count, last_id = 0, "0"
    start = time.perf_counter()
    while (page := await storage.events(QUEUE, after=last_id, limit=PAGE)).last_id:
        last_id = page.last_id
        count += len(page.events)
    assert count == ENTRIES * 20
    return count / (time.perf_counter() - start)


async def read_lines(storage: Storage) -> float:
    """Read all entries as they are kept; return how many events a second came."""
    count, last_id = 0, "0"
    start = time.perf_counter()
    while page := await storage.event_lines(QUEUE, after=last_id, limit=EVENT_LINES_LIMIT):
        last_id = page[-1].stream_id
        count += len(page)
    assert count == ENTRIES
    return count * 20 / (time.perf_counter() - start)


async def place(storage: Storage, client: redis.Redis, at_ms: int) -> float:
    """Find the place of an instant; return the microseconds that it took the server."""
    client.config_resetstat()
    for _ in range(PLACES):
        await storage.event_place(QUEUE, at_ms)
    return float(client.info("commandstats")["cmdstat_fcall"]["usec"]) / PLACES


async def acknowledge(storage: Storage, client: redis.Redis, stream_id: str) -> float:
    """Acknowledge an entry; return the microseconds that it took the server by its own count."""
    client.config_resetstat()
    await storage.acknowledge(QUEUE, READER, stream_id)
    return float(client.info("commandstats")["cmdstat_fcall"]["usec"])


async def measure() -> list[Figure]:
    """Measure with `ENTRIES` entries that a reader holds."""
    with serving() as server, server.client() as client:
        storage = open_storage(server.url)
        pieces = await make_events(storage)
        held_bytes = int(client.memory_usage(f"hr:{{default:{QUEUE}}}:events", samples=0))

        middle_ms = int(pieces[len(pieces) // 2].partition("-")[0])

        async def once() -> list[float]:
            return [
                await read(storage),
                await read_lines(storage),
                await place(storage, client, middle_ms),
                await place(storage, client, 0),
                await acknowledge(storage, client, "0"),
            ]

        rates, line_rates, place_us, none_us, idle_us = await repeated(once)
        trims_us = [await acknowledge(storage, client, last_id) for last_id in pieces[:-1]]
        await storage.aclose()
    return [
        Figure("events read by pages", "/s", rates),
        Figure("events read by pages of entries", "/s", line_rates),
        Figure("place of an instant, 50,000 entries held", "µs", place_us),
        Figure("place of one before all of them", "µs", none_us),
        Figure("acknowledge, 50,000 entries held", "µs", idle_us),
        Figure("acknowledge, 2,000 entries trimmed", "µs", trims_us),
        Figure("memory of an event", "B", [held_bytes / (ENTRIES * 20)]),
    ]
