"""The two factories of an app's clients: how it opens a storage, and how it makes a client."""

from __future__ import annotations

from typing import Any

from headrace import App, Job, JobHandle
from headrace.app import clients_of
from headrace.client import Client
from headrace.clients import Opening
from headrace.storage.sqlite.storage import BlockingSqliteStorage, SqliteStorage


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
        clients = clients_of(app)
        opening = Opening(
            storage=lambda: SqliteStorage("memory://factories-other"),
            blocking=lambda: BlockingSqliteStorage("memory://factories-other"),
            make=CountingClient,
        )
        with clients.replaced(opening):
            async with app:
                await app.enqueue("task", queue="other")
                assert await app.queues() == ["other"]
                storage = clients.open_storage()
                assert await storage.queues() == ["other"]
                await storage.aclose()
        assert await app.queues() == ["own"]
    assert CountingClient.count == before + 1
