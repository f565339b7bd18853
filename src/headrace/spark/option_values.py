"""What the text of an option says: each function is given its name, for the error, and its text.

All of them raise `InvalidOption` where it says nothing that is valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from headrace.clock import duration_ms, instant_ms
from headrace.errors import InvalidOption
from headrace.job import JobState, check_name, check_text
from headrace.plain import shown
from headrace.spark.urls import check_shared
from headrace.storage.exports import EXPORTED

ALL_QUEUES = "*"


def url(_name: str, text: str) -> str:
    """Return the address of a storage that processes share."""
    return check_shared(text)


def name(name: str, text: str) -> str:
    """Return a name of a queue or a tenant."""
    return check_name(text, what=name)


def text(name: str, text: str) -> str:
    """Return text without control characters."""
    return check_text(text, what=name)


def queues(_name: str, text: str) -> tuple[str, ...]:
    """Return names with commas between them, none for `ALL_QUEUES`."""
    if text.strip() == ALL_QUEUES:
        return ()
    return tuple(dict.fromkeys(check_name(one.strip(), what="queue") for one in text.split(",")))


def states(name: str, text: str) -> tuple[JobState, ...]:
    """Return states in which jobs have ended, with commas between them."""
    words = [one.strip() for one in text.split(",")]
    ended = {state.value: state for state in EXPORTED}
    if not set(words) <= set(ended):
        raise InvalidOption(f"{name}={shown(text)} is not known: use some of {', '.join(ended)}")
    return tuple(dict.fromkeys(ended[word] for word in words))


def one_of(*words: str) -> Callable[[str, str], str]:
    """Return what reads one of these words, in capitals or not."""

    def parse(name: str, text: str) -> str:
        if text.lower() not in words:
            raise InvalidOption(f"{name}={shown(text)} is not known: use {' or '.join(words)}")
        return text.lower()

    return parse


def is_atomic(name: str, text: str) -> bool:
    """Return whether a commit is ``atomic``, else ``direct``."""
    return one_of("direct", "atomic")(name, text) == "atomic"


def flag(name: str, text: str) -> bool:
    """Return whether it is ``true``, else ``false``."""
    return one_of("true", "false")(name, text) == "true"


def whole_number(most: int) -> Callable[[str, str], int]:
    """Return what reads a number from 1 on."""

    def parse(name: str, text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not 1 <= int(text) <= most:
            raise InvalidOption(f"{name}={shown(text)} is not valid: use 1 to {most:,}")
        return int(text)

    return parse


def seconds(least_ms: int) -> Callable[[str, str], int]:
    """Return what reads seconds, as milliseconds."""

    def parse(name: str, text: str) -> int:
        try:
            number = float(text)
        except ValueError:
            raise InvalidOption(f"{name}={shown(text)} is not valid: use seconds") from None
        return duration_ms(number, name=name, least_ms=least_ms)

    return parse


def instant(name: str, text: str) -> int:
    """Return an instant, as milliseconds since the epoch; one without a zone is in UTC."""
    if re.fullmatch(r"[0-9]{1,15}", text):
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOption(
            f"{name}={shown(text)} is not valid: use an instant such as 2026-01-31T12:00:00Z, or "
            "milliseconds since the epoch"
        ) from None
    return instant_ms(found if found.tzinfo else found.replace(tzinfo=UTC), name=name)


def offsets(*words: str) -> Callable[[str, str], str]:
    """Return what reads one of these words, or leaves JSON as it is."""

    def parse(name: str, text: str) -> str:
        if text.lower() in words:
            return text.lower()
        if not text.lstrip().startswith("{"):
            raise InvalidOption(
                f"{name}={shown(text)} is not valid: use {', '.join(words)}, or offsets in JSON"
            )
        return text

    return parse
