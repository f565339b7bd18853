"""The search itself, on the simplest object, and what a failed check of a job shows."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pytest

from tests.linearizability import fifo
from tests.linearizability.checker import Operation, SearchTooLarge, check
from tests.linearizability.fifo import Moment
from tests.linearizability.history import Line, problems_of_jobs
from tests.linearizability.spec import Claim, Claimed, Enqueue

READ = "read"

RegisterOperation: TypeAlias = Operation[str, str]


class Register:
    """Holds a text. ``read`` answers it, any other call writes itself and answers ``ok``."""

    def initial(self) -> str:
        return ""

    def apply(self, state: str, call: str) -> Iterable[tuple[str, str]]:
        return [(state, state)] if call == READ else [("ok", call)]


def explains(order: Sequence[RegisterOperation]) -> bool:
    """Whether an order keeps to real time and to what a register does."""
    state = ""
    for n, operation in enumerate(order):
        if any(x.returned is not None and x.returned < operation.invoked for x in order[n:]):
            return False
        [(reply, state)] = Register().apply(state, operation.call)
        if operation.returned is not None and reply != operation.reply:
            return False
    return True


def has_order(history: Sequence[RegisterOperation]) -> bool:
    """Try every order, with and without each call that was not answered."""
    known = [each for each in history if each.returned is not None]
    unknown = [each for each in history if each.returned is None]
    return any(
        explains(order)
        for size in range(len(unknown) + 1)
        for some in itertools.combinations(unknown, size)
        for order in itertools.permutations([*known, *some])
    )


def drawn(source: random.Random) -> list[RegisterOperation]:
    """Return a few calls at times drawn at random, with replies that may be wrong."""
    history = []
    for _ in range(source.randint(1, 5)):
        call = source.choice([READ, READ, "x", "y"])
        begin = source.randint(0, 12)
        reply = source.choice(["", "x", "y"]) if call == READ else "ok"
        end = None if source.random() < 0.2 else begin + source.randint(0, 6)
        history.append(Operation(call, begin, end, None if end is None else reply))
    return history


def test_the_search_agrees_with_a_trial_of_every_order() -> None:
    source = random.Random(20)
    histories = [drawn(source) for _ in range(3000)]
    expected = [has_order(history) for history in histories]
    assert [check(Register(), history).is_linearizable for history in histories] == expected
    assert 500 < sum(expected) < 2500


def test_the_longest_try_is_kept_of_a_history_without_an_order() -> None:
    history = [
        Operation("x", 0, 1, "ok"),
        Operation(READ, 2, 3, "x"),
        Operation("y", 4, 5, "ok"),
        Operation(READ, 6, 7, "x"),
    ]
    verdict = check(Register(), history)
    assert not verdict.is_linearizable
    assert verdict.order == tuple(history[:3])
    assert verdict.state == "y"


def test_no_configuration_is_looked_at_twice() -> None:
    """Of 12 writes at once there are 479 million orders, and few sets with a last one each."""
    history = [Operation(str(n), 0, 100, "ok") for n in range(12)]
    never = Operation(READ, 0, 100, "never written")
    verdict = check(Register(), [*history, never])
    assert not verdict.is_linearizable
    assert verdict.configurations <= 12 * 2**11 + 1


def test_a_search_without_an_end_gives_up_undecided() -> None:
    history = [Operation(str(n), 0, 100, "ok") for n in range(14)]
    never = Operation(READ, 0, 100, "never written")
    with pytest.raises(SearchTooLarge, match="15 calls: undecided after 1000"):
        check(Register(), [*history, never], limit=1000)


def test_a_problem_is_shown_with_the_calls_of_its_job_alone() -> None:
    lines = [
        Line("a", "c1", Enqueue("one"), 5_000, 8_000, "queued"),
        Line("a", "c2", Claim("w2/n"), 6_000, None, None),
        Line("a", "c1", Claim("w1/n"), 9_000, 12_000, Claimed(7)),
        Line("b", "c1", Enqueue("two"), 1_000, 2_000, "queued"),
    ]
    [problem] = problems_of_jobs(lines)
    title, _, first, second, third, _ = problem.splitlines()
    assert title.endswith("job a")
    assert first.split()[:4] == ["1", "0", "3", "c1"]
    assert second.endswith("-> unknown")
    assert third.split()[:3] == ["4", "7", "c1"]


def entry(job_id: str, begin: int, end: int, *, tier: int = 5, call: str = "") -> Moment:
    name = call or f"enqueue {job_id}"
    return Moment(job_id, tier, is_entry=True, call=name, position=0, invoked=begin, returned=end)


def taking(
    job_id: str, begin: int, end: int, *, position: int | None = 0, call: str = ""
) -> Moment:
    name = call or f"claim {job_id}"
    return Moment(
        job_id, 5, is_entry=False, call=name, position=position, invoked=begin, returned=end
    )


A, B = entry("a", 0, 5), entry("b", 10, 15)


@pytest.mark.parametrize(
    ("moments", "problems"),
    [
        ([A, B, taking("a", 20, 25), taking("b", 30, 35)], []),
        ([A, B, taking("b", 20, 25), taking("a", 30, 35)], ["b overtook a"]),
        ([A, B, taking("b", 20, 25), taking("a", 24, 35)], []),
        ([A, entry("b", 5, 15), taking("b", 20, 25), taking("a", 30, 35)], []),
        ([A, entry("b", 10, 15, tier=9), taking("b", 20, 25), taking("a", 30, 35)], []),
        (
            [A, B, taking("b", 20, 25, call="x"), taking("a", 20, 25, call="x", position=1)],
            ["b overtook a"],
        ),
        (
            [A, B, taking("b", 20, 25, call="x"), taking("a", 20, 25, call="x", position=None)],
            [],
        ),
        ([A, taking("a", 20, 25), taking("a", 30, 35, call="again")], ["a was taken twice"]),
        ([A, B, taking("a", 20, 25)], ["b was never taken"]),
        ([A, taking("a", 20, 25), taking("b", 20, 25)], ["b was never enqueued"]),
    ],
)
def test_the_order_of_jobs_is_judged_where_it_is_certain(
    moments: list[Moment], problems: list[str]
) -> None:
    """G5."""
    assert fifo.problems(moments) == problems
