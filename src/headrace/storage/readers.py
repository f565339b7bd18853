"""Named readers of a queue's events: what is known of them, and the ids by which they say so."""

from __future__ import annotations

import re

import msgspec

from headrace.errors import InvalidOption

FIRST = "0-0"
"""Where a reader is that goes on with the first event that is kept."""

_STREAM_ID = re.compile(r"(\d{1,19})(?:-(\d{1,19}))?", re.ASCII)


class ReaderInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How far a reader has come.

    Attributes:
        name: its name.
        stream_id: behind which entry it goes on; "0-0": with the first that is kept.
        number: of the last event that it has acknowledged. Entries have several events, so the
            first behind ``stream_id`` may have been acknowledged too: those up to this number.
        behind: how many events the queue has had since that one.
        at_ms: when it acknowledged anything last.
    """

    name: str
    stream_id: str
    number: int
    behind: int
    at_ms: int


def read_stream_id(stream_id: str) -> tuple[int, int]:
    """Return the two numbers of the id of an event's entry, the second 0 where it is not said.

    Raises:
        InvalidOption: it is no such id.
    """
    match = _STREAM_ID.fullmatch(stream_id)
    if match is None:
        raise InvalidOption(
            f"stream_id={stream_id!r} is not that of an event: use its stream_id, "
            'or "0" for the place before all events'
        )
    return int(match[1]), int(match[2] or 0)
