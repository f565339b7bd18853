"""Arguments and results to bytes and back: JSON by msgspec, checked on both ends.

msgspec would write NaN as null and bytes as base64 without a word, so values are walked first.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from headrace.errors import InvalidArguments, NotSerializable, PayloadTooLarge, UsageError
from headrace.job import CHUNK_LIMIT_BYTES, PAYLOAD_LIMIT_BYTES, RESULT_LIMIT_BYTES
from headrace.plain import cut, shown

DEPTH_LIMIT = 64
DIGITS_LIMIT = 300
PATH_LIMIT = 200
"""Most characters of a value's path that an error shows."""

_INTEGER_LIMIT: int = 10**DIGITS_LIMIT

_SCALARS = frozenset({str, int, bool, type(None)})
_encode = msgspec.json.Encoder(decimal_format="string").encode
_ENCODE_ERRORS = (TypeError, ValueError, OverflowError, RecursionError)
R = TypeVar("R")


class ResultTooLarge(ValueError):
    """A handler's encoded result is over 1 MiB."""


def encode_arguments(arguments: Mapping[str, object]) -> bytes:
    """Encode a call's arguments by name.

    Raises:
        NotSerializable: a value has no JSON form, is NaN or infinite, is an integer of over 300
            digits, or is nested over 64 deep.
        PayloadTooLarge: the result is over 1 MiB.
    """
    for name, value in arguments.items():
        if type(value) not in _SCALARS:
            _check(value, f"args.{name}", 1)
        elif type(value) is int and not -_INTEGER_LIMIT < value < _INTEGER_LIMIT:
            _check_integer(value, f"args.{name}")
    payload = _encoded(arguments, "args")
    if len(payload) > PAYLOAD_LIMIT_BYTES:
        raise PayloadTooLarge(
            f"the arguments are {len(payload):,} bytes encoded, the limit is "
            f"{PAYLOAD_LIMIT_BYTES:,}: store the data elsewhere and pass its key"
        )
    return payload


def encode_result(value: object) -> bytes:
    """Encode what a handler returned.

    Raises:
        NotSerializable: as for arguments.
        ResultTooLarge: it is over 1 MiB.
    """
    _check_one(value, "result")
    result = _encoded(value, "result")
    if len(result) > RESULT_LIMIT_BYTES:
        raise ResultTooLarge(
            f"the result is {len(result):,} bytes encoded, the limit is {RESULT_LIMIT_BYTES:,}: "
            "store the data elsewhere and return its key"
        )
    return result


def encode_chunk(value: object) -> bytes:
    """Encode a piece of output.

    Raises:
        NotSerializable: as for arguments.
        PayloadTooLarge: it is over 64 KiB.
    """
    _check_one(value, "chunk")
    chunk = _encoded(value, "chunk")
    if len(chunk) > CHUNK_LIMIT_BYTES:
        raise PayloadTooLarge(
            f"the piece of output is {len(chunk):,} bytes encoded, the limit is "
            f"{CHUNK_LIMIT_BYTES:,}: emit it in smaller pieces"
        )
    return chunk


def _encoded(value: object, path: str) -> bytes:
    try:
        return _encode(value)
    except _ENCODE_ERRORS as error:
        raise NotSerializable(
            f"{_short(_culprit(value, path))} can't be encoded as JSON: {cut(str(error))}"
        ) from error


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


def _check_one(value: object, path: str) -> None:
    if type(value) not in _SCALARS or type(value) is int:
        _check(value, path, 1)


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


class Signature(Generic[R]):
    """How a handler is called: binds a producer's arguments by name, decodes them for the worker.

    Args:
        function: the handler.
        injected: annotations of parameters that the worker fills in, which are no arguments.

    Raises:
        UsageError: a parameter can't be stored by name, or its annotation can't be decoded.
    """

    def __init__(self, function: Callable[..., Any], *, injected: tuple[type, ...] = ()) -> None:
        self._where = f"{function.__module__}.{function.__qualname__}"
        signature = inspect.signature(function)
        hints = self._hints(function)
        self.injected_name: str = ""
        parameters = []
        for parameter in signature.parameters.values():
            hint = hints.get(parameter.name)
            if (typing.get_origin(hint) or hint) in injected:
                self.injected_name = parameter.name
            else:
                parameters.append(parameter)
        self._check_kinds(parameters)
        self._signature = signature.replace(parameters=parameters)
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._positional = [p.name for p in parameters if p.kind in by_position]
        self._positional_only = [
            p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY
        ]
        self._names = frozenset(p.name for p in parameters)
        self._required = frozenset(p.name for p in parameters if p.default is p.empty)
        self._has_defaults = len(self._required) < len(self._names)
        self._decoder = self._arguments_decoder(parameters, hints)
        self.result_type: Any = hints.get("return", Any)
        self._result_decoder = self._decoder_of(self.result_type, "its return value")

    def _hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        try:
            return typing.get_type_hints(function)
        except NameError as error:
            raise UsageError(
                f"the annotations of {self._where} can't be resolved ({error}): "
                "import the types at module level, not under TYPE_CHECKING"
            ) from error

    def _check_kinds(self, parameters: list[inspect.Parameter]) -> None:
        for parameter in parameters:
            if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise UsageError(
                    f"{self._where} takes {parameter}, but arguments are stored by name: "
                    "take a list or dict parameter instead"
                )

    def _arguments_decoder(
        self, parameters: list[inspect.Parameter], hints: dict[str, Any]
    ) -> msgspec.json.Decoder[Any]:
        fields: list[Any] = []
        for parameter in parameters:
            annotation = hints.get(parameter.name, Any)
            self._decoder_of(annotation, f"parameter {parameter.name!r}")
            if parameter.default is parameter.empty:
                fields.append((parameter.name, annotation))
            else:
                # UNSET leaves the default to the handler itself, mutable or not.
                default = msgspec.field(default=msgspec.UNSET, name=parameter.name)
                fields.append((parameter.name, annotation | msgspec.UnsetType, default))
        model = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        return msgspec.json.Decoder(model)

    def _decoder_of(self, annotation: Any, what: str) -> msgspec.json.Decoder[Any]:
        try:
            return msgspec.json.Decoder(annotation)
        except TypeError as error:
            raise UsageError(
                f"{what} of {self._where} is annotated {annotation!r}, which can't be decoded "
                f"from JSON ({error}): use plain data, dataclasses or msgspec structs"
            ) from error

    def bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        """Return the arguments by name.

        Raises:
            InvalidArguments: they don't fit the signature.
        """
        if args:
            arguments: dict[str, object] = dict(zip(self._positional, args, strict=False))
            arguments.update(kwargs)
        else:
            arguments = kwargs
        fits = (
            len(arguments) == len(args) + len(kwargs)
            and arguments.keys() <= self._names
            and arguments.keys() >= self._required
        )
        if not fits or self._positional_only:
            try:
                return self._signature.bind(*args, **kwargs).arguments
            except TypeError as error:
                raise InvalidArguments(f"{self._where}: {cut(str(error), 200)}") from None
        return arguments

    def decode(self, payload: bytes) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return positional and keyword arguments for the handler.

        Raises:
            msgspec.MsgspecError: the payload is not JSON, or not of the annotated types.
        """
        try:
            decoded = self._decoder.decode(payload)
        except RecursionError as error:
            raise _undecodable(error) from None
        arguments = msgspec.structs.asdict(decoded)
        if self._has_defaults:
            arguments = {k: v for k, v in arguments.items() if v is not msgspec.UNSET}
        if not self._positional_only:
            return (), arguments
        args = tuple(arguments.pop(name) for name in self._positional_only if name in arguments)
        return args, arguments

    def decode_result(self, result: bytes) -> R:
        """Return a result as the handler's annotation says.

        Raises:
            msgspec.MsgspecError: it is not of that type.
        """
        decoded: R = _decoded(self._result_decoder, result)
        return decoded


def decode_any(data: bytes | str) -> Any:
    """Return plain data: what a result is to who doesn't know the task's types.

    Raises:
        msgspec.MsgspecError: it is not JSON.
    """
    return _decoded(_any_decoder, data)


_any_decoder = msgspec.json.Decoder()


def _decoded(decoder: msgspec.json.Decoder[Any], data: bytes | str) -> Any:
    try:
        return decoder.decode(data)
    except (RecursionError, UnicodeEncodeError) as error:
        raise _undecodable(error) from None


def _undecodable(error: Exception) -> msgspec.DecodeError:
    """Return the one kind of error that who meets data looks for."""
    return msgspec.DecodeError(cut(str(error)))
