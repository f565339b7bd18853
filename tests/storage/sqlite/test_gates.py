"""Gates in a database that somebody has changed behind the storage's back, and what they cost."""

from __future__ import annotations

import re

import pytest

from headrace.limit import Terms
from headrace.storage import JobState, Strike
from headrace.storage.sqlite.engine.step import Step
from headrace.testing.contract.steps import (
    QUEUE,
    ContractClient,
    ContractIncarnation,
    a_gated_job,
    a_job,
    completed,
    gate_counts,
    ids,
    state_of,
)
from tests.storage.conftest import SqliteSubject

SPOILED = [
    "UPDATE gates SET ready = 7, active = 3",
    "DELETE FROM gates",
    "UPDATE jobs SET parked = NULL, number = NULL WHERE state = 'blocked'",
    "UPDATE jobs SET gates = NULL, parked = NULL, number = NULL WHERE id = 'c'",
    "UPDATE limits SET declared = '2 0 0 0'",
]


STRUCK = [
    "UPDATE jobs SET parked = NULL, number = NULL WHERE state = 'blocked'",
    "UPDATE queues SET is_struck = 0",
    "DELETE FROM strikes",
]


async def repair(subject: SqliteSubject) -> int:
    cursor, mended = "", 0
    while True:
        done = await subject.storage.repair(QUEUE, cursor=cursor, is_full=True)
        mended += done.mended
        cursor = done.cursor
        if not cursor:
            return mended


@pytest.mark.parametrize("sql", SPOILED)
async def test_a_repair_brings_gates_back_to_the_jobs_that_there_are(
    subject: SqliteSubject,
    client: ContractClient,
    worker: ContractIncarnation,
    sql: str,
) -> None:
    await client.enqueue(*(a_gated_job(name, "k", Terms(1)) for name in "abc"))
    assert ids(await worker.claim()) == ["a"]

    def spoil(step: Step) -> None:
        step.db.execute(sql)

    subject._call(spoil)  # noqa: SLF001 (behind its back)
    await repair(subject)
    assert await subject.problems() == []
    assert await repair(subject) == 0
    assert (await gate_counts(subject.storage, "k"))[1] == 1
    assert await state_of(subject.storage, "a") is JobState.ACTIVE


@pytest.mark.parametrize("sql", STRUCK)
async def test_a_repair_brings_strikes_and_their_lines_back(
    subject: SqliteSubject, client: ContractClient, worker: ContractIncarnation, sql: str
) -> None:
    await subject.storage.strike(QUEUE, Strike(id="task:send", task="send"))
    await client.enqueue(*(a_job(name) for name in "abc"))
    assert await worker.claim() == []

    def spoil(step: Step) -> None:
        step.db.execute(sql)

    subject._call(spoil)  # noqa: SLF001 (behind its back)
    await repair(subject)
    is_lifted = sql.startswith("DELETE")
    assert ids(await worker.claim()) == (["a", "b", "c"] if is_lifted else [])
    assert await subject.problems() == []
    await subject.storage.lift(QUEUE, "task:send")
    assert ids(await worker.claim()) == ([] if is_lifted else ["a", "b", "c"])


async def test_a_job_without_limits_looks_at_nothing_of_them(
    subject: SqliteSubject, client: ContractClient, worker: ContractIncarnation
) -> None:
    asked: list[str] = []

    def listen(step: Step) -> None:
        step.db.set_trace_callback(asked.append)

    subject._call(listen)  # noqa: SLF001 (behind its back)
    await client.enqueue(a_job("a"))
    assert await worker.settle(await worker.claim_one(), completed())
    assert asked
    assert not [sql for sql in asked if re.search(r"(FROM|INTO) (gates|limits|strikes)\b", sql)]
    await client.enqueue(a_gated_job("b"))
    assert [sql for sql in asked if re.search(r"INTO gates", sql)]
