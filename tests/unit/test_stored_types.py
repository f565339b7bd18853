"""What an annotation lets through: bytes, paths, keys that are no text, wherever they stand."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar

import attrs
import msgspec
import pytest

from headrace import InvalidOption, NotSerializable
from headrace.codec import encode_arguments, encode_result
from headrace.conversions import conversions_of
from headrace.json_codec import JSON, JsonCodec
from headrace.signature import Signature

T = TypeVar("T")
RAW = b"\xff\x00raw"
UserId = NewType("UserId", int)


class Size(Enum):
    SMALL = 1
    LARGE = 2


@dataclass
class Blob:
    name: str
    content: bytes


@attrs.define
class Parcel:
    label: Path
    weight: Decimal


class Packet(msgspec.Struct, rename="camel", tag=True):
    raw_bytes: bytes
    next_one: Packet | None = None


class Signal(msgspec.Struct, tag=True):
    level: int


class Row(NamedTuple):
    key: bytes
    at: Path


class Entry(TypedDict, total=False):
    blob: bytes
    size: int


@dataclass
class Box(Generic[T]):
    content: T


class Money:
    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(self.cents)


class Euro(Money):
    pass


def cents(money: Money) -> int:
    return money.cents


OWN = JsonCodec(conversions_of({Money: cents}, {Money: Money}))


def signature_for(annotation: Any, codec: JsonCodec = JSON) -> Signature[Any]:
    def handler(value: object) -> object:
        raise AssertionError(value)

    handler.__annotations__.update({"value": annotation, "return": annotation})
    return Signature(handler, codec)


def there_and_back(annotation: Any, value: object, codec: JsonCodec = JSON) -> object:
    """Return what becomes of a value as an argument; as a result it must become the same."""
    signature = signature_for(annotation, codec)
    _, arguments = signature.decode(encode_arguments(signature.encode, {"value": value}))
    result = signature.decode_result(encode_result(signature.encode_result, value))
    assert result == arguments["value"]
    return arguments["value"]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (bytes, RAW),
        (bytes, b""),
        (bytearray, bytearray(RAW)),
        (bytes | None, RAW),
        (bytes | None, None),
        (bytes | int, RAW),
        (bytes | int, 3),
        (list[bytes], [RAW, b""]),
        (set[bytes], {RAW}),
        (frozenset[bytes], frozenset({RAW})),
        (tuple[str, bytes], ("a", RAW)),
        (tuple[bytes, ...], (RAW, RAW)),
        (dict[str, bytes], {"a": RAW}),
        (dict[bytes, int], {RAW: 1}),
        (dict[str, list[bytes | None]], {"a": [RAW, None]}),
        (Annotated[bytes, msgspec.Meta(max_length=10, title="raw")], RAW),
        (Blob, Blob("a", RAW)),
        (list[Blob], [Blob("a", RAW)]),
        (Parcel, Parcel(Path("/a/b"), Decimal("1.10"))),
        (Packet, Packet(RAW, Packet(b""))),
        (Packet | Signal, Packet(RAW)),
        (Packet | Signal, Signal(3)),
        (Row, Row(RAW, Path("x"))),
        (Entry, {"blob": RAW, "size": 1}),
        (Entry, {}),
        (Box[bytes], Box(RAW)),
        (Path, Path("/srv/data/été.csv")),
        (PurePosixPath, PurePosixPath("a/b")),
        (PureWindowsPath, PureWindowsPath("c:\\a")),
        (Path | None, None),
        (list[Path], [Path("a"), Path("b")]),
        (ipaddress.IPv4Address, ipaddress.IPv4Address("10.0.0.1")),
        (ipaddress.IPv6Network, ipaddress.IPv6Network("2001:db8::/32")),
        (datetime, datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
        (date, date(2026, 1, 2)),
        (time, time(3, 4, 5)),
        (timedelta, timedelta(days=1, microseconds=1)),
        (Decimal, Decimal("0.1000")),
        (uuid.UUID, uuid.UUID(int=1)),
        (Size, Size.LARGE),
        (Literal["a", 1], "a"),
        (UserId, UserId(3)),
        (dict[uuid.UUID, int], {uuid.UUID(int=1): 1}),
        (dict[date, int], {date(2026, 1, 2): 1}),
        (dict[float, str], {1.5: "a"}),
        (dict[Size, str], {Size.LARGE: "a"}),
        (object, {"a": [1, None]}),
        (dict[str, object], {"a": [1, None]}),
    ],
)
def test_what_an_annotation_names_comes_back_as_itself(annotation: Any, value: object) -> None:
    found = there_and_back(annotation, value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (str, RAW, "args.value is bytes"),
        (int | None, RAW, "args.value is bytes"),
        (Any, RAW, "args.value is bytes"),
        (object, Path("a"), "args.value is a PosixPath"),
        (bytes, [RAW], "args.value[0] is bytes"),
        (list[bytes], [[RAW]], "args.value[0][0] is bytes"),
        (tuple[bytes, str], (RAW, RAW), "args.value[1] is bytes"),
        (tuple[bytes, str], (RAW, "a", RAW), "args.value[2] is bytes"),
        (dict[str, bytes], {"a": {"b": RAW}}, "args.value.a.b is bytes"),
        (dict[str, bytes], {1.5: RAW}, "args.value has the key 1.5"),
        (dict[uuid.UUID, int], {1.5: 1}, "args.value has the key 1.5"),
        (dict[float, int], {float("nan"): 1}, "args.value has the key nan"),
        (Blob, Blob(RAW, RAW), "args.value.name is bytes"),  # type: ignore[arg-type]  # the point
        (Entry, {"blob": RAW, "other": RAW}, "args.value.other is bytes"),
        (Box[bytes], Box([RAW]), "args.value.content[0] is bytes"),
        (Parcel, Parcel(Path("a"), 1.5 * float("inf")), "args.value.weight=inf"),  # type: ignore[arg-type]  # the point
        (list[Path], [Path("\udcff")], "args.value[0] can't be encoded as JSON"),
    ],
)
def test_what_would_not_come_back_is_refused_by_its_path(
    annotation: Any, value: object, path: str
) -> None:
    signature = signature_for(annotation)
    with pytest.raises(NotSerializable) as caught:
        signature.encode({"value": value})
    assert str(caught.value).startswith(path)


def test_plain_data_pass_for_what_they_stand_for() -> None:
    # So that the command line and other languages can send them.
    signature = signature_for(dict[str, bytes | None])
    payload = signature.encode({"value": {"a": "/wA=", "b": None}})
    assert signature.decode(payload)[1] == {"value": {"a": b"\xff\x00", "b": None}}
    assert signature_for(Path).encode({"value": "a/b"}) == b'{"value":"a/b"}'


def test_a_value_that_holds_itself_is_refused_where_a_type_is_said() -> None:
    packet = Packet(b"")
    packet.next_one = packet
    with pytest.raises(NotSerializable, match="over 64 deep"):
        signature_for(Packet).encode({"value": packet})


def test_msgspec_constraints_of_an_annotation_hold() -> None:
    signature = signature_for(Annotated[int, msgspec.Meta(gt=0)])
    with pytest.raises(msgspec.ValidationError, match="Expected `int` >= 1"):
        signature.decode(b'{"value":0}')


@pytest.mark.parametrize("annotation", [Path, ipaddress.IPv4Address])
@pytest.mark.parametrize("stored", [b'{"value":1}', b'{"value":["a"]}'])
def test_what_is_no_text_is_no_path_and_no_address(annotation: Any, stored: bytes) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `str`.*\$\.value"):
        signature_for(annotation).decode(stored)


def test_a_text_that_is_no_address_says_so() -> None:
    with pytest.raises(
        msgspec.ValidationError, match=r"Expected 4 octets in 'ten' - at `\$\.value\[1\]`"
    ):
        signature_for(list[ipaddress.IPv4Address]).decode(b'{"value":["10.0.0.1", "ten"]}')


# Types of the app's own


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Money, Money(5)),
        (Money | None, None),
        (list[Money], [Money(1), Money(2)]),
        (dict[str, Money | None], {"a": Money(1), "b": None}),
        (Box[Money], Box(Money(7))),
    ],
)
def test_types_of_the_apps_own_come_back(annotation: Any, value: object) -> None:
    assert there_and_back(annotation, value, OWN) == value


def test_a_derived_value_is_stored_by_its_base() -> None:
    assert there_and_back(Money, Euro(5), OWN) == Money(5)


def test_a_value_of_an_own_type_is_refused_where_no_type_is_said() -> None:
    with pytest.raises(NotSerializable, match=r"args\.value\.a is a Money.*annotate the parameter"):
        signature_for(dict[str, Any], OWN).encode({"value": {"a": Money(1)}})


def broken(_value: object) -> object:
    raise KeyError("no such currency")


@pytest.mark.parametrize(
    ("encode", "words"),
    [
        (broken, "the encoder of Money raised KeyError: 'no such currency'"),
        (lambda _: RAW, "what the encoder of Money returned is bytes"),
        (lambda _: {"rate": float("nan")}, "what the encoder of Money returned.rate=nan"),
    ],
)
def test_an_encoder_that_fails_is_told_with_the_path(
    encode: Callable[[Money], Any], words: str
) -> None:
    codec = JsonCodec(conversions_of({Money: encode}, {Money: Money}))
    with pytest.raises(NotSerializable) as caught:
        signature_for(list[Money], codec).encode({"value": [Money(1)]})
    assert str(caught.value).startswith("args.value[0] can't be encoded as JSON: ")
    assert words in str(caught.value)


def test_a_decoder_that_fails_is_one_kind_of_error() -> None:
    codec = JsonCodec(conversions_of({Money: cents}, {Money: broken}))
    with pytest.raises(msgspec.ValidationError, match=r"decoder of Money raised KeyError.*\[0\]"):
        signature_for(list[Money], codec).decode(b'{"value":[1]}')


def test_a_decoder_that_returns_something_else_is_told() -> None:
    codec = JsonCodec(conversions_of({Money: cents}, {Money: str}))
    with pytest.raises(msgspec.ValidationError, match="Expected `Money`, got `str`"):
        signature_for(Money, codec).decode(b'{"value":1}')


async def later(value: object) -> object:
    return value


@pytest.mark.parametrize(
    ("encoders", "decoders", "words"),
    [
        ({Money: cents}, None, "Money is missing in decoders: give both"),
        (None, {Money: Money}, "Money is missing in encoders: give both"),
        ([Money], {Money: Money}, "pass a dict of functions by type"),
        ({"Money": cents}, {Money: Money}, "its key must be a class"),
        ({Money: 5}, {Money: Money}, "pass a plain function of one value"),
        ({Money: later}, {Money: Money}, "pass a plain function of one value"),
        ({datetime: str}, {datetime: str}, "datetime is stored as it is"),
        ({Blob: str}, {Blob: str}, "Blob is stored as it is"),
        ({object: str}, {object: str}, "object is stored as it is"),
    ],
)
def test_conversions_that_can_not_be_used_are_refused(
    encoders: Any, decoders: Any, words: str
) -> None:
    with pytest.raises(InvalidOption, match=words):
        conversions_of(encoders, decoders)
