"""Bulk writes in an embedded database whose rows were damaged."""

from __future__ import annotations

import secrets

import pytest

from headrace.storage.sqlite.engine.step import Step
from headrace.storage.sqlite.storage import SqliteStorage
from headrace.testing.contract.bulk_steps import ContractWriter, publish_all, report_of
from headrace.testing.contract.steps import QUEUE, a_job
from tests.storage.conftest import SqliteSubject


@pytest.fixture
def subject() -> SqliteSubject:
    return SqliteSubject(f"memory://test-{secrets.token_hex(6)}")


def change(storage: SqliteStorage, sql: str) -> None:
    """Change rows behind the storage's back."""

    def work(step: Step) -> None:
        step.db.execute(sql)

    storage.engine().writer.call(work, storage.clock, timeout_s=5)


@pytest.mark.parametrize("body", ["x'c1'", "x'90'", "x'9195a178a178a178c400c0'"])
async def test_a_chunk_that_can_not_be_read_holds_up_nothing(
    storage: SqliteStorage, body: str
) -> None:
    writer = ContractWriter(storage)
    await writer.stage(a_job("a"))
    await writer.stage(a_job("b"))
    await writer.commit()
    change(storage, f"UPDATE staged SET body = {body} WHERE key = 1")  # noqa: S608
    await publish_all(storage)
    assert await storage.get(QUEUE, "a") is None
    assert await storage.get(QUEUE, "b") is not None
    info = await report_of(storage)
    assert (info.is_published, info.jobs, info.added) == (True, 2, 1)


async def test_names_that_are_no_text_are_mended(storage: SqliteStorage) -> None:
    for name in ("a", "b"):
        writer = ContractWriter(storage, name=name)
        await writer.stage(a_job(name))
        await writer.commit(batch=name == "b")
    change(storage, "UPDATE stages SET write_id = CAST(x'ff' AS TEXT)")
    change(storage, "UPDATE writes SET id = CAST(x'ff' AS TEXT)")
    assert await publish_all(storage) == 2
    assert (await storage.stats(QUEUE)).queued == 2
