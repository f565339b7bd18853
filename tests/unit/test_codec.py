"""Arguments and results as bytes: what is refused, what comes back unchanged."""

from __future__ import annotations

import dataclasses
import enum
import math
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
import pytest

from headrace.codec import ResultTooLarge, encode_arguments, encode_result, read
from headrace.errors import InvalidArguments, NotSerializable, PayloadTooLarge, UsageError
from headrace.json_codec import JSON
from headrace.json_values import DEPTH_LIMIT
from headrace.signature import Signature

decode_any = partial(read, JSON.decoder(Any))
plain_value = JSON.encoder(Any)
plain_arguments = JSON.arguments_encoder({})


@dataclasses.dataclass
class Box:
    content: object


class Packet(msgspec.Struct):
    content: object


class Colour(enum.StrEnum):
    RED = "red"


class Connection:
    pass


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        130775545883395173,
        2**53 + 1,
        2**63 - 1,
        -(2**63),
        2**64,
        10**200,
        1e308,
        5e-324,
        0.1 + 0.2,
        True,
        None,
        "",
        "line\nbreak \x00 \x7f ' \" \\ é 漢 😀 \u2028",
        [],
        {},
        [[], {}, [None]],
        {"": 1, "a.b": 2, "__proto__": {}, "__class__": "x"},
    ],
)
def test_plain_values_come_back_unchanged(value: object) -> None:
    # BC-60: no digit is lost, and [] stays a list.
    assert decode_any(encode_arguments(plain_arguments, {"value": value})) == {"value": value}
    assert decode_any(encode_result(plain_value, value)) == value


def test_whole_number_keys_come_back_as_annotated() -> None:
    async def count(tallies: dict[int, str]) -> dict[int, int]:
        raise AssertionError(tallies)

    signature: Signature[dict[int, int]] = Signature(count, JSON)
    payload = encode_arguments(plain_arguments, {"tallies": {1: "a", -2: "b"}})
    assert signature.decode(payload) == ((), {"tallies": {1: "a", -2: "b"}})
    assert signature.decode_result(encode_result(plain_value, {3: 4})) == {3: 4}


def test_negative_zero_keeps_its_sign() -> None:
    assert math.copysign(1, decode_any(encode_arguments(plain_arguments, {"x": -0.0}))["x"]) == -1


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (math.nan, "args.value"),
        (math.inf, "args.value"),
        ([1.0, -math.inf], "args.value[1]"),
        ((0.5, (math.nan,)), "args.value[1][0]"),
        ({"a": {"b": math.nan}}, "args.value.a.b"),
        (Box([math.nan]), "args.value.content[0]"),
        (Packet({"x": math.inf}), "args.value.content.x"),
        (b"raw", "args.value"),
        (bytearray(b"raw"), "args.value"),
        (memoryview(b"raw"), "args.value"),
        ({"file": [b"raw"]}, "args.value.file[0]"),
        (Box(b"raw"), "args.value.content"),
        ({b"raw": 1}, "args.value"),
        ({True: "a"}, "args.value"),
        ({1.5: "a"}, "args.value"),
        (10**300, "args.value"),
        ({"a": [{None: 1}]}, "args.value.a[0]"),
        ({(1, 2): 1}, "args.value"),
        ({math.nan: 1}, "args.value"),
        ({uuid.UUID(int=1): 1}, "args.value"),
        (Connection(), "args.value"),
        ({"user": {"db": Connection()}}, "args.value.user.db"),
        ([1, Connection()], "args.value[1]"),
        (Box(Connection()), "args.value.content"),
        (Box, "args.value"),
        (Box(Packet), "args.value.content"),
        (print, "args.value"),
        (1 + 2j, "args.value"),
        (ValueError("x"), "args.value"),
        (range(3), "args.value"),
        (iter([]), "args.value"),
        (..., "args.value"),
        (msgspec.UNSET, "args.value"),
        ("\ud800", "args.value"),
        (["fine", "\udfff"], "args.value[1]"),
        (Box({"deep": "\ud800"}), "args.value.content.deep"),
        ({"\ud800": 1}, "args.value"),
        pytest.param(10**5000, "args.value", id="huge"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_its_path(value: object, path: str) -> None:
    with pytest.raises(NotSerializable) as caught:
        encode_arguments(plain_arguments, {"fine": 1, "value": value})
    message = str(caught.value)
    assert message.startswith((path + " ", path + "="))
    message.encode()  # a message that can't be encoded could not be logged


def test_a_path_with_a_broken_key_can_still_be_shown() -> None:
    with pytest.raises(NotSerializable) as caught:
        encode_arguments(plain_arguments, {"x": {"\ud800": Connection()}})
    assert str(caught.value).encode().startswith(rb"args.x.\ud800 is a Connection")


def test_the_result_is_named_as_such() -> None:
    with pytest.raises(NotSerializable, match=r"^result\.rows\[1\] is bytes"):
        encode_result(plain_value, {"rows": [1, b"x"]})


def test_values_up_to_the_depth_limit_come_back() -> None:
    # The arguments by name are the outermost level.
    value = nested(DEPTH_LIMIT)
    assert decode_any(encode_arguments(plain_arguments, {"value": value}))["value"] == value


@pytest.mark.parametrize("depth", [DEPTH_LIMIT + 1, 2_000, 100_000])
def test_deeper_values_are_refused(depth: int) -> None:
    with pytest.raises(NotSerializable, match="over 64 deep"):
        encode_arguments(plain_arguments, {"value": nested(depth)})


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(NotSerializable, match="over 64 deep"):
        encode_arguments(plain_arguments, {"value": loop})


def test_arguments_of_exactly_the_limit_are_accepted() -> None:
    limit = 1024 * 1024
    overhead = len(encode_arguments(plain_arguments, {"text": ""}))
    assert len(encode_arguments(plain_arguments, {"text": "x" * (limit - overhead)})) == limit
    with pytest.raises(PayloadTooLarge, match=r"1,048,577 bytes.*1,048,576"):
        encode_arguments(plain_arguments, {"text": "x" * (limit - overhead + 1)})


def test_the_limit_counts_bytes_and_not_characters() -> None:
    with pytest.raises(PayloadTooLarge):
        encode_arguments(plain_arguments, {"text": "漢" * 400_000})


def test_a_result_over_the_limit_says_what_to_do() -> None:
    with pytest.raises(ResultTooLarge, match="store the data elsewhere"):
        encode_result(plain_value, "x" * (1024 * 1024))


def signature_of(function: Callable[..., Any]) -> Signature[Any]:
    return Signature(function, JSON)


async def mixed(first: int, /, second: str, *, third: float = 0.5) -> None: ...


async def typed(
    *,
    when: datetime,
    day: date,
    span: timedelta,
    price: Decimal,
    colour: Colour,
    ids: list[uuid.UUID],
) -> None: ...


async def grown(numbers: list[int] = []) -> None:  # noqa: B006 (as users write it)
    ...


def test_positional_only_arguments_come_back_positional() -> None:
    signature = signature_of(mixed)
    bound = signature.bind((1, "b"), {"third": 2.0})
    assert signature.decode(encode_arguments(plain_arguments, bound)) == (
        (1,),
        {"second": "b", "third": 2.0},
    )


def test_a_default_is_left_to_the_handler() -> None:
    assert signature_of(grown).decode(b"{}") == ((), {})


def test_annotated_types_come_back_as_annotated() -> None:
    arguments = {
        "when": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "span": timedelta(days=1, seconds=2.5),
        "price": Decimal("0.10"),
        "colour": Colour.RED,
        "ids": [uuid.UUID(int=1)],
    }
    assert signature_of(typed).decode(encode_arguments(plain_arguments, arguments)) == (
        (),
        arguments,
    )


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((1,), {}),
        ((1, "b", 2.0), {}),
        ((1, "b"), {"second": "c"}),
        ((1, "b"), {"fourth": 1}),
        ((), {"first": 1, "second": "b"}),
    ],
)
def test_arguments_that_do_not_fit_name_the_function(
    args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    with pytest.raises(InvalidArguments, match=r"test_codec\.mixed"):
        signature_of(mixed).bind(args, kwargs)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[",
        b"[]",
        b"null",
        b"{",
        b"\xff\xfe",
        b"\x80\x04\x95",
        b'{"first":1}',
        b'{"first":"1","second":"b"}',
        b'{"first":NaN,"second":"b"}',
        b'{"first":1,"second":"b","extra":1}',
        b'{"first":1e999,"second":"b"}',
        b'{"first":1,"second":"\\ud800"}',
        b'{"first":' + b"9" * 5000 + b',"second":"b"}',
        b"[" * 100_000,
    ],
)
def test_a_payload_that_does_not_fit_raises_one_kind_of_error(payload: bytes) -> None:
    # RELIABILITY §5 36 to 41: the worker makes a dead letter of it.
    with pytest.raises((msgspec.MsgspecError, RecursionError, UnicodeDecodeError)):
        signature_of(mixed).decode(payload)


async def star(*args: int) -> None: ...
async def stars(**kwargs: int) -> None: ...
async def opaque(connection: Connection | int) -> None: ...
async def opaque_result() -> Connection | int:
    return 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (star, "list or dict parameter"),
        (stars, "list or dict parameter"),
        (opaque, "parameter 'connection'"),
        (opaque_result, "its return value"),
    ],
)
def test_what_cannot_be_stored_is_refused_when_declared(
    function: Callable[..., Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        signature_of(function)


def test_an_annotation_that_cannot_be_resolved_says_where_to_import_it() -> None:
    async def handler(value: int) -> None: ...

    handler.__annotations__["value"] = "Nowhere"
    with pytest.raises(UsageError, match="import it at module level"):
        signature_of(handler)
