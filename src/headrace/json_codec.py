"""The codec of JSON: what annotations say is asked once, when a task is declared."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import msgspec

from headrace import json_values
from headrace.codec import Decode, Encode, EncodeArguments


class JsonCodec(msgspec.Struct, frozen=True):
    """Stores values as JSON.

    It refuses what has no JSON form, NaN and infinities, integers of over 300 digits, and values
    that are nested over 64 deep.
    """

    name: ClassVar[str] = "JSON"

    def encoder(self, annotation: Any) -> Encode:
        """Return what writes values of a type, see `Codec.encoder`."""
        return json_values.encode

    def decoder(self, annotation: Any) -> Decode:
        """Return what reads values of a type, see `Codec.decoder`."""
        return msgspec.json.Decoder(annotation).decode

    def arguments_encoder(self, annotations: Mapping[str, Any]) -> EncodeArguments:
        """Return what writes arguments of these types, see `Codec.arguments_encoder`."""
        return json_values.encode_arguments

    def arguments_decoder(
        self, annotations: Mapping[str, Any], optional: Collection[str]
    ) -> Decode:
        """Return what reads arguments of these types, see `Codec.arguments_decoder`."""
        fields: list[Any] = []
        for name, annotation in annotations.items():
            # UNSET leaves the default to the handler itself, mutable or not.
            default = msgspec.UNSET if name in optional else msgspec.NODEFAULT
            fields.append((name, annotation, msgspec.field(default=default, name=name)))
        model = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        return self.decoder(model)


JSON = JsonCodec()
