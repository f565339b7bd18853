"""What callers pass, as the exact type that is meant, and as text that an error can quote.

A subclass of ``str`` or ``int`` may compare, print and encode otherwise than it looks, as members
of a ``(str, Enum)`` do. So whatever crosses into the library becomes a plain value here, or is
refused by who asks.
"""

from __future__ import annotations

import re
from datetime import timedelta

SHOWN = 120
"""Most characters of a value that an error quotes."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain_text(value: object) -> str | None:
    """Return the text of a string, also of a subclass's or an enum's member; None if it is none."""
    if type(value) is str:
        return value
    # Called on the class: what a subclass makes of it does not count.
    return str.__str__(value) if isinstance(value, str) else None


def plain_integer(value: object) -> int | None:
    """Return a whole number as ``int``; None if it is none, or a truth value."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int.__int__(value)


def plain_number(value: object) -> int | float | None:
    """Return a number as ``int`` or ``float``; None if it is neither, or a truth value."""
    return float.__float__(value) if isinstance(value, float) else plain_integer(value)


def plain_seconds(value: object) -> int | float | None:
    """Return a duration in seconds: of a number or a `timedelta`; None if it is neither."""
    return timedelta.total_seconds(value) if isinstance(value, timedelta) else plain_number(value)


def has_control(text: str) -> bool:
    """Whether there are control characters in it."""
    return _CONTROL.search(text) is not None


def one_line(text: str) -> str:
    """Return ``text`` with a space for each control character and ``?`` for what can't be encoded.

    So it can stand in a line of an event, and on a terminal.
    """
    if text.isascii() and text.isprintable():
        return text  # at a fourth of the time
    return encodable(_CONTROL.sub(" ", text))


def encodable(text: str) -> str:
    """Return ``text`` with ``?`` for each lone surrogate, which can't be encoded."""
    return text.encode(errors="replace").decode()


def printable(text: str) -> str:
    """Return text of several lines without control characters but tab and newline.

    What is stored comes from anywhere, and a terminal obeys escape sequences.
    """
    return _CONTROL_IN_LINES.sub("\N{REPLACEMENT CHARACTER}", text)


def cut(text: str, most: int = SHOWN) -> str:
    """Return the text in one line that can be encoded, without its end if it is long."""
    line = _CONTROL.sub(" ", text[:most]).encode(errors="backslashreplace").decode()
    return line if len(text) <= most else f"{line}…"


def shown(value: object) -> str:
    """Return a value as an error quotes it: in one line, not long, whatever its ``repr`` does."""
    text = plain_text(value)
    if text is not None:
        return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}…"
    try:
        return cut(repr(value))
    except Exception:  # it is anybody's code, and an int may have too many digits
        return cut(object.__repr__(value))
