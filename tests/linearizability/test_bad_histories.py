"""Histories that break a promise, written by hand: the checker must find no order for them."""

from __future__ import annotations

import pytest

from tests.linearizability.checker import check
from tests.linearizability.spec import (
    GONE,
    NONE,
    NOT_CLAIMED,
    WRITTEN,
    Cancel,
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

BAD: dict[str, Written] = {
    "G1: an accepted job is gone": in_turn(STORED, (Get(), NONE)),
    "G1: an accepted job is brought by no claim": in_turn(STORED, (CLAIM, NOT_CLAIMED)),
    "G1: a job put back is brought by no claim": in_turn(
        STORED, TAKEN, (PUT_BACK, "done"), (CLAIM_2, NOT_CLAIMED)
    ),
    "G1: a job of a dead worker is brought by no claim": in_turn(
        STORED, TAKEN, (REAP, "taken back"), (CLAIM_2, NOT_CLAIMED)
    ),
    "G1: a retried job is brought by no claim": in_turn(
        STORED, TAKEN, (settle("retried"), "ok"), (CLAIM_2, NOT_CLAIMED)
    ),
    "G1: a job of a published write is gone": in_turn((WRITE, WRITTEN), (Get(), NONE)),
    "G6: a write is published again after the end of its job": in_turn(
        (WRITE, WRITTEN), TAKEN, (settle(), "ok"), (CLAIM_2, Claimed(1))
    ),
    "G6: a write takes the place of a job that was there": in_turn(
        (Enqueue("one"), "queued"), (WRITE, WRITTEN), (CLAIM, Claimed(1))
    ),
    "G6: a duplicate of nothing": in_turn((ENQUEUE, "duplicate")),
    "G6: a duplicate before the first enqueue was invoked": in_turn((ENQUEUE, "duplicate"), STORED),
    "G6: two enqueues at once are both queued": at(0, 9, *STORED) + at(1, 8, *STORED),
    "G6: a cancelled record makes room that was to stand": in_turn(
        STORED, (Cancel(), "cancelled"), (Enqueue(replaces_ended=False), "queued")
    ),
    "G6: the payload of a duplicate wins": in_turn(
        (Enqueue("one"), "queued"),
        (Enqueue("two"), "duplicate"),
        (CLAIM, Claimed(1, payload="two")),
    ),
    "G6: an id that is kept completed is queued again": in_turn(
        STORED, TAKEN, (settle(), "ok"), STORED
    ),
    "G6: a duplicate after the end of a job that is not kept": in_turn(
        (UNKEPT, "queued"), TAKEN, (settle(keep_ms=0), "ok"), (ENQUEUE, "duplicate")
    ),
    "G6: a dead letter is in the way": in_turn(
        STORED, TAKEN, (settle("failed"), "ok"), (ENQUEUE, "duplicate")
    ),
    "G6: one enqueue without an answer stores two jobs": lost(0, UNKEPT)
    + in_turn(TAKEN, (settle(keep_ms=0), "ok"), (CLAIM_2, Claimed(1)), begin=10),
    "G7: two claims one after another own one start": in_turn(STORED, TAKEN, (CLAIM_2, Claimed(1))),
    "G7: two claims at once own one start": in_turn(STORED)
    + at(20, 29, *TAKEN)
    + at(21, 28, CLAIM_2, Claimed(1)),
    "G7: a job is claimed while another has it": in_turn(STORED, TAKEN, (CLAIM_2, Claimed(2))),
    "G7: an epoch is left out": in_turn(STORED, (CLAIM, Claimed(2))),
    "G7: an epoch comes back": in_turn(
        STORED,
        TAKEN,
        (PUT_BACK, "done"),
        (CLAIM_2, Claimed(2)),
        (PutBack(2, "w2/n2"), "done"),
        (CLAIM_3, Claimed(1)),
    ),
    "G7: an outcome is taken from an old claim": in_turn(
        STORED, TAKEN, (PUT_BACK, "done"), (CLAIM_3, Claimed(2)), (settle(), "ok")
    ),
    "G7: an outcome is taken with an old epoch and the right nonce": in_turn(
        STORED,
        TAKEN,
        (PUT_BACK, "done"),
        (CLAIM_3, Claimed(2)),
        (Settle("w1", 1, "w1/n3"), "ok"),
    ),
    "G7: an outcome is taken with a wrong nonce": in_turn(
        STORED, TAKEN, (Settle("w1", 1, "w1/false"), "ok")
    ),
    "G7: an outcome is taken from another worker": in_turn(
        STORED, TAKEN, (Settle("w2", 1, "w1/n1"), "ok")
    ),
    "G7: an outcome is taken after the job was put back": in_turn(
        STORED, TAKEN, (PUT_BACK, "done"), (settle(), "ok")
    ),
    "G7: the owner's outcome is refused": in_turn(STORED, TAKEN, (settle(), "stale")),
    "G7: a stale outcome has an effect": in_turn(
        STORED,
        TAKEN,
        (Settle("w1", 1, "w1/false"), "stale"),
        (Get(), Seen("completed", starts=1, result="r")),
    ),
    "G7: a wrong nonce puts a job back": in_turn(
        STORED, TAKEN, (PutBack(1, "w1/false"), "done"), (Get(), Seen("queued", starts=1))
    ),
    "G7: a condemned worker claims": in_turn((REAP, "taken back"), STORED, TAKEN),
    "G7: a condemned worker's outcome is taken": in_turn(
        STORED, TAKEN, (REAP, "taken back"), (settle(), "ok")
    ),
    "G7: a worker is condemned though its beat has moved": in_turn(
        (Reap("w1", seen=7), "moved"), (CLAIM, GONE)
    ),
    "G8: the second of two completions wins": in_turn(
        STORED,
        TAKEN,
        (settle(result="one"), "ok"),
        (settle(result="two"), "ok"),
        (Get(), Seen("completed", starts=1, result="two")),
    ),
    "G8: a completed job fails after all": in_turn(
        STORED,
        TAKEN,
        (settle(), "ok"),
        (settle("failed"), "ok"),
        (Get(), Seen("failed", starts=1, failures=1)),
    ),
    "G9: a worker's death counts as nothing": in_turn(
        STORED, TAKEN, (REAP, "taken back"), (CLAIM_2, Claimed(2, stalls=0))
    ),
    "G9: a worker's death counts as an error": in_turn(
        STORED, TAKEN, (REAP, "taken back"), (CLAIM_2, Claimed(2, failures=1, stalls=1))
    ),
    "G9: an error counts as nothing": in_turn(
        STORED, TAKEN, (settle("retried"), "ok"), (CLAIM_2, Claimed(2, failures=0))
    ),
    "G9: a job put back is charged": in_turn(
        STORED, TAKEN, (PUT_BACK, "done"), (CLAIM_2, Claimed(2, stalls=1))
    ),
    "G10: a claim after cancelled was answered": in_turn(STORED, (Cancel(), "cancelled"), TAKEN),
    "G10: cancelled is answered for a completed job": in_turn(
        STORED, TAKEN, (settle(), "ok"), (Cancel(), "cancelled")
    ),
    "G10: cancelled is answered for an active job": in_turn(STORED, TAKEN, (Cancel(), "cancelled")),
    "G10: a job that was asked to stop runs again": in_turn(
        STORED,
        TAKEN,
        (Cancel(), "requested"),
        (settle("retried"), "ok"),
        (CLAIM_2, Claimed(2, failures=1)),
    ),
    "G10: a cancel of nothing leaves a trace": in_turn(
        (Cancel(), "not_found"), (Get(), Seen("cancelled"))
    ),
    "G10: a cancel does not find a job that waits": in_turn(STORED, (Cancel(), "not_found")),
    "G5: a delayed job starts early": in_turn((Enqueue(is_delayed=True), "scheduled"), TAKEN),
    "an update of nothing": in_turn((UPDATE, "updated")),
    "an update changes nothing": in_turn(STORED, (UPDATE, "updated"), (Get(), QUEUED)),
    "an update stores a second job beside one that waits": in_turn(
        STORED, (UPDATE, "updated"), (CLAIM, Claimed(1, "u")), (CLAIM_2, Claimed(1))
    ),
    "two jobs of an id are active": in_turn(*BLOCKED, (CLAIM_2, Claimed(1, "u"))),
    "an update changes an active job": in_turn(
        *BLOCKED, (Get(), Seen("active", starts=1, payload="u", has_next=True))
    ),
    "the end of an active job loses its successor": in_turn(
        *BLOCKED, (settle(), "ok"), (CLAIM_2, NOT_CLAIMED)
    ),
    "a job that is kept after its end has its successor wait": in_turn(
        *BLOCKED, (settle(), "ok"), (Get(), Seen("completed", starts=1, result="r"))
    ),
    "a successor comes in twice": in_turn(
        *BLOCKED,
        (settle(), "ok"),
        (CLAIM_2, Claimed(1, "u")),
        (Settle("w2", 1, "w2/n2"), "ok"),
        (CLAIM_3, Claimed(1, "u")),
    ),
    "a retried job waits beside its successor": in_turn(
        *BLOCKED, (settle("retried"), "ok"), (CLAIM_2, Claimed(2, failures=1))
    ),
    "the first of two updates wins": in_turn(
        *BLOCKED,
        (Enqueue("v", update="1110"), "updated"),
        (settle(), "ok"),
        (CLAIM_2, Claimed(1, "u")),
    ),
    "a job that is cancelled leaves its successor": in_turn(
        *BLOCKED,
        (Cancel(), "requested"),
        (settle("cancelled"), "ok"),
        (CLAIM_2, Claimed(1, "u")),
    ),
    "a successor comes in that was cancelled alone": in_turn(
        *BLOCKED,
        (Cancel(only_next=True), "cancelled"),
        (settle(), "ok"),
        (CLAIM_2, Claimed(1, "u")),
    ),
    "a successor ends the job before it": in_turn(
        *BLOCKED, (Cancel(only_next=True), "cancelled"), (settle("retried"), "ok"), (Get(), NONE)
    ),
    "a claim before the enqueue was invoked": in_turn(TAKEN, STORED),
    # A call that surely had no effect is not in the history at all.
    "an effect after a definite failure": in_turn((Get(), QUEUED)),
    "a call without an answer has its effect before it was invoked": in_turn((Get(), QUEUED))
    + lost(10, ENQUEUE),
    "a stale read": in_turn(STORED, TAKEN, (Get(), QUEUED)),
    "a read of what never was": in_turn(STORED, (Get(), ACTIVE)),
    "two reads during an enqueue see it done, then undone": at(0, 99, *STORED)
    + in_turn((Get(), QUEUED), (Get(), NONE), begin=10),
    "two readers disagree about which of two enqueues came first": at(0, 30, Enqueue("x"), "queued")
    + at(0, 60, Enqueue("y"), "duplicate")
    + at(40, 50, Get(), Seen("queued", payload="y")),
}


@pytest.mark.parametrize("history", BAD.values(), ids=BAD.keys())
def test_no_order_explains(history: Written) -> None:
    verdict = check(JobSpecification(), history)
    assert not verdict.is_linearizable
    assert len(verdict.order) < len(history)


@pytest.mark.parametrize("history", BAD.values(), ids=BAD.keys())
def test_without_one_of_the_calls_an_order_explains(history: Written) -> None:
    """What is wrong is the contradiction, and not how the history is written."""
    shorter = [history[:n] + history[n + 1 :] for n in range(len(history))]
    assert any(check(JobSpecification(), rest).is_linearizable for rest in shorter)
