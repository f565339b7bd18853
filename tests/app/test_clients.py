"""The two factories of an app's clients: how it opens a storage, and how it makes a client."""

from __future__ import annotations

from functools import partial
from typing import Any

from headrace import App, Job, JobHandle
from headrace.client import Client
from headrace.clients import Clients
from headrace.storage.sqlite.storage import SqliteStorage


class CountingClient(Client):
    """A client that counts the jobs that it is given."""

    count = 0

    async def submit(self, job: Job) -> JobHandle[Any]:
        CountingClient.count += 1
        return await super().submit(job)


async def test_other_clients_in_place_of_an_apps_use_another_storage_and_client() -> None:
    before = CountingClient.count
    async with App("memory://factories-own") as app:
        await app.enqueue("task", queue="own")
        own = app.clients
        app.clients = Clients(
            lambda: SqliteStorage("memory://factories-other"),
            partial(app.open_client, CountingClient),
        )
        async with app:
            await app.enqueue("task", queue="other")
            assert await app.client().storage.queues() == ["other"]
            storage = app.open_storage()
            assert await storage.queues() == ["other"]
            await storage.aclose()
        app.clients = own
        assert await app.client().storage.queues() == ["own"]
    assert CountingClient.count == before + 1
