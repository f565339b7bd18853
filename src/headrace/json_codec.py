"""The codec of JSON: what annotations say is asked once, when a task is declared.

A type without bytes, paths, models and the like is written as plain data, at no further cost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, ClassVar

import msgspec
from msgspec.inspect import Type

from headrace import json_values
from headrace.codec import Decode, Encode, EncodeArguments
from headrace.conversions import Conversions
from headrace.description import told
from headrace.errors import NotSerializable
from headrace.json_types import check_as, kind_of
from headrace.json_values import check, encode_by, shortened, written
from headrace.plain import cut
from headrace.pydantic_types import Adapter, asks

Prepare = Callable[[Any, str], object]
"""Checks a value, and returns what is to be written for it; takes the value and its path."""


class JsonCodec(msgspec.Struct, frozen=True):
    """Stores values as JSON.

    It refuses what has no JSON form, NaN and infinities, integers of over 300 digits, and values
    that are nested over 64 deep.

    Attributes:
        conversions: how an app stores types of its own.
    """

    conversions: Conversions = Conversions()
    name: ClassVar[str] = "JSON"

    def encoder(self, annotation: Any) -> Encode:
        """Return what writes values of a type, see `Codec.encoder`."""
        prepare = self._prepare(annotation)
        if prepare is None:
            return json_values.encode
        write = encode_by(self.conversions.to_plain)
        return lambda value, path: written(write, prepare(value, path), path)

    def decoder(self, annotation: Any) -> Decode:
        """Return what reads values of a type, see `Codec.decoder`."""
        adapter = self._adapter(annotation)
        if adapter is not None:
            return partial(_adapted, adapter)
        kind_of(annotation, self.conversions)
        return self._reader(annotation)

    def arguments_encoder(self, annotations: Mapping[str, Any]) -> EncodeArguments:
        """Return what writes arguments of these types, see `Codec.arguments_encoder`."""
        found = {name: self._prepare(annotation) for name, annotation in annotations.items()}
        prepares = {name: prepare for name, prepare in found.items() if prepare is not None}
        if not prepares:
            return json_values.encode_arguments
        write = encode_by(self.conversions.to_plain)

        def encode(arguments: Mapping[str, object]) -> bytes:
            prepared = {
                name: prepares.get(name, _plain)(value, f"args.{name}")
                for name, value in arguments.items()
            }
            return written(write, prepared, "args")

        return encode

    def arguments_decoder(
        self, annotations: Mapping[str, Any], optional: Collection[str]
    ) -> Decode:
        """Return what reads arguments of these types, see `Codec.arguments_decoder`."""
        adapters: dict[str, Adapter] = {}
        fields: list[Any] = []
        for name, annotation in annotations.items():
            adapter = self._adapter(annotation)
            if adapter is not None:
                adapters[name] = adapter
            place = annotation if adapter is None else msgspec.Raw
            # UNSET leaves the default to the handler itself, mutable or not.
            default = msgspec.UNSET if name in optional else msgspec.NODEFAULT
            fields.append((name, place, msgspec.field(default=default, name=name)))
        model = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        read = self._reader(model)
        return partial(_with_adapted, read, adapters) if adapters else read

    def _reader(self, annotation: Any) -> Decode:
        return msgspec.json.Decoder(annotation, dec_hook=self.conversions.to_value).decode

    def _adapter(self, annotation: Any) -> Adapter | None:
        return Adapter(annotation) if asks(annotation, self.conversions.decoders) else None

    def _prepare(self, annotation: Any) -> Prepare | None:
        """Return what values of a type need before they are written, None if they are plain."""
        adapter = self._adapter(annotation)
        if adapter is not None:
            return partial(_by_adapter, adapter)
        kind = kind_of(annotation, self.conversions)
        return None if kind is None else partial(_by_kind, kind)


JSON = JsonCodec()


def _plain(value: object, path: str) -> object:
    if type(value) is not str:
        check(value, path, 1)
    return value


def _by_kind(kind: Type, value: object, path: str) -> object:
    check_as(kind, value, path)
    return value


def _by_adapter(adapter: Adapter, value: object, path: str) -> object:
    try:
        plain = adapter.to_plain(value)
    except Exception as error:
        raise NotSerializable(
            f"{shortened(path)} can't be encoded by pydantic: {cut(told(error), 200)}"
        ) from error
    return _plain(plain, path)


def _adapted(adapter: Adapter, data: bytes | msgspec.Raw, where: str = "") -> Any:
    try:
        return adapter.read(data)
    except ValueError as error:
        raise msgspec.ValidationError(f"{error}{where}") from error


def _with_adapted(read: Decode, adapters: Mapping[str, Adapter], payload: bytes) -> Any:
    """Read arguments, of which those with an adapter have stayed JSON at first."""
    arguments = read(payload)
    for name, adapter in adapters.items():
        data = getattr(arguments, name)
        if data is not msgspec.UNSET:
            setattr(arguments, name, _adapted(adapter, data, f" - at `$.{name}`"))
    return arguments
