"""The arguments and replies of what reads events as they are kept."""

from __future__ import annotations

from typing import Any

from headrace.storage.event_pages import EventLines, EventPlace, EventSpan
from headrace.storage.limits import EVENT_LINES_LIMIT
from headrace.storage.readers import read_stream_id
from headrace.storage.redis.calls.call import Call, command, read_number

_LATEST_MS = 10**18
_LAST_OF_ITS_MS = 2**64 - 1


def read_entry(entry: tuple[bytes, list[bytes]]) -> EventLines:
    """Read an entry of the stream of events; what a stranger wrote may have no lines."""
    stream_id, fields = entry
    values = dict(zip(fields[::2], fields[1::2], strict=True))
    last = max(0, read_number(values.get(b"n")))
    return EventLines(stream_id.decode(), last, values.get(b"events", b""))


def event_lines(root: str, after: str, until: str, limit: int) -> Call[list[EventLines]]:
    """Build ``event_lines``.

    Raises:
        InvalidOption: that is no id of an entry.
    """
    start = "({}-{}".format(*read_stream_id(after))
    end = "{}-{}".format(*read_stream_id(until)) if until else "+"
    words = ("XRANGE", f"{root}:events", start, end, "COUNT", min(limit, EVENT_LINES_LIMIT))
    return command("event_lines", root, *words, read=_read_entries)


def _read_entries(reply: list[Any]) -> list[EventLines]:
    return [read_entry(entry) for entry in reply]


def event_span(root: str) -> Call[EventSpan]:
    """Build ``event_span``."""
    return Call("event_span", root, [], _read_span)


def _read_span(reply: list[Any]) -> EventSpan:
    if not reply:
        return EventSpan(None, None)
    first, last = reply
    return EventSpan(read_entry(first).place, read_entry(last).place)


def event_place(root: str, at_ms: int) -> Call[EventPlace | None]:
    """Build ``event_place``."""
    last = f"{min(max(at_ms, 0), _LATEST_MS)}-{_LAST_OF_ITS_MS}"
    return Call("event_place", root, [last], _read_place)


def _read_place(reply: Any) -> EventPlace | None:
    return read_entry(reply).place if reply else None
