"""`Job.options`: how the options that a storage only keeps become bytes, and are read again.

They are two parts, as an update may change either alone; each is an object of JSON, empty if
nothing is said. JSON as it is written here has no newline, which is what stands between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from headrace.errors import InvalidOption
from headrace.options import OPTIONS, WorkerOptions
from headrace.plain import cut
from headrace.update import cut_options, join_options

_CHECKS = {option.field: option.check for option in OPTIONS.values() if option.is_stored}
_OF_RETRIES = ("max_attempts", "retry")

_worker_options = msgspec.json.Decoder(WorkerOptions)
_plain_options = msgspec.json.Decoder(dict[str, Any])


def encode_stored(fields: Mapping[str, Any]) -> bytes:
    """Return those of the fields that are stored as `Job.options`; nothing is said in no bytes."""
    return encode_all(
        {
            field: value
            for field, value in fields.items()
            if field in _CHECKS and value is not None and value != {}
        }
    )


def encode_all(stored: Mapping[str, Any]) -> bytes:
    """Return fields as they are stored as `Job.options`, also those that nobody here knows."""
    rest = dict(stored)
    of_retries = {field: rest.pop(field) for field in _OF_RETRIES if field in rest}
    return join_options(_encode(rest), _encode(of_retries))


def _encode(fields: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(fields) if fields else b""


def decode_stored(encoded: bytes) -> dict[str, Any]:
    """Return what options say, as plain data.

    Raises:
        msgspec.MsgspecError: they can't be read.
    """
    return _decode(_plain_options, encoded)


def read_worker_options(encoded: bytes) -> WorkerOptions:
    """Return what options say to a job's worker.

    Raises:
        msgspec.MsgspecError: they can't be read.
    """
    return cast(WorkerOptions, _decode(_worker_options, encoded))


def _decode(decoder: msgspec.json.Decoder[Any], encoded: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if not encoded:  # as of most jobs
        return found
    for part in cut_options(encoded):
        if part:
            found.update(decoder.decode(part))
    return found


def decode_any(encoded: bytes) -> dict[str, Any]:
    """Return what options say that anybody wrote: an object alone may have newlines.

    Raises:
        InvalidOption: they can't be read.
    """
    try:
        try:
            return decode_stored(encoded)
        except msgspec.DecodeError:
            return _plain_options.decode(encoded)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidOption(f"the options can't be read ({cut(str(error))})") from None


def as_one_object(encoded: bytes) -> bytes:
    """Return options as one object of JSON, or as they are where they can't be read."""
    if b"\n" not in encoded:
        return encoded
    try:
        return _encode(decode_stored(encoded))
    except (msgspec.MsgspecError, UnicodeError):
        return encoded


def check_stored(encoded: bytes) -> bytes:
    """Return the options of a job that anybody made, without those that nobody knows.

    Raises:
        InvalidOption: they can't be read, or a value is out of bounds.
    """
    return encode_stored(
        {
            field: _CHECKS[field](value)
            for field, value in decode_any(encoded).items()
            if field in _CHECKS and value is not None
        }
    )
