"""How a history is written by hand: calls one after another, or with the times of their overlap."""

from __future__ import annotations

from tests.linearizability.checker import Operation
from tests.linearizability.spec import (
    LASTING,
    Call,
    Claim,
    Enqueue,
    Kind,
    PutBack,
    Reap,
    Reply,
    Seen,
    Settle,
    Write,
)

Written = list[Operation[Call, Reply]]

ENQUEUE = Enqueue()
UNKEPT = Enqueue(keep_ms=0)
WRITE = Write(ENQUEUE)
UPDATE = Enqueue("u", update="1110")
CLAIM = Claim("w1/n1")
CLAIM_2 = Claim("w2/n2")
CLAIM_3 = Claim("w1/n3")
PUT_BACK = PutBack(1, "w1/n1")
REAP = Reap("w1")
QUEUED = Seen("queued")
ACTIVE = Seen("active", starts=1)


def settle(outcome: Kind = "completed", *, keep_ms: int = LASTING, result: str = "r") -> Settle:
    """Return what the first worker writes about its first claim."""
    return Settle("w1", 1, "w1/n1", outcome, keep_ms, result)


def at(begin: int, end: int, call: Call, reply: Reply) -> Written:
    """Return a call that was answered."""
    return [Operation(call, begin, end, reply)]


def lost(begin: int, call: Call) -> Written:
    """Return a call whose answer never came."""
    return [Operation(call, begin, None, None)]


def in_turn(*steps: tuple[Call, Reply], begin: int = 0) -> Written:
    """Return calls that come one after another, at 0 to 5, at 10 to 15, and so on."""
    return [
        Operation(call, begin + 10 * n, begin + 10 * n + 5, reply)
        for n, (call, reply) in enumerate(steps)
    ]
