"""A codec beside that of JSON, where processes can import it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from headrace.codec import Decode, Encode, EncodeArguments
from headrace.json_codec import JSON

MARK = b"\xff"


class Marked(msgspec.Struct, frozen=True):
    """JSON behind a byte that no JSON has, so that bytes of another codec are refused."""

    name: str = "marked JSON"

    def encoder(self, annotation: Any) -> Encode:
        encode = JSON.encoder(annotation)
        return lambda value, path: MARK + encode(value, path)

    def decoder(self, annotation: Any) -> Decode:
        return unmarked(JSON.decoder(annotation))

    def arguments_encoder(self, annotations: Mapping[str, Any]) -> EncodeArguments:
        encode = JSON.arguments_encoder(annotations)
        return lambda arguments: MARK + encode(arguments)

    def arguments_decoder(
        self, annotations: Mapping[str, Any], optional: Collection[str]
    ) -> Decode:
        return unmarked(JSON.arguments_decoder(annotations, optional))


def unmarked(decode: Decode) -> Decode:
    def decode_marked(data: bytes) -> Any:
        if data[:1] != MARK:
            raise msgspec.DecodeError(f"{data!r} is not marked")
        return decode(data[1:])

    return decode_marked
