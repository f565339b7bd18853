"""Histories of one key of a limit, written by hand: some that an order explains, and others."""

from __future__ import annotations

import secrets
from typing import TypeAlias

import msgspec
import pytest

from headrace.storage.sqlite.storage import SqliteStorage
from tests.linearizability.checker import Operation, check
from tests.linearizability.limit_clients import KeyEntry
from tests.linearizability.limits import (
    Call,
    Cancel,
    Claim,
    Counts,
    Enqueue,
    KeySpecification,
    Look,
    Outcomes,
    PutBack,
    Reply,
    Settle,
    Taken,
)
from tests.linearizability.runner import NOW_MS, TENANT, Plan
from tests.linearizability.test_specification import recorded

Written: TypeAlias = list[Operation[Call, Reply]]
Step: TypeAlias = tuple[Call, Reply]


def in_turn(*steps: Step, begin: int = 0) -> Written:
    """Return calls that come one after another."""
    return [
        Operation(call, begin + 10 * n, begin + 10 * n + 5, reply)
        for n, (call, reply) in enumerate(steps)
    ]


def lost(begin: int, call: Call) -> Written:
    """Return a call whose answer never came."""
    return [Operation(call, begin, None, None)]


def enqueued(*job_ids: str, free: int = 1) -> Step:
    """Return an enqueue where the first of the jobs get a place."""
    words = ["queued"] * free + ["blocked"] * (len(job_ids) - free)
    return Enqueue(job_ids), Outcomes(tuple(words[: len(job_ids)]))


def claimed(*job_ids: str, has_slots: bool = True) -> Step:
    return Claim(), Taken(job_ids, has_slots)


def counted(ready: int, active: int, blocked: int) -> Step:
    return Look(), Counts(ready, active, blocked)


def done(job_id: str) -> Step:
    return Settle(job_id, "completed"), "ok"


def retried(job_id: str) -> Step:
    return Settle(job_id, "retried"), "ok"


GOOD: dict[str, tuple[int, Written]] = {
    "one after another": (
        1,
        in_turn(
            enqueued("a", "b"),
            counted(1, 0, 1),
            claimed("a"),
            claimed(),
            counted(0, 1, 1),
            done("a"),
            counted(1, 0, 0),
            claimed("b"),
        ),
    ),
    "two at once": (
        2,
        in_turn(enqueued("a", "b", "c", free=2), claimed("a", "b"), done("b"), claimed("c")),
    ),
    "slots were over": (
        2,
        in_turn(enqueued("a", "b", free=2), claimed("a", has_slots=False), claimed("b")),
    ),
    "one that is put back goes first": (
        1,
        in_turn(enqueued("a", "b"), claimed("a"), (PutBack("a"), "done"), claimed("a")),
    ),
    "one that is retried goes last, and has no place meanwhile": (
        1,
        in_turn(
            enqueued("a", "b"),
            claimed("a"),
            retried("a"),
            counted(1, 0, 0),
            claimed("b"),
            counted(0, 1, 1),
        ),
    ),
    "a cancelled one frees its place": (
        1,
        in_turn(enqueued("a", "b"), (Cancel("a"), "cancelled"), claimed("b")),
    ),
    "one that is asked to stop ends as it would wait again": (
        1,
        in_turn(
            enqueued("a", "b"),
            claimed("a"),
            (Cancel("a"), "requested"),
            (PutBack("a"), "done"),
            (Cancel("a"), "cancelled"),
            claimed("b"),
        ),
    ),
    "a claim whose answer was lost holds the place": (
        1,
        in_turn(enqueued("a", "b")) + lost(20, Claim()) + in_turn(claimed(), begin=40),
    ),
}

BAD: dict[str, tuple[int, Written]] = {
    "more than may run at once": (1, in_turn(enqueued("a", "b"), claimed("a"), claimed("b"))),
    "more than may run at once, of one claim": (
        2,
        in_turn(enqueued("a", "b", "c", free=2), claimed("a", "b", "c")),
    ),
    "one that overtakes": (1, in_turn(enqueued("a", "b"), claimed("b"))),
    "one that is left though there was a slot": (1, in_turn(enqueued("a"), claimed())),
    "a place that is never free": (
        1,
        in_turn(enqueued("a", "b"), claimed("a"), done("a"), claimed()),
    ),
    "a place that is there twice": (
        1,
        in_turn(enqueued("a", "b", "c"), claimed("a"), done("a"), claimed("b"), claimed("c")),
    ),
    "a place that a retry keeps": (
        1,
        in_turn(enqueued("a", "b"), claimed("a"), retried("a"), counted(0, 0, 1)),
    ),
    "one that is put back and goes last": (
        1,
        in_turn(enqueued("a", "b"), claimed("a"), (PutBack("a"), "done"), claimed("b")),
    ),
    "one that is blocked though there is room": (2, in_turn(enqueued("a", "b", free=1))),
    "a count that is off by one": (2, in_turn(enqueued("a", free=1), counted(0, 0, 0))),
    "one that runs after it was cancelled": (
        1,
        in_turn(enqueued("a"), (Cancel("a"), "cancelled"), claimed("a")),
    ),
}


@pytest.mark.parametrize(("limit", "history"), GOOD.values(), ids=GOOD)
def test_what_a_key_may_do_has_an_explanation(limit: int, history: Written) -> None:
    assert check(KeySpecification(limit), history).is_linearizable


@pytest.mark.parametrize(("limit", "history"), BAD.values(), ids=BAD)
def test_what_a_key_may_not_do_has_none(limit: int, history: Written) -> None:
    assert not check(KeySpecification(limit), history).is_linearizable


async def test_one_false_answer_in_a_recorded_history_is_found() -> None:
    """What the clients record is enough to see a lie: here of any claim, that it took one more."""
    storage = SqliteStorage(
        f"memory://test-{secrets.token_hex(6)}", clock=lambda: NOW_MS
    ).for_tenant(TENANT)
    plan = Plan("limits", 3, seed=1)
    lines = await recorded(plan, storage)
    await storage.aclose()
    assert plan.problems(lines) == []
    claims = [n for n, x in enumerate(lines) if isinstance(getattr(x, "reply", None), Taken)]
    assert claims
    for n in claims:
        line = lines[n]
        assert isinstance(line, KeyEntry)
        assert isinstance(line.reply, Taken)
        reply = Taken((*line.reply.job_ids, "never-was"), line.reply.has_slots)
        false = [*lines[:n], msgspec.structs.replace(line, reply=reply), *lines[n + 1 :]]
        assert len(plan.problems(false)) == 1
