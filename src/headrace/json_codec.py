"""The codec of JSON, by msgspec, checked on both ends.

msgspec would write NaN as null and bytes as base64 without a word, so values are walked first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from headrace.codec import Decode
from headrace.errors import NotSerializable
from headrace.plain import cut, shown

DEPTH_LIMIT = 64
DIGITS_LIMIT = 300
PATH_LIMIT = 200
"""Most characters of a value's path that an error shows."""

_INTEGER_LIMIT: int = 10**DIGITS_LIMIT

_SCALARS = frozenset({str, int, bool, type(None)})
_encode = msgspec.json.Encoder(decimal_format="string").encode
_ENCODE_ERRORS = (TypeError, ValueError, OverflowError, RecursionError)


class JsonCodec(msgspec.Struct, frozen=True):
    """Stores values as JSON.

    It refuses what has no JSON form, NaN and infinities, integers of over 300 digits, and values
    that are nested over 64 deep.
    """

    name: ClassVar[str] = "JSON"

    def encode(self, value: object, path: str) -> bytes:
        """Return a result or a piece of output, see `Codec.encode`."""
        if type(value) not in _SCALARS or type(value) is int:
            _check(value, path, 1)
        try:
            return _encode(value)
        except _ENCODE_ERRORS as error:
            raise _refusal(value, path, error) from error

    def encode_arguments(self, arguments: Mapping[str, object]) -> bytes:
        """Return arguments by name, see `Codec.encode_arguments`."""
        for name, value in arguments.items():
            if type(value) not in _SCALARS:
                _check(value, f"args.{name}", 1)
            elif type(value) is int and not -_INTEGER_LIMIT < value < _INTEGER_LIMIT:
                _check_integer(value, f"args.{name}")
        try:
            return _encode(arguments)
        except _ENCODE_ERRORS as error:
            raise _refusal(arguments, "args", error) from error

    def decoder(self, annotation: Any) -> Decode:
        """Return what reads values of a type, see `Codec.decoder`."""
        return msgspec.json.Decoder(annotation).decode


JSON = JsonCodec()


def _refusal(value: object, path: str, error: Exception) -> NotSerializable:
    where = _short(_culprit(value, path))
    return NotSerializable(f"{where} can't be encoded as JSON: {cut(str(error))}")


def _culprit(value: object, path: str) -> str:
    """Return the path of the innermost part that can't be encoded."""
    for where, part in _parts(value, path):
        try:
            _encode(part)
        except _ENCODE_ERRORS:
            return _culprit(part, where)
    return path


def _parts(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield _at(path, key), part
    elif isinstance(value, list | tuple | set | frozenset):
        for index, part in enumerate(value):
            yield f"{path}[{index}]", part
    else:
        for name in _field_names(value) or ():
            yield f"{path}.{name}", getattr(value, name, None)


def _short(path: str) -> str:
    return path if len(path) <= PATH_LIMIT else f"{path[:PATH_LIMIT]}…"


def _at(path: str, key: object) -> str:
    return f"{path}.{cut(key) if isinstance(key, str) else shown(key)}"


def _check_integer(value: int, path: str) -> None:
    if not -_INTEGER_LIMIT < value < _INTEGER_LIMIT:
        raise NotSerializable(
            f"{_short(path)} is an integer of over {DIGITS_LIMIT} digits, which may not be read "
            "back: pass it as a string"
        )


def _check(value: object, path: str, depth: int) -> None:
    """Raise `NotSerializable` naming the first part that JSON can't hold faithfully."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotSerializable(
                f"{_short(path)}={shown(value)} has no JSON form: pass None or a string"
            )
        return
    if type(value) is int:
        _check_integer(value, path)
        return
    if depth > DEPTH_LIMIT:
        raise NotSerializable(f"{_short(path)} is nested over {DEPTH_LIMIT} deep: flatten the data")
    if isinstance(value, bytes | bytearray | memoryview):
        raise NotSerializable(
            f"{_short(path)} is {type(value).__name__}, which JSON can't hold: "
            "encode it as text first, for example with base64"
        )
    _check_parts(value, path, depth + 1)


def _check_parts(value: object, path: str, depth: int) -> None:
    if isinstance(value, Mapping):
        _check_entries(value, path, depth)
    elif isinstance(value, list | tuple | set | frozenset):
        # One pass in C tells whether a long list of plain values needs no walk.
        kinds = set(map(type, value))
        if not kinds <= _SCALARS or (int in kinds and _has_too_long(value, kinds)):
            for index, part in enumerate(value):
                if type(part) not in _SCALARS or type(part) is int:
                    _check(part, f"{path}[{index}]", depth)
    else:
        names = _field_names(value)
        if names is None:
            _check_other(value, path)
        for name in names or ():
            _check(getattr(value, name, None), f"{path}.{name}", depth)


def _check_entries(value: Mapping[Any, object], path: str, depth: int) -> None:
    for key, part in value.items():
        # An annotation such as dict[int, str] brings whole numbers back; other keys would stay
        # text.
        if type(key) is int:
            _check_integer(key, f"{path}.key")
        elif not isinstance(key, str):
            raise NotSerializable(
                f"{_short(path)} has the key {shown(key)}, but JSON's keys are strings and it "
                "would come back as one: convert it first"
            )
        if type(part) not in _SCALARS:
            _check(part, _at(path, key), depth)
        elif type(part) is int and not -_INTEGER_LIMIT < part < _INTEGER_LIMIT:
            _check_integer(part, _at(path, key))


def _has_too_long(values: Iterable[Any], kinds: set[type]) -> bool:
    if not kinds <= {int, bool}:
        values = [value for value in values if type(value) is int]
    longest: int = max(max(values), -min(values))
    return longest >= _INTEGER_LIMIT


def _field_names(value: object) -> Iterable[str] | None:
    """Return the fields of a struct, dataclass or attrs instance, None for anything else."""
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [field.name for field in dataclasses.fields(value)]
    attrs = getattr(type(value), "__attrs_attrs__", None)
    return None if attrs is None else [attribute.name for attribute in attrs]


def _check_other(value: object, path: str) -> None:
    try:
        _encode(value)
    except _ENCODE_ERRORS as error:
        raise NotSerializable(
            f"{_short(path)} is a {type(value).__qualname__}, which can't be encoded as JSON "
            f"({cut(str(error))}): "
            "pass plain data such as an id"
        ) from error
