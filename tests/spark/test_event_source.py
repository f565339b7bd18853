"""Reads of events outlast a storage that is away for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

from headrace import StorageUnavailable, SyncApp
from headrace.spark import offsets
from headrace.spark.event_readers import EventBatchReader
from headrace.spark.event_source import EventSource
from headrace.spark.options import ReadOptions
from headrace.spark.places import EventOffset, Span
from headrace.spark.storages import storage_of
from headrace.storage.event_pages import EventLines
from tests.spark.support.events import enqueue
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.until import until

LAST = f"{10**13}-0"
"""A place behind all events."""


@pytest.fixture
def events(redis_url: str) -> int:
    """Make events in three pages: while one is looked at, the next is on its way."""
    count = 40_500
    with SyncApp(redis_url) as app:
        enqueue(app, count)
    return count


@pytest.fixture
async def proxy(redis_server: RedisServer, redis_url: str) -> AsyncIterator[Proxy]:
    """Return a proxy to an empty storage."""
    del redis_url
    async with Proxy(redis_server.port) as proxy:
        yield proxy


def source_at(url: str, *, retry_for_s: float) -> EventSource:
    """Return what reads there."""
    return EventSource(storage_of(url, "default"), retry_for_s=retry_for_s)


def numbers(pages: Iterable[list[EventLines]]) -> list[int]:
    """Return the numbers of the last events of all entries."""
    return [entry.last for page in pages for entry in page]


async def test_reading_goes_on_where_the_storage_was_away(events: int, proxy: Proxy) -> None:
    source = source_at(proxy.url, retry_for_s=60)
    end = await asyncio.to_thread(offsets.latest, source, "q")
    pages = source.pages(Span("q", EventOffset(), end))
    found = numbers([await asyncio.to_thread(next, pages)])
    await proxy.refuse()
    proxy.reset_all()
    rest = asyncio.create_task(asyncio.to_thread(list, pages))
    await until(lambda: source.asker.outage.began_at is not None, what="it is away")
    await proxy.admit()
    found += numbers(await rest)
    assert found == list(range(20, events + 1, 20))


async def test_places_are_found_once_the_storage_is_there_again(proxy: Proxy) -> None:
    source = source_at(proxy.url, retry_for_s=60)
    await proxy.refuse()
    asked = asyncio.create_task(asyncio.to_thread(offsets.latest, source, "q"))
    await until(lambda: source.asker.outage.began_at is not None, what="it is away")
    await proxy.admit()
    assert await asked == EventOffset()


async def test_who_does_not_want_to_wait_hears_of_it_at_once(events: int, proxy: Proxy) -> None:
    pages = source_at(proxy.url, retry_for_s=0).pages(
        Span("q", EventOffset(), EventOffset(LAST, events))
    )
    await asyncio.to_thread(next, pages)
    await proxy.refuse()
    proxy.reset_all()
    with pytest.raises(StorageUnavailable, match=str(proxy.port)):
        await asyncio.to_thread(list, pages)


async def test_a_query_does_not_begin_while_the_storage_is_away(proxy: Proxy) -> None:
    reader = EventBatchReader(ReadOptions(url=proxy.url, retry_for_ms=0))
    await proxy.refuse()
    with pytest.raises(StorageUnavailable, match=str(proxy.port)):
        await asyncio.to_thread(reader.partitions)
