"""The numbers of events in a database that is opened again, and among rows that can't be read."""

from __future__ import annotations

from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing.contract.steps import QUEUE, ContractClient, a_job


async def numbers(storage: SqliteStorage) -> list[int]:
    """Return those of all events that are kept."""
    return [event.number for event in (await storage.events(QUEUE)).events]


async def test_numbers_go_on_after_a_restart(
    file_storage: SqliteStorage, elsewhere: SqliteStorage
) -> None:
    await ContractClient(file_storage).enqueue(a_job("a"), a_job("b"))
    await file_storage.aclose()
    await ContractClient(elsewhere).enqueue(a_job("c"), number=2)
    assert await numbers(elsewhere) == [1, 2, 3]


async def test_a_line_that_cant_be_read_is_passed_over_with_its_number(
    file_storage: SqliteStorage,
) -> None:
    client = ContractClient(file_storage)
    await client.enqueue(a_job("a"), a_job("b"))
    await client.enqueue(a_job("c"))
    await file_storage.engine().writer.run(
        lambda step: step.db.execute("UPDATE events SET lines = 'rubbish' WHERE n = 3"), lambda: 0
    )
    await client.enqueue(a_job("d"))
    assert await numbers(file_storage) == [1, 2, 4]
    # The page of that entry alone has no event, and yet is not the last.
    first = await file_storage.events(QUEUE, limit=1)
    second = await file_storage.events(QUEUE, after=first.last_id, limit=1)
    assert second.events == []
    third = await file_storage.events(QUEUE, after=second.last_id, limit=1)
    assert [event.job_id for event in third.events] == ["d"]
