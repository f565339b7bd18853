"""Long integers are refused where they are passed, wherever they stand in a value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import pytest

from headrace import App, FailReason, InvalidOption, JobFailed, NotSerializable, UsageError, Worker
from headrace.codec import encode_arguments, encode_chunk, encode_result, read
from headrace.context import Context, Silent
from headrace.job import Claim, ClaimedJob
from headrace.json_codec import JSON
from headrace.signature import Signature
from tests.support.until import patience

decode_any = partial(read, JSON.decoder(Any))
plain_value = JSON.encoder(Any)
plain_arguments = JSON.arguments_encoder({})

LONG = 10**300
LONGEST = 10**300 - 1


@dataclass
class Point:
    x: Any


class Pair(msgspec.Struct):
    x: Any


PLACES: list[Callable[[int], Any]] = [
    lambda number: number,
    lambda number: [number],
    lambda number: [1, number, 2],
    lambda number: ["a", None, number, True],
    lambda number: (1.5, [number]),
    lambda number: {number},
    lambda number: {"a": number},
    lambda number: {"a": {"b": [1, number]}},
    lambda number: {number: 1},
    lambda number: Point(number),
    lambda number: Pair([number]),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_of_over_300_digits_is_refused_everywhere(
    place: Callable[[int], Any], sign: int
) -> None:
    encoders: list[Callable[[Any], bytes]] = [
        lambda value: encode_arguments(plain_arguments, {"a": value}),
        partial(encode_result, plain_value),
        partial(encode_chunk, plain_value),
    ]
    for encode in encoders:
        with pytest.raises(NotSerializable, match="300 digits"):
            encode(place(sign * LONG))
        with pytest.raises(NotSerializable, match="300 digits"):
            encode(place(sign * 10**5000))
        # What is accepted can be read back, also as a float.
        decode_any(encode(place(sign * LONGEST)))


def test_the_longest_integer_can_be_read_as_a_float() -> None:
    def handler(values: list[float]) -> None: ...

    payload = encode_arguments(plain_arguments, {"values": [LONGEST]})
    assert Signature(handler, JSON).decode(payload)[1] == {"values": [float(LONGEST)]}


async def test_a_result_with_too_long_an_integer_fails_its_job_for_good(app: App[None]) -> None:
    @app.task(name="long")
    async def long() -> Any:
        return LONG

    handle = await long.enqueue()
    worker = Worker(app, burst=True)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(worker.run())
        with pytest.raises(JobFailed, match="300 digits") as caught:
            await handle.result(timeout=patience(15))
        await running
    assert caught.value.reason == FailReason.PERMANENT


@pytest.mark.parametrize("fraction", [10**400, -(10**400), float("nan"), float("inf"), True, "1"])
def test_a_progress_that_is_no_fraction_is_refused(fraction: Any) -> None:
    job = ClaimedJob("x", "q", "t", b"{}", Claim(1, "a/b"), 0, 0, 0, 0, b"")
    context: Context[None] = Context(
        job,
        max_attempts=1,
        timeout=None,
        headers={},
        state=None,
        reporter=Silent(),
        encode=plain_value,
    )
    with pytest.raises(InvalidOption, match="progress"):
        context.progress(fraction)


def test_data_that_is_nested_too_deep_is_one_kind_of_error() -> None:
    def handler(value: Any) -> None: ...

    deep = b"[" * 100_000
    for look in (
        lambda: decode_any(deep),
        lambda: Signature(handler, JSON).decode(b'{"value":' + deep),
        lambda: Signature(handler, JSON).decode_result(deep),
    ):
        with pytest.raises(msgspec.DecodeError):
            look()


def test_an_error_shows_a_short_path() -> None:
    value: Any = object()
    for _ in range(50):
        value = {"k" * 5000: value}
    with pytest.raises(UsageError) as caught:
        encode_arguments(plain_arguments, {"a": value})
    assert len(str(caught.value)) < 700
