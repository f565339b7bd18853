"""Gates in a database that somebody has changed behind the storage's back, and what they cost."""

from __future__ import annotations

import re

import pytest

from headrace.limit import Terms
from headrace.storage import JobState, Repaired, Strike
from headrace.storage.limits import GATES_LOOKS
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
        done = await subject.storage.repair(QUEUE, cursor=cursor, is_full=not cursor)
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


async def test_a_repair_counts_the_places_of_many_jobs(
    subject: SqliteSubject, client: ContractClient, worker: ContractIncarnation
) -> None:
    for first in (0, 350):
        await client.enqueue(
            *(a_gated_job(f"{n}", f"{n % 7}", Terms(100)) for n in range(first, first + 350))
        )
        await worker.claim(175)

    def spoil(step: Step) -> None:
        step.db.execute("UPDATE gates SET ready = 7, active = 3")

    subject._call(spoil)  # noqa: SLF001 (behind its back)
    assert await repair(subject) == 7
    assert await gate_counts(subject.storage, "3") == (50, 50, 0)
    assert await subject.problems() == []


async def test_a_sweep_opens_lines_that_have_room_and_that_nobody_comes_for(
    subject: SqliteSubject, client: ContractClient, worker: ContractIncarnation
) -> None:
    for n in range(GATES_LOOKS + 20):
        await client.enqueue(*(a_gated_job(f"{name} {n}", f"{n}", Terms(1)) for name in "abc"))
    assert await gate_counts(subject.storage, f"{GATES_LOOKS}") == (1, 0, 2)

    def spoil(step: Step) -> None:
        step.db.execute("UPDATE limits SET declared = '2 0 0 0'")

    subject._call(spoil)  # noqa: SLF001 (behind its back)
    done = await subject.storage.repair(QUEUE)
    assert (done.mended, bool(done.cursor)) == (0, True)
    assert (await subject.storage.stats(QUEUE)).blocked == 2 * (GATES_LOOKS + 20) - GATES_LOOKS
    done = await subject.storage.repair(QUEUE, cursor=done.cursor)
    assert done == Repaired("", 0)
    assert (await subject.storage.stats(QUEUE)).blocked == GATES_LOOKS + 20
    assert await subject.problems() == []


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
