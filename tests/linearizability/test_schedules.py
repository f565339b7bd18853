"""Histories of one schedule, written by hand: some that an order explains, some that none does."""

from __future__ import annotations

import secrets
from typing import TypeAlias

import msgspec
import pytest

from headrace.storage.sqlite.storage import SqliteStorage
from tests.linearizability.checker import Operation, check
from tests.linearizability.runner import NOW_MS, TENANT, Plan
from tests.linearizability.schedules import (
    DELETED,
    REFUSED,
    WRITTEN,
    Call,
    Entry,
    Fire,
    Found,
    Read,
    Reply,
    ScheduleSpecification,
    Write,
)
from tests.linearizability.test_specification import recorded

Written: TypeAlias = list[Operation[Call, Reply]]

MADE = (Write(0, "x"), WRITTEN)
SEEN = (Read(), Found(1, "x"))
NOTHING = (Read(), Found())


def in_turn(*steps: tuple[Call, Reply], begin: int = 0) -> Written:
    """Return calls that come one after another."""
    return [
        Operation(call, begin + 10 * n, begin + 10 * n + 5, reply)
        for n, (call, reply) in enumerate(steps)
    ]


def lost(begin: int, call: Call) -> Written:
    """Return a call whose answer never came."""
    return [Operation(call, begin, None, None)]


GOOD: dict[str, Written] = {
    "a schedule is made, changed, deleted and made anew": in_turn(
        NOTHING,
        MADE,
        (Write(1, "y"), WRITTEN),
        (Read(), Found(2, "y")),
        (Write(2), DELETED),
        (Write(2, "z"), REFUSED),
        NOTHING,
        MADE,
        SEEN,
    ),
    "of two writes at once one is made": [
        Operation(Write(0, "x"), 0, 50, REFUSED),
        Operation(Write(0, "y"), 10, 40, WRITTEN),
        *in_turn((Read(), Found(1, "y")), begin=60),
    ],
    "a write without an answer was made": lost(0, Write(0, "x"))
    + in_turn(NOTHING, SEEN, (Write(0, "y"), REFUSED), begin=10),
    "a write without an answer was not made": lost(0, Write(0, "x"))
    + in_turn(NOTHING, (Write(0, "y"), WRITTEN), (Read(), Found(1, "y")), begin=10),
    "an occurrence whose answer was lost is a duplicate": lost(0, Fire(5))
    + in_turn((Fire(5), "duplicate"), (Fire(6), "queued"), begin=10),
    "an occurrence outlives its schedule": in_turn(
        MADE, (Fire(5), "queued"), (Write(1), DELETED), (Fire(5), "duplicate")
    ),
}

BAD: dict[str, Written] = {
    "two writes of one version are made": in_turn(MADE, MADE),
    "a write that was refused is made": in_turn(
        MADE, (Write(0, "y"), REFUSED), (Read(), Found(1, "y"))
    ),
    "a write that was made is lost": in_turn(MADE, NOTHING),
    "a stale read": in_turn(MADE, (Write(1, "y"), WRITTEN), SEEN),
    "a deleted schedule comes back": in_turn(MADE, (Write(1), DELETED), SEEN),
    "two reads during a write see it made, then undone": [
        Operation(Write(0, "x"), 0, 99, WRITTEN),
        *in_turn(SEEN, NOTHING, begin=10),
    ],
    "an occurrence is fired twice": in_turn((Fire(5), "queued"), (Fire(5), "queued")),
    "an occurrence is fired after a later one": in_turn((Fire(5), "queued"), (Fire(4), "queued")),
    "the first is a duplicate": in_turn((Fire(5), "duplicate")),
    "a mark ends with its schedule": in_turn(
        MADE, (Fire(5), "queued"), (Write(1), DELETED), (Fire(5), "queued")
    ),
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD.keys())
def test_an_order_explains(history: Written) -> None:
    assert check(ScheduleSpecification(), history).is_linearizable


@pytest.mark.parametrize("history", BAD.values(), ids=BAD.keys())
def test_no_order_explains(history: Written) -> None:
    assert not check(ScheduleSpecification(), history).is_linearizable


async def test_one_false_answer_in_a_recorded_history_is_found() -> None:
    """What the clients record is enough to see a lie: here of any write that was made."""
    storage = SqliteStorage(
        f"memory://test-{secrets.token_hex(6)}", clock=lambda: NOW_MS
    ).for_tenant(TENANT)
    plan = Plan("schedules", 3, seed=1)
    lines = await recorded(plan, storage)
    await storage.aclose()
    assert plan.problems(lines) == []
    made = [n for n, x in enumerate(lines) if isinstance(x, Entry) and x.reply == WRITTEN]
    assert made
    for n in made:
        false = [*lines[:n], msgspec.structs.replace(lines[n], reply=REFUSED), *lines[n + 1 :]]
        assert len(plan.problems(false)) == 1
