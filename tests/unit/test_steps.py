"""Coroutines of storages that block are run by hand."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest

from headrace.storage.steps import Ahead, HasWaited, at_once, sent


class Line:
    """Sends and reads, and notes the order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def call(self, name: str, *, fails: bool = False) -> str:
        self.done.append(f"send {name}")
        await sent()
        self.done.append(f"read {name}")
        if fails:
            raise ValueError(name)
        return name


async def _returning(value: int) -> int:
    return value


async def _raising(error: BaseException) -> None:
    raise error


def test_a_coroutine_that_never_stops_is_run_to_its_end() -> None:
    assert at_once(_returning(7)) == 7


def test_one_that_stops_after_sending_goes_on_at_once() -> None:
    line = Line()
    assert at_once(line.call("a")) == "a"
    assert line.done == ["send a", "read a"]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt()], ids=["error", "signal"])
def test_what_it_raises_comes_out(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        at_once(_raising(error))
    assert caught.value is error


def test_one_that_waits_for_a_loop_is_closed_and_named() -> None:
    ended = []

    async def wait() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(True)

    async def in_a_loop() -> None:
        with pytest.raises(HasWaited, match="wait"):
            at_once(wait())
        with pytest.raises(HasWaited, match="wait"):
            Ahead(wait())

    asyncio.run(in_a_loop())
    assert ended == [True, True]


def test_two_are_sent_before_the_first_is_read() -> None:
    line = Line()
    first, second = Ahead(line.call("a")), Ahead(line.call("b"))
    assert (first.result(), second.result()) == ("a", "b")
    assert line.done == ["send a", "send b", "read a", "read b"]


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    at_send: Ahead[None] = Ahead(_raising(ValueError("early")))
    at_read = Ahead(Line().call("late", fails=True))
    with pytest.raises(ValueError, match="early"):
        at_send.result()
    with pytest.raises(ValueError, match="late"):
        at_read.result()


def test_an_interrupted_send_is_not_held_back() -> None:
    with pytest.raises(KeyboardInterrupt):
        Ahead(_raising(KeyboardInterrupt()))


def test_what_ends_at_its_first_step_has_a_result_too() -> None:
    assert Ahead(_returning(7)).result() == 7


def test_nobody_needs_to_ask_for_a_result() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Ahead(_returning(7))
        Ahead(_raising(ValueError("early")))
        gc.collect()
    assert caught == []
