"""Gates in a database that somebody has changed behind the storage's back, and what they cost."""

from __future__ import annotations

import re
from itertools import count

import pytest

from headrace.limit import Terms
from headrace.storage import JobState, Repaired, Settlement, Strike
from headrace.storage.limits import BATCH_LIMIT, GATES_LOOKS
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


async def test_a_repair_while_jobs_move_frees_what_nobody_has_and_nothing_else(
    subject: SqliteSubject, client: ContractClient, worker: ContractIncarnation
) -> None:
    for first in (0, 350, 700, 1050):
        jobs = [a_gated_job(f"{n}", f"{n % 7}", Terms(150)) for n in range(first, first + 350)]
        await client.enqueue(*jobs)
    await worker.claim(175)
    await client.enqueue(*(a_gated_job(name, "lost", Terms(1), name="other") for name in "ab"))

    def spoil(step: Step) -> None:
        step.db.execute("UPDATE gates SET active = 1 WHERE name = 'other	lost'")
        step.db.execute("DELETE FROM jobs WHERE id = 'a'")
        step.db.execute("UPDATE queues SET queued = queued - 1")

    subject._call(spoil)  # noqa: SLF001 (behind its back)
    done = Repaired("", 0)
    for calls in count():
        await subject.advance(1)
        done = await subject.storage.repair(QUEUE, cursor=done.cursor, is_full=not calls)
        if not done.cursor:
            break
        held = await worker.claim(3)
        await worker.settle_all(*(Settlement(job.id, job.claim, 7, completed()) for job in held))
    assert calls > 1_400 // BATCH_LIMIT
    assert await subject.problems() == []
    assert await state_of(subject.storage, "b") is JobState.QUEUED


async def test_a_repair_that_goes_on_in_another_process_changes_no_gate(
    subject: SqliteSubject, client: ContractClient, worker: ContractIncarnation
) -> None:
    for first in (0, 350):
        jobs = [a_gated_job(f"{n}", f"{n % 7}", Terms(100)) for n in range(first, first + 350)]
        await client.enqueue(*jobs)
    done = await subject.storage.repair(QUEUE, is_full=True)
    done = await subject.storage.repair(QUEUE, cursor=done.cursor)

    def lose(step: Step) -> None:
        step.db.execute("DROP TABLE temp.tally")
        step.db.execute("DROP TABLE temp.walk")

    subject._call(lose)  # noqa: SLF001 (as another process is, which has no tally)
    assert done.cursor
    while done.cursor:
        done = await subject.storage.repair(QUEUE, cursor=done.cursor)
        assert done.mended == 0
    assert await gate_counts(subject.storage, "3") == (100, 0, 0)


async def test_a_repair_puts_many_rows_right_over_several_calls(
    subject: SqliteSubject, client: ContractClient, worker: ContractIncarnation
) -> None:
    big = b"." * 300
    for first in (0, 400, 800):
        await client.enqueue(*(a_job(f"{n:04}", big) for n in range(first, first + 400)))
        await worker.claim(400)

    def spoil(step: Step) -> None:
        step.db.execute("UPDATE jobs SET owner = NULL")
        step.db.execute("DELETE FROM jobs WHERE id < '0600'")
        step.db.execute("UPDATE queues SET active = 7")

    subject._call(spoil)  # noqa: SLF001 (behind its back)
    assert await repair(subject) >= 600 + 600  # jobs, and payloads of those that are lost
    await repair(subject)
    assert await subject.problems() == []
    assert (await subject.storage.stats(QUEUE)).queued == 600
    assert await repair(subject) == 0


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
