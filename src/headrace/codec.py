"""Values to bytes and back: what a codec has to do, and how large its bytes may be.

A codec is the one place that knows the stored form of arguments, results and output. An app has
one, and passes it on to its tasks, workers and their processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from headrace.errors import PayloadTooLarge
from headrace.job import CHUNK_LIMIT_BYTES, PAYLOAD_LIMIT_BYTES, RESULT_LIMIT_BYTES
from headrace.plain import cut

Decode = Callable[[bytes], Any]
"""Reads bytes; what it raises is for `read` to tell."""


class ResultTooLarge(ValueError):
    """A handler's encoded result is over 1 MiB."""


class Codec(Protocol):
    """Encodes and decodes; can be pickled, since processes are given it at their start."""

    @property
    def name(self) -> str:
        """Its format, as errors say it."""

    def encode(self, value: object, path: str) -> bytes:
        """Return a result or a piece of output as bytes.

        Args:
            value: whatever a handler made.
            path: what it is, for the error.

        Raises:
            NotSerializable: a part would not come back as it is; the message has its path.
        """

    def encode_arguments(self, arguments: Mapping[str, object]) -> bytes:
        """Return arguments by name as bytes, as `encode` does."""

    def decoder(self, annotation: Any) -> Decode:
        """Return what reads bytes as values of a type, `Any` for plain data.

        It raises `msgspec.MsgspecError` for bytes that it can't read, and may run out of stack.

        Raises:
            TypeError: no bytes can be read as such a type.
        """


def read(decode: Decode, data: bytes) -> Any:
    """Return what bytes hold.

    Raises:
        msgspec.MsgspecError: they can't be read, or are not of the decoder's type.
    """
    try:
        return decode(data)
    except RecursionError as error:
        raise unreadable(error) from None


def unreadable(error: Exception) -> msgspec.DecodeError:
    """Return the one kind of error that who meets data looks for."""
    return msgspec.DecodeError(cut(str(error)))


def encode_arguments(codec: Codec, arguments: Mapping[str, object]) -> bytes:
    """Encode a call's arguments by name.

    Raises:
        NotSerializable: see `Codec.encode`.
        PayloadTooLarge: they are over 1 MiB.
    """
    payload = codec.encode_arguments(arguments)
    if len(payload) > PAYLOAD_LIMIT_BYTES:
        raise PayloadTooLarge(
            f"the arguments are {len(payload):,} bytes encoded, the limit is "
            f"{PAYLOAD_LIMIT_BYTES:,}: store the data elsewhere and pass its key"
        )
    return payload


def encode_result(codec: Codec, value: object) -> bytes:
    """Encode what a handler returned.

    Raises:
        NotSerializable: see `Codec.encode`.
        ResultTooLarge: it is over 1 MiB.
    """
    result = codec.encode(value, "result")
    if len(result) > RESULT_LIMIT_BYTES:
        raise ResultTooLarge(
            f"the result is {len(result):,} bytes encoded, the limit is {RESULT_LIMIT_BYTES:,}: "
            "store the data elsewhere and return its key"
        )
    return result


def encode_chunk(codec: Codec, value: object) -> bytes:
    """Encode a piece of output.

    Raises:
        NotSerializable: see `Codec.encode`.
        PayloadTooLarge: it is over 64 KiB.
    """
    chunk = codec.encode(value, "chunk")
    if len(chunk) > CHUNK_LIMIT_BYTES:
        raise PayloadTooLarge(
            f"the piece of output is {len(chunk):,} bytes encoded, the limit is "
            f"{CHUNK_LIMIT_BYTES:,}: emit it in smaller pieces"
        )
    return chunk
