"""Values to bytes and back: what a codec has to do, and how large its bytes may be.

A codec is the one place that knows the stored form of arguments, results and output. An app has
one, and passes it on to its tasks, workers and their processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import msgspec

from headrace.errors import PayloadTooLarge
from headrace.job import CHUNK_LIMIT_BYTES, PAYLOAD_LIMIT_BYTES, RESULT_LIMIT_BYTES
from headrace.plain import cut

Encode = Callable[[Any, str], bytes]
"""Writes a value; the text says what it is, for the error."""

EncodeArguments = Callable[[Mapping[str, object]], bytes]
"""Writes arguments by name."""

Decode = Callable[[bytes], Any]
"""Reads bytes; what it raises is for `read` to tell."""


class ResultTooLarge(ValueError):
    """A handler's encoded result is over 1 MiB."""


class Codec(Protocol):
    """Encodes and decodes; can be pickled, since processes are given it at their start."""

    @property
    def name(self) -> str:
        """Its format, as errors say it."""

    def encoder(self, annotation: Any) -> Encode:
        """Return what writes a result or a piece of output, of a type or, with `Any`, plain data.

        It raises `NotSerializable`, with the path of a part that would not come back as it is.

        Raises:
            TypeError: no values of such a type can be stored.
        """

    def decoder(self, annotation: Any) -> Decode:
        """Return what reads bytes as values of a type, `Any` for plain data.

        It raises `msgspec.MsgspecError` for bytes that it can't read, and may run out of stack.

        Raises:
            TypeError: as `encoder`; the text says why, and what to do.
            NameError: a class that the type names is not defined yet.
        """

    def arguments_encoder(self, annotations: Mapping[str, Any]) -> EncodeArguments:
        """Return what writes arguments by name, as `encoder` does each; others as plain data."""

    def arguments_decoder(
        self, annotations: Mapping[str, Any], optional: Collection[str]
    ) -> Decode:
        """Return what reads arguments as a struct, as `decoder` does each.

        Args:
            annotations: their types, by name.
            optional: names of those that may be missing, and are `msgspec.UNSET` then.
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


def encode_arguments(encode: EncodeArguments, arguments: Mapping[str, object]) -> bytes:
    """Encode a call's arguments by name.

    Raises:
        NotSerializable: see `Codec.encoder`.
        PayloadTooLarge: they are over 1 MiB.
    """
    payload = encode(arguments)
    if len(payload) > PAYLOAD_LIMIT_BYTES:
        raise PayloadTooLarge(
            f"the arguments are {len(payload):,} bytes encoded, the limit is "
            f"{PAYLOAD_LIMIT_BYTES:,}: store the data elsewhere and pass its key"
        )
    return payload


def encode_result(encode: Encode, value: object) -> bytes:
    """Encode what a handler returned.

    Raises:
        NotSerializable: see `Codec.encoder`.
        ResultTooLarge: it is over 1 MiB.
    """
    result = encode(value, "result")
    if len(result) > RESULT_LIMIT_BYTES:
        raise ResultTooLarge(
            f"the result is {len(result):,} bytes encoded, the limit is {RESULT_LIMIT_BYTES:,}: "
            "store the data elsewhere and return its key"
        )
    return result


def encode_chunk(encode: Encode, value: object) -> bytes:
    """Encode a piece of output.

    Raises:
        NotSerializable: see `Codec.encoder`.
        PayloadTooLarge: it is over 64 KiB.
    """
    chunk = encode(value, "chunk")
    if len(chunk) > CHUNK_LIMIT_BYTES:
        raise PayloadTooLarge(
            f"the piece of output is {len(chunk):,} bytes encoded, the limit is "
            f"{CHUNK_LIMIT_BYTES:,}: emit it in smaller pieces"
        )
    return chunk
