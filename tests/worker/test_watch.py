"""The watch on the event loop tells what blocks it; RELIABILITY §3 11 and 12."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headrace.events import LoopBlocked, WorkerEvent
from headrace.guard import Guard
from headrace.worker.watch import LoopWatch
from tests.support.until import patience, until

WITHIN_S = 20.0


class Told:
    """Keeps the events, and wakes whoever waits for the next one."""

    def __init__(self) -> None:
        self.events: list[LoopBlocked] = []
        self.has_one = threading.Event()

    def __call__(self, event: WorkerEvent) -> None:
        assert isinstance(event, LoopBlocked)
        self.events.append(event)
        self.has_one.set()


@contextmanager
def watching(told: Told, *, interval_s: float = 0.01) -> Iterator[LoopWatch]:
    watch = LoopWatch(worker="w", emit=told, guard=Guard(), interval_s=interval_s)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()
        watch.join(WITHIN_S)


def block_the_loop_until_it_is_told(told: Told) -> None:
    told.has_one.clear()
    assert told.has_one.wait(WITHIN_S), "nothing was told of a blocked loop"


async def test_a_blocked_loop_is_told_once_with_what_blocks_it() -> None:
    told = Told()
    # A lag is seen until the next question is answered, longer than a busy machine takes to look.
    with watching(told, interval_s=0.5) as watch:
        for count in (1, 2):
            block_the_loop_until_it_is_told(told)
            assert watch.stalled_s >= 0.5
            await until(lambda: watch.lag_s >= 0.5, within=WITHIN_S, what="the lag is measured")
            await until(lambda: watch.lag_s < 0.5, within=WITHIN_S, what="the loop answers again")
            assert len(told.events) == count
    event = told.events[0]
    assert event.worker == "w"
    assert event.blocked_ms >= 500
    outer, inner = "run_forever", "block_the_loop_until_it_is_told"
    assert event.stack.index(outer) < event.stack.index(inner)


async def test_a_block_that_lasts_is_told_once() -> None:
    told = Told()
    with watching(told) as watch:
        block_the_loop_until_it_is_told(told)
        told.has_one.clear()
        while watch.stalled_s < 1.5:
            pass
        assert len(told.events) == 1
        await until(lambda: watch.stalled_s == 0, within=WITHIN_S)


async def test_a_long_stack_is_cut_at_its_outer_end() -> None:
    told = Told()

    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            block_the_loop_until_it_is_told(told)

    def descend(levels: int) -> None:  # alternates, or the frames would be shown as repetitions
        if levels:
            ascend(levels - 1)
        else:
            deep(3)

    def ascend(levels: int) -> None:
        descend(levels)

    with watching(told) as watch:
        descend(60)
        await until(lambda: watch.stalled_s == 0, within=WITHIN_S)
    assert len(told.events[0].stack) == 4_000
    assert "block_the_loop_until_it_is_told" in told.events[0].stack


async def test_a_loop_that_turns_is_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked_s = patience(1)  # for a moment a busy machine runs no loop
    monkeypatch.setattr("headrace.worker.watch.BLOCKED_S", blocked_s)
    told = Told()
    lags = set()
    with watching(told) as watch:

        def answered() -> int:
            lags.add(watch.lag_s)
            return len(lags) > 10

        await until(answered, within=WITHIN_S, what="it was asked ten times")
        assert watch.stalled_s < blocked_s
    assert max(lags) < blocked_s
    assert told.events == []


async def test_it_can_be_stopped_while_the_loop_is_blocked() -> None:
    told = Told()
    with watching(told) as watch:
        block_the_loop_until_it_is_told(told)
        watch.stop()
        watch.join(WITHIN_S)  # without a turn of the loop
        assert "headrace-watch" not in {thread.name for thread in threading.enumerate()}


def test_it_ends_when_its_loop_was_closed() -> None:
    told = Told()

    async def leave() -> None:
        LoopWatch(worker="w", emit=told, guard=Guard(), interval_s=0.01).start()

    asyncio.run(leave())
    watches = [thread for thread in threading.enumerate() if thread.name == "headrace-watch"]
    for thread in watches:
        thread.join(WITHIN_S)
        assert not thread.is_alive()
    assert told.events == []
