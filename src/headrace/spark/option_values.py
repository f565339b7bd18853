"""What options say: each function is given an option's name, for the error, and its value.

Some read the text of an option, since Spark passes no other, and some check what a program passes
or such text has said. All of them raise `InvalidOption` of what is not valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from headrace.clock import Duration, duration_ms, instant_ms
from headrace.errors import InvalidOption
from headrace.job import JobState, check_name, check_text
from headrace.plain import plain_text, shown
from headrace.settings import check_count, check_flag
from headrace.spark.urls import check_shared
from headrace.storage.exports import EXPORTED

ALL_QUEUES = "*"


def url(_name: str, text: str) -> str:
    """Return the address of a storage that processes share; "" is what each process says."""
    return check_shared(text) if text else ""


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

    def check(name: str, word: str) -> str:
        found = plain_text(word)
        if found is None or found.lower() not in words:
            raise InvalidOption(f"{name}={shown(word)} is not known: use {' or '.join(words)}")
        return found.lower()

    return check


_COMMITS = one_of("direct", "atomic")
_FLAGS = one_of("true", "false")


def is_atomic(name: str, word: str) -> bool:
    """Return whether a commit is ``atomic``, else ``direct``."""
    return _COMMITS(name, word) == "atomic"


def flag(name: str, value: bool) -> bool:  # noqa: FBT001 (it is what is checked)
    """Return a truth value."""
    return check_flag(value, name=name)


def read_flag(name: str, text: str) -> bool:
    """Return whether text is ``true``, else ``false``."""
    return _FLAGS(name, text) == "true"


def count(most: int) -> Callable[[str, int], int]:
    """Return what checks a whole number from 1 on."""

    def check(name: str, value: int) -> int:
        return check_count(value, name=name, most=most)

    return check


def read_count(name: str, text: str) -> int:
    """Return a whole number that text says."""
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise InvalidOption(f"{name}={shown(text)} is not valid: use a whole number")
    return int(text)


def duration(least_ms: int) -> Callable[[str, Duration], int]:
    """Return what checks a duration, and makes it milliseconds."""

    def check(name: str, value: Duration) -> int:
        return duration_ms(value, name=name, least_ms=least_ms)

    return check


def read_seconds(name: str, text: str) -> float:
    """Return a number of seconds that text says."""
    try:
        return float(text)
    except ValueError:
        raise InvalidOption(f"{name}={shown(text)} is not valid: use seconds") from None


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
