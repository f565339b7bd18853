"""A codec beside that of JSON, where processes can import it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.codec import Decode
from headrace.json_codec import JSON

MARK = b"\xff"


class Marked(msgspec.Struct, frozen=True):
    """JSON behind a byte that no JSON has, so that bytes of another codec are refused."""

    name: str = "marked JSON"

    def encode(self, value: object, path: str) -> bytes:
        return MARK + JSON.encode(value, path)

    def encode_arguments(self, arguments: Mapping[str, object]) -> bytes:
        return MARK + JSON.encode_arguments(arguments)

    def decoder(self, annotation: Any) -> Decode:
        decode = JSON.decoder(annotation)

        def decode_marked(data: bytes) -> Any:
            if data[:1] != MARK:
                raise msgspec.DecodeError(f"{data!r} is not marked")
            return decode(data[1:])

        return decode_marked
