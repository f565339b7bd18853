"""Plain values as JSON, by msgspec: what would not come back as it is, is refused by its path.

msgspec would write NaN as null and bytes as base64 without a word, so values are walked first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from headrace.errors import NotSerializable
from headrace.plain import cut, shown

DEPTH_LIMIT = 64
DIGITS_LIMIT = 300
PATH_LIMIT = 200
"""Most characters of a value's path that an error shows."""

_INTEGER_LIMIT: int = 10**DIGITS_LIMIT

_SCALARS = frozenset({str, int, bool, type(None)})
_ENCODE_ERRORS = (TypeError, ValueError, OverflowError, RecursionError)


def encode_by(to_plain: Callable[[Any], Any] | None) -> Callable[[object], bytes]:
    """Return what writes values, and what it can't write as ``to_plain`` makes it."""
    return msgspec.json.Encoder(decimal_format="string", enc_hook=to_plain).encode


_encode = encode_by(None)


def encode(value: object, path: str) -> bytes:
    """Encode a value of which no type is said.

    Raises:
        NotSerializable: a part would not come back as it is; the message has its path.
    """
    if type(value) not in _SCALARS or type(value) is int:
        check(value, path, 1)
    try:
        return _encode(value)
    except _ENCODE_ERRORS as error:
        raise _refusal(_encode, value, path, error) from error


def encode_arguments(arguments: Mapping[str, object]) -> bytes:
    """Encode arguments by name, as `encode` does."""
    for name, value in arguments.items():
        if type(value) not in _SCALARS:
            check(value, f"args.{name}", 1)
        elif type(value) is int and not -_INTEGER_LIMIT < value < _INTEGER_LIMIT:
            _check_integer(value, f"args.{name}")
    try:
        return _encode(arguments)
    except _ENCODE_ERRORS as error:
        raise _refusal(_encode, arguments, "args", error) from error


def written(write: Callable[[object], bytes], value: object, path: str) -> bytes:
    """Return a value that was checked as ``write`` of `encode_by` encodes it.

    Raises:
        NotSerializable: it can't; the message has the path of the innermost part.
    """
    try:
        return write(value)
    except _ENCODE_ERRORS as error:
        raise _refusal(write, value, path, error) from error


def _refusal(
    write: Callable[[object], bytes], value: object, path: str, error: Exception
) -> NotSerializable:
    where = shortened(_culprit(write, value, path))
    return NotSerializable(f"{where} can't be encoded as JSON: {cut(str(error), 200)}")


def _culprit(write: Callable[[object], bytes], value: object, path: str) -> str:
    """Return the path of the innermost part that can't be encoded."""
    for where, part in _parts(value, path):
        try:
            write(part)
        except _ENCODE_ERRORS:
            return _culprit(write, part, where)
    return path


def _parts(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield at(path, key), part
    elif isinstance(value, list | tuple | set | frozenset):
        for index, part in enumerate(value):
            yield f"{path}[{index}]", part
    else:
        for name in _field_names(value) or ():
            yield f"{path}.{name}", getattr(value, name, None)


def shortened(path: str) -> str:
    """Return a path as an error shows it."""
    return path if len(path) <= PATH_LIMIT else f"{path[:PATH_LIMIT]}…"


def at(path: str, key: object) -> str:
    """Return the path of what lies under a key."""
    return f"{path}.{cut(key) if isinstance(key, str) else shown(key)}"


def _check_integer(value: int, path: str) -> None:
    if not -_INTEGER_LIMIT < value < _INTEGER_LIMIT:
        raise NotSerializable(
            f"{shortened(path)} is an integer of over {DIGITS_LIMIT} digits, which may not be read "
            "back: pass it as a string"
        )


def check(value: object, path: str, depth: int) -> None:
    """Raise `NotSerializable` naming the first part that JSON can't hold faithfully."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotSerializable(
                f"{shortened(path)}={shown(value)} has no JSON form: pass None or a string"
            )
        return
    if type(value) is int:
        _check_integer(value, path)
        return
    check_depth(path, depth)
    if isinstance(value, bytes | bytearray | memoryview):
        raise NotSerializable(
            f"{shortened(path)} is {type(value).__name__}, which would come back as text: annotate "
            "it so, or encode it as text first, for example with base64"
        )
    _check_parts(value, path, depth + 1)


def check_depth(path: str, depth: int) -> None:
    """Raise `NotSerializable` if something is nested deeper than can be read."""
    if depth > DEPTH_LIMIT:
        raise NotSerializable(
            f"{shortened(path)} is nested over {DEPTH_LIMIT} deep: flatten the data"
        )


def _check_parts(value: object, path: str, depth: int) -> None:
    if isinstance(value, Mapping):
        _check_entries(value, path, depth)
    elif isinstance(value, list | tuple | set | frozenset):
        # One pass in C tells whether a long list of plain values needs no walk.
        kinds = set(map(type, value))
        if not kinds <= _SCALARS or (int in kinds and _has_too_long(value, kinds)):
            for index, part in enumerate(value):
                if type(part) not in _SCALARS or type(part) is int:
                    check(part, f"{path}[{index}]", depth)
    else:
        names = _field_names(value)
        if names is None:
            _check_other(value, path)
        for name in names or ():
            check(getattr(value, name, None), f"{path}.{name}", depth)


def _check_entries(value: Mapping[Any, object], path: str, depth: int) -> None:
    for key, part in value.items():
        if not isinstance(key, str):
            check_key(key, path)
        if type(part) not in _SCALARS:
            check(part, at(path, key), depth)
        elif type(part) is int and not -_INTEGER_LIMIT < part < _INTEGER_LIMIT:
            _check_integer(part, at(path, key))


def check_key(key: object, path: str) -> None:
    """Raise `NotSerializable` for a key that would stay text.

    An annotation such as ``dict[int, str]`` brings whole numbers back.
    """
    if type(key) is int:
        _check_integer(key, f"{path}.key")
    elif not isinstance(key, str):
        raise NotSerializable(
            f"{shortened(path)} has the key {shown(key)}, but JSON's keys are strings and it would "
            "come back as one: convert it first"
        )


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
            f"{shortened(path)} is a {type(value).__qualname__}, which can't be encoded as JSON "
            f"({cut(str(error))}): pass plain data such as an id, or annotate the parameter or the "
            "result with its type if that can be stored"
        ) from error
