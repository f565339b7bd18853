"""What a worker and its child processes say to each other: messages in frames on one socket.

A frame is its length in four bytes and so many more. The worker sends one attempt at a time, and
while that runs nothing but an empty frame, which asks it to stop.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from headrace.outcome import Outcome

LENGTH = struct.Struct("!I")


class ChildReady(msgspec.Struct, frozen=True, tag=True):
    """The child has imported what jobs need."""


class ChildNotReady(msgspec.Struct, frozen=True, tag=True):
    """The child could not, and ends."""

    error: str


class Progressed(msgspec.Struct, frozen=True, tag=True):
    """How far the attempt is."""

    fraction: float
    text: str


class Emitted(msgspec.Struct, frozen=True, tag=True):
    """A piece of output."""

    chunk: bytes


class Reply(msgspec.Struct, frozen=True, tag=True):
    """The attempt's outcome, None if it has heeded a stop, and how much memory the child has."""

    outcome: Outcome | None
    resident_bytes: int


Message = ChildReady | ChildNotReady | Progressed | Emitted | Reply
"""What a child says, a frame each."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


def frame(data: bytes) -> bytes:
    """Return ``data`` with its length before it."""
    return LENGTH.pack(len(data)) + data


STOP = frame(b"")
"""Asks the child to return early from what it runs."""


def framed(message: Message) -> bytes:
    """Return a message's frame."""
    return frame(_encode(message))


class FrameReader:
    """Takes bytes as they come and returns the messages that are complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that ``data`` completes."""
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) >= (first := start + LENGTH.size):
            end = first + LENGTH.unpack_from(buffer, start)[0]
            if end > len(buffer):
                break
            yield _decode(bytes(buffer[first:end]))
            start = end
        del buffer[:start]
