"""Histories that look wrong and are not, written by hand: the checker must find an order."""

from __future__ import annotations

import pytest

from tests.linearizability.checker import check
from tests.linearizability.spec import (
    GONE,
    NO_ROOM,
    NONE,
    NOT_CLAIMED,
    WRITTEN,
    Cancel,
    Claim,
    Claimed,
    Enqueue,
    Get,
    JobSpecification,
    PutBack,
    Reap,
    Seen,
    Settle,
)
from tests.linearizability.written import (
    ACTIVE,
    CLAIM,
    CLAIM_2,
    CLAIM_3,
    ENQUEUE,
    PUT_BACK,
    QUEUED,
    REAP,
    UNKEPT,
    UPDATE,
    WRITE,
    Written,
    at,
    in_turn,
    lost,
    settle,
)

STORED = (ENQUEUE, "queued")
TAKEN = (CLAIM, Claimed(1))
BLOCKED = (STORED, TAKEN, (UPDATE, "updated"))
COMPLETED = Seen("completed", starts=1, result="r")

GOOD: dict[str, Written] = {
    "nothing happened": [],
    "one job from its begin to its end": in_turn(
        STORED, TAKEN, (settle(), "ok"), (Get(), COMPLETED), (ENQUEUE, "completed")
    ),
    "a claim brings a job before its enqueue was answered": at(0, 99, *STORED) + at(20, 30, *TAKEN),
    "a job is settled before its claim and its enqueue were answered": at(0, 99, *STORED)
    + at(10, 98, *TAKEN)
    + at(50, 60, Get(), COMPLETED)
    + lost(40, settle()),
    "a claim during the enqueue brings nothing": at(0, 99, *STORED)
    + at(20, 30, CLAIM, NOT_CLAIMED),
    "of two enqueues at once the one invoked later wins": at(0, 50, Enqueue("x"), "duplicate")
    + at(10, 60, Enqueue("y"), "queued")
    + at(70, 80, Get(), Seen("queued", payload="y")),
    "a claim brings a job of a write that is being published": at(0, 99, WRITE, WRITTEN)
    + at(20, 30, *TAKEN),
    "a write whose end is unknown is published by another later": lost(0, WRITE)
    + at(10, 20, Get(), NONE)
    + at(30, 40, Get(), QUEUED),
    "a write meets a job of its id": in_turn(
        (Enqueue("one"), "queued"), (WRITE, WRITTEN), (CLAIM, Claimed(1, payload="one"))
    ),
    "two reads during an enqueue see it undone, then done": at(0, 99, *STORED)
    + in_turn((Get(), NONE), (Get(), QUEUED), begin=10),
    "calls that touch may come in either order": at(0, 10, *TAKEN) + at(10, 20, *STORED),
    "an enqueue without an answer takes effect late": lost(0, ENQUEUE)
    + in_turn((Get(), NONE), (CLAIM, NOT_CLAIMED), (CLAIM_2, Claimed(1)), begin=10),
    "an enqueue without an answer never takes effect": lost(0, ENQUEUE)
    + in_turn((Get(), NONE), (CLAIM, NOT_CLAIMED), STORED, begin=10),
    "an enqueue without an answer is what a duplicate is of": lost(0, Enqueue("x"))
    + in_turn((Enqueue("y"), "duplicate"), (CLAIM, Claimed(1, payload="x")), begin=10),
    "an enqueue without an answer takes effect after the first job's end": lost(0, UNKEPT)
    + in_turn(
        (UNKEPT, "queued"), TAKEN, (settle(keep_ms=0), "ok"), (CLAIM_2, Claimed(1)), begin=10
    ),
    "a claim without an answer took the job": in_turn(STORED)
    + lost(10, CLAIM)
    + in_turn((CLAIM_2, NOT_CLAIMED), (Get(), ACTIVE), begin=20),
    "a claim without an answer takes the job late": in_turn(STORED)
    + lost(10, CLAIM)
    + in_turn((Get(), QUEUED), (CLAIM_2, NOT_CLAIMED), begin=20),
    "a claim without an answer never took the job": in_turn(STORED)
    + lost(10, CLAIM)
    + in_turn((CLAIM_2, Claimed(1)), begin=20),
    "a claim without an answer took the job, and its worker died": in_turn(STORED)
    + lost(10, CLAIM)
    + in_turn((REAP, "taken back"), (CLAIM_2, Claimed(2, stalls=1)), begin=20),
    "a claim without an answer only made a due job ready": in_turn(
        STORED, TAKEN, (settle("retried"), "ok")
    )
    + lost(40, CLAIM_2)
    + in_turn((Get(), Seen("queued", starts=1, failures=1)), begin=50),
    "an outcome without an answer was written": in_turn(STORED, TAKEN)
    + lost(20, settle())
    + in_turn((ENQUEUE, "completed"), begin=30),
    "an outcome without an answer is written late": in_turn(STORED, TAKEN)
    + lost(20, settle())
    + in_turn((Get(), ACTIVE), (ENQUEUE, "duplicate"), (Get(), COMPLETED), begin=30),
    "an outcome without an answer was never written": in_turn(STORED, TAKEN)
    + lost(20, settle("failed"))
    + in_turn((PUT_BACK, "done"), (CLAIM_2, Claimed(2)), begin=30),
    "a cancel without an answer ended the job": in_turn(STORED)
    + lost(10, Cancel())
    + in_turn((CLAIM, NOT_CLAIMED), (Cancel(), "cancelled"), begin=20),
    "a reap without an answer condemned the worker": in_turn(STORED, TAKEN)
    + lost(20, REAP)
    + in_turn((settle(), GONE), (CLAIM_2, Claimed(2, stalls=1)), begin=30),
    "many calls without an answer": [
        operation
        for n in range(12)
        for operation in lost(n, UNKEPT) + lost(n, Claim(f"w{n}/n")) + lost(n, Cancel())
    ]
    + in_turn((Get(), NONE), (Get(), QUEUED), (CLAIM, Claimed(1)), begin=100),
    "the first outcome counts, and its repetition is answered alike": in_turn(
        STORED,
        TAKEN,
        (settle(result="one"), "ok"),
        (settle("failed"), "ok"),
        (Get(), Seen("completed", starts=1, result="one")),
    ),
    "an outcome for a record that is gone is no error": in_turn(
        (UNKEPT, "queued"), TAKEN, (settle(keep_ms=0), "ok"), (settle(), "ok"), (Get(), NONE)
    ),
    "an old claim is stale while another has the job": in_turn(
        STORED, TAKEN, (PUT_BACK, "done"), (CLAIM_3, Claimed(2)), (settle(), "stale")
    ),
    "a claim of the first job is stale for the next one with that id": in_turn(
        (UNKEPT, "queued"),
        TAKEN,
        (settle(keep_ms=0), "ok"),
        STORED,
        (CLAIM_3, Claimed(1)),
        (settle(), "stale"),
    ),
    "a job completes although it was asked to stop": in_turn(
        STORED, TAKEN, (Cancel(), "requested"), (settle(), "ok"), (Cancel(), "finished")
    ),
    "a job that was asked to stop ends when it is put back": in_turn(
        STORED,
        TAKEN,
        (Cancel(), "requested"),
        (PUT_BACK, "done"),
        (Get(), Seen("cancelled", starts=1)),
    ),
    "a cancelled id is enqueued anew and counts from one": in_turn(
        STORED, TAKEN, (settle("cancelled"), "ok"), STORED, (CLAIM_2, Claimed(1))
    ),
    "a dead letter makes room": in_turn(STORED, TAKEN, (settle("failed"), "ok"), STORED),
    "a dead letter stands": in_turn(
        STORED, TAKEN, (settle("failed"), "ok"), (Enqueue(replaces_ended=False), "duplicate")
    ),
    "a delayed job waits, and can be cancelled": in_turn(
        (Enqueue(is_delayed=True), "scheduled"), (CLAIM, NOT_CLAIMED), (Cancel(), "cancelled")
    ),
    "a claim that had no room leaves the job": in_turn(STORED, (CLAIM, NO_ROOM), (Get(), QUEUED)),
    "a claim that had no room makes a due job ready": in_turn(
        STORED,
        TAKEN,
        (settle("released"), "ok"),
        (Get(), Seen("scheduled", starts=1)),
        (CLAIM_2, NO_ROOM),
        (Get(), Seen("queued", starts=1)),
    ),
    "a snoozed job waits for its next start, and counts nothing": in_turn(
        STORED,
        TAKEN,
        (settle("snoozed"), "ok"),
        (Get(), Seen("scheduled", starts=1)),
        (CLAIM_2, Claimed(2)),
    ),
    "a job on its last chance is left behind, and taken later": in_turn(
        (Enqueue(max_stalls=2), "queued"),
        TAKEN,
        (REAP, "taken back"),
        (CLAIM_2, NOT_CLAIMED),
        (CLAIM_2, Claimed(2, stalls=1)),
    ),
    "a job whose workers died too often is a dead letter": in_turn(
        (Enqueue(max_stalls=1), "queued"),
        TAKEN,
        (REAP, "taken back"),
        (Get(), Seen("failed", starts=1, stalls=1)),
    ),
    "a worker whose beat has moved goes on": in_turn(
        STORED, TAKEN, (Reap("w1", seen=7), "moved"), (settle(), "ok")
    ),
    "a waiting job is changed": in_turn(STORED, (UPDATE, "updated"), (CLAIM, Claimed(1, "u"))),
    "a completed record makes room for an update": in_turn(
        STORED, TAKEN, (settle(), "ok"), (UPDATE, "queued"), (CLAIM_2, Claimed(1, "u"))
    ),
    "a delayed job runs now, or later": in_turn(
        (Enqueue(is_delayed=True), "scheduled"),
        (Enqueue("u", update="0l00"), "updated"),
        (CLAIM, NOT_CLAIMED),
        (Enqueue("u", update="0e00"), "updated"),
        (CLAIM, Claimed(1)),
    ),
    "a successor runs after the active job": in_turn(
        *BLOCKED,
        (Get(), Seen("active", starts=1, has_next=True)),
        (settle(), "ok"),
        (settle(), "stale"),
        (CLAIM_2, Claimed(1, "u")),
    ),
    "the newest of two updates at once wins": in_turn(STORED, TAKEN)
    + at(20, 60, Enqueue("x", update="1110"), "updated")
    + at(20, 60, Enqueue("y", update="1110"), "updated")
    + in_turn((settle(), "ok"), (CLAIM_2, Claimed(1, "x")), begin=70),
    "two updates change different parts": in_turn(
        *BLOCKED,
        (Enqueue("v", max_stalls=1, update="0010"), "updated"),
        (settle("released"), "ok"),
        (CLAIM_2, Claimed(2, "u")),
        (Reap("w2"), "taken back"),
        (Get(), Seen("failed", starts=2, stalls=1, payload="u")),
    ),
    "a job that is retried is changed by its successor": in_turn(
        *BLOCKED,
        (Enqueue(update="0001"), "updated"),
        (settle("retried"), "ok"),
        (CLAIM_2, Claimed(2, "u")),
    ),
    "a job that was asked to stop is followed by a later update": in_turn(
        STORED,
        TAKEN,
        (Cancel(), "requested"),
        (UPDATE, "updated"),
        (PUT_BACK, "done"),
        (CLAIM_2, Claimed(1, "u")),
    ),
    "an update without an answer follows the job": in_turn(STORED, TAKEN)
    + lost(20, UPDATE)
    + in_turn((settle(), "ok"), (CLAIM_2, Claimed(1, "u")), begin=30),
    "an update without an answer comes before a cancel": in_turn(STORED, TAKEN)
    + lost(20, UPDATE)
    + in_turn(
        (Cancel(only_next=True), "cancelled"), (settle(), "ok"), (Get(), COMPLETED), begin=30
    ),
    "two workers have the job one after the other": in_turn(
        STORED,
        TAKEN,
        (PUT_BACK, "done"),
        (CLAIM_2, Claimed(2)),
        (PutBack(1, "w1/n1"), "done"),
        (Settle("w2", 2, "w2/n2"), "ok"),
    ),
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD.keys())
def test_an_order_explains(history: Written) -> None:
    assert check(JobSpecification(), history).is_linearizable


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD.keys())
def test_the_order_that_was_found_keeps_to_time_and_specification(history: Written) -> None:
    verdict = check(JobSpecification(), history)
    assert {op for op in history if op.returned is not None} <= set(verdict.order)
    states = {JobSpecification().initial()}
    for n, operation in enumerate(verdict.order):
        assert all(
            later.returned is None or later.returned >= operation.invoked
            for later in verdict.order[n:]
        )
        states = {
            after
            for state in states
            for reply, after in JobSpecification().apply(state, operation.call)
            if operation.returned is None or reply == operation.reply
        }
    assert verdict.state in states
