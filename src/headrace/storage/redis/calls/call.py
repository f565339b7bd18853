"""What goes to the server as one piece, and what its words are read with. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from headrace.job import ErrorInfo
from headrace.storage.base import VERBS
from headrace.storage.incarnations import Beat
from headrace.storage.limits import DEFAULT_LEASE_MS, ROW_MESSAGE_LIMIT
from headrace.storage.values import DAMAGED_ERROR

T = TypeVar("T")
Word = str | bytes | int

_NUMBER = re.compile(rb"-?\d{1,15}", re.ASCII)
_BEAT = re.compile(rb"(-?\d{1,15}) (\d{1,15}) \d{1,15}", re.ASCII)
# The last entry of a page, and where it was. Half a surrogate pair is no text.
SCORED = re.compile(r"(?:-?inf|-?\d[\d.e+-]{0,24}):[^\ud800-\udfff]+", re.ASCII | re.DOTALL)
_HEX = re.compile(r"%(?:[0-9a-f]{2})+", re.ASCII)
# Up to where the message ends or is cut, and no further than the last whole escape.
_MESSAGE = re.compile(rb'"message":"((?:[^"\\]|\\u[0-9a-f]{4}|\\[^u])*)', re.DOTALL)
_error_encoder = msgspec.json.Encoder()
_error_decoder = msgspec.json.Decoder(ErrorInfo)


class Call(NamedTuple, Generic[T]):
    """What goes to the server as one piece: a call of a function, or a plain command.

    Attributes:
        verb: of the port, or what only our side calls so.
        root: the key whose slot has all that it touches: a queue's root, a tenant's, or "" for what
            belongs to no slot.
        words: the arguments of the function, or the whole command.
        read: makes an answer of the reply.
        is_command: it is a command, not the function of the verb.
    """

    verb: str
    root: str
    words: Sequence[Word]
    read: Callable[[Any], T]
    is_command: bool = False

    @property
    def repeats(self) -> bool:
        """Whether it is made again at once where its answer was lost."""
        known = VERBS.get(self.verb)
        return known is not None and known.repeats


def command(verb: str, root: str, *words: Word, read: Callable[[Any], T]) -> Call[T]:
    """Build a plain command; ``root`` is one that its key begins with, "" if it has none."""
    return Call(verb, root, words, read, is_command=True)


def nothing(_reply: Any) -> None:
    """Read a reply that says nothing."""


def read_error(entry: bytes) -> ErrorInfo:
    """Read an entry of the error list: the time and attempt that Lua wrote, then our JSON."""
    try:
        if entry.startswith(b"{"):
            return _error_decoder.decode(entry)
        at_ms, start, blob = entry.split(b" ", 2)
        return msgspec.structs.replace(
            _error_decoder.decode(blob), at_ms=int(at_ms), start=int(start)
        )
    except (ValueError, msgspec.MsgspecError):
        return DAMAGED_ERROR


def read_error_message(beginning: bytes) -> str:
    """Read what an error says from the beginning of its entry, which may end anywhere."""
    found = _MESSAGE.search(beginning)
    if found is None:
        return DAMAGED_ERROR.message if beginning else ""
    message = b'"%s"' % found[1].decode(errors="ignore").encode()
    try:
        return msgspec.json.decode(message, type=str)[:ROW_MESSAGE_LIMIT]
    except msgspec.DecodeError:
        return DAMAGED_ERROR.message


def text(word: bytes | None) -> str:
    """Return a word as text, also one that a stranger wrote and that is none."""
    return (word or b"").decode(errors="replace")


def place_text(place: bytes) -> str:
    """Return a place in a listing as text, in hexadecimal behind a % where it is none."""
    try:
        return place.decode()
    except UnicodeDecodeError:
        return f"%{place.hex()}"


def read_place(said: str, pattern: re.Pattern[str] = SCORED) -> str | bytes | None:
    """Return the place that such a text names, "" for ""; None for what names none."""
    if _HEX.fullmatch(said):
        return bytes.fromhex(said[1:])
    return said if not said or pattern.fullmatch(said) else None


def read_number(word: bytes | None, default: int = 0) -> int:
    """Return a number, the default for none and for what is none that we would write."""
    return int(word) if word and _NUMBER.fullmatch(word) else default


def read_owner(claim: bytes) -> str:
    """Return the incarnation that a claim's nonce begins with."""
    return text(claim.partition(b"/")[0])


def write_error(error: ErrorInfo) -> bytes:
    """Encode an error for the history."""
    return _error_encoder.encode(error)


def read_beat(word: bytes) -> Beat:
    """Read a value of the beats hash: the count, -1 for a condemned one, lease and time.

    Rubbish counts as a first beat, as in ``lua/lib/incarnations.lua``: who lives soon writes the
    next one, and who doesn't is reaped.
    """
    match = _BEAT.fullmatch(word)
    if match is None:
        return Beat(count=0, lease_ms=DEFAULT_LEASE_MS, is_condemned=False)
    count, lease_ms = int(match[1]), int(match[2])
    return Beat(count=count, lease_ms=lease_ms, is_condemned=count < 0)
