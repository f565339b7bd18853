"""Limits: how many jobs run at once, and how many start in a time; of each key for itself.

A task declares `Limit`s. A job brings their values to the storage as gates: see `gates_text`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from operator import itemgetter

import msgspec

from headrace.clock import MAX_DURATION_MS
from headrace.errors import InvalidArguments, InvalidOption
from headrace.fairness import FAIR_LIMIT, check_limit_name, is_window
from headrace.job import ID_LIMIT_BYTES, check_text
from headrace.plain import plain_integer, plain_text, shown

GATES_A_JOB = 4
"""Most limits of one job."""

MOST_PLACES = 1_000_000
"""Most jobs at once, starts in a time, or tokens, of one key."""

KEY_LIMIT_BYTES = 256

BUCKET_LIMIT = 2**52
"""Most tokens times milliseconds of a bucket, so that any number of it is exact as a double."""

_RATE = re.compile(r"(\d{1,7})/(\d{0,12})(ms|s|min|h|d)", re.ASCII)
_UNITS_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_TERMS = re.compile(r"(\d{1,7}) (\d{1,7}) (\d{1,12}) (\d{1,7})", re.ASCII)


class Terms(msgspec.Struct, frozen=True):
    """What a limit allows of each key, in whole numbers; 0 is no bound.

    Attributes:
        concurrency: most jobs that are ready or active at once.
        rate: how many tokens come in ``rate_ms``, evenly; each start takes one.
        rate_ms: that time.
        burst: most tokens that are there at once.
    """

    concurrency: int = 0
    rate: int = 0
    rate_ms: int = 0
    burst: int = 0

    @property
    def text(self) -> str:
        """These numbers in their order, a space between two, as storages keep them."""
        return f"{self.concurrency} {self.rate} {self.rate_ms} {self.burst}"

    @property
    def rate_text(self) -> str:
        """The rate as a `Limit` says it, "" without one."""
        if not self.rate:
            return ""
        units = ((name, ms) for name, ms in _UNITS_MS.items() if self.rate_ms % ms == 0)
        name, ms = max(units, key=itemgetter(1))
        periods = self.rate_ms // ms
        return f"{self.rate}/{'' if periods == 1 else periods}{name}"

    @property
    def words(self) -> str:
        """What is allowed, for people: ``2 at once, 10/min, burst 5``."""
        words = [
            f"{self.concurrency:,} at once" if self.concurrency else "",
            self.rate_text,
            f"burst {self.burst:,}" if self.burst != self.rate else "",
        ]
        return ", ".join(filter(None, words))


class Gate(msgspec.Struct, frozen=True):
    """One limit that a job meets, with the key for which it counts.

    Attributes:
        name: the limit's.
        key: the key's text; "": that of jobs without a value.
        terms: what its task declares, None where its producer does not know.
    """

    name: str
    key: str
    terms: Terms | None = None


def read_terms(text: str) -> Terms | None:
    """Return the terms that a text says, None where it says none."""
    match = _TERMS.fullmatch(text)
    return None if match is None else Terms(*map(int, match.groups()))


def gates_text(gates: Iterable[Gate]) -> str:
    """Return gates as `Job.gates` has them: a line each of name, key and terms, tabs between."""
    return "\n".join(
        f"{gate.name}\t{gate.key}\t{'' if gate.terms is None else gate.terms.text}"
        for gate in gates
    )


def read_gates(text: str) -> list[Gate]:
    """Return the gates that a text says.

    Raises:
        ValueError: it is none of `gates_text`.
    """
    gates = []
    for line in text.split("\n") if text else ():
        name, key, terms = line.split("\t")
        gates.append(Gate(name, key, read_terms(terms)))
    return gates


def keys_of(gates: str) -> dict[str, str]:
    """Return the keys of the limits that a record's ``gates`` name, by their names, in order."""
    lines = (line for line in gates.split("\n") if line and not is_window(line))
    return dict(line.split("\t", 1) for line in lines)


def check_gates(text: str) -> str:
    """Return the gates of a job that anybody made, as a plain string.

    Raises:
        InvalidOption: they can't be read, are too many, or one is not valid.
    """
    said = plain_text(text)
    try:
        gates = read_gates(said) if said is not None else None
    except ValueError:
        gates = None
    if gates is None:
        raise InvalidOption(f"gates={shown(text)} can't be read: use limits= and limit_keys=")
    check_number(gates)
    for gate in gates:
        if gate.name != FAIR_LIMIT or gate.terms is not None:
            check_limit_name(gate.name)
        if gate.key:
            check_text(gate.key, what="limit key", limit_bytes=KEY_LIMIT_BYTES)
        if gate.terms is not None:
            check_terms(gate.terms)
    return gates_text(gates)


def check_number(gates: Iterable[Gate]) -> None:
    """See that a job has no more gates than it may, each limit once.

    Raises:
        InvalidOption: it has.
    """
    names = [gate.name for gate in gates]
    if len(names) > GATES_A_JOB:
        turns = ", and turns by fair_by= or fair_key= are one" if FAIR_LIMIT in names else ""
        raise InvalidOption(
            f"{len(names)} limits are too many: a job has {GATES_A_JOB} at most{turns}"
        )
    for name in names:
        if names.count(name) > 1:
            raise InvalidOption(
                f"limit {shown(name)} is there twice: a job meets it once, so say concurrency= and "
                "rate= in one Limit, or name them apart"
            )


def check_terms(terms: Terms) -> Terms:
    """Return terms whose numbers are within their bounds.

    Raises:
        InvalidOption: they are not, or bound nothing.
    """
    for name in ("concurrency", "rate", "burst"):
        _check_places(getattr(terms, name), name=name, least=0)
    if not 0 <= terms.rate_ms <= MAX_DURATION_MS or bool(terms.rate) != bool(terms.rate_ms):
        raise InvalidOption(f"rate_ms={terms.rate_ms} is out of bounds: use 1 ms to ten years")
    if bool(terms.burst) != bool(terms.rate):
        raise InvalidOption(f"burst={terms.burst} is not valid: it goes with a rate")
    if terms.burst * terms.rate_ms > BUCKET_LIMIT:
        raise InvalidOption(
            f"burst={terms.burst:,} of a rate of {terms.rate:,}/{terms.rate_ms:,}ms is too large: "
            "use a smaller burst, or the same rate with smaller numbers"
        )
    if not (terms.concurrency or terms.rate):
        raise InvalidOption("a limit says concurrency=, rate= or both")
    return terms


def limit_terms(
    *, concurrency: int | None = None, rate: str | None = None, burst: int | None = None
) -> Terms:
    """Check and convert what a limit allows, see `Limit`.

    Raises:
        InvalidOption: a value is out of bounds, or neither concurrency nor rate is said.
    """
    places = 0 if concurrency is None else _check_places(concurrency, name="concurrency")
    if rate is None:
        if burst is not None:
            raise InvalidOption(f"burst={shown(burst)} is not valid: it goes with rate=")
        return check_terms(Terms(places))
    count, rate_ms = _read_rate(rate)
    tokens = count if burst is None else _check_places(burst, name="burst")
    if tokens * rate_ms > BUCKET_LIMIT:
        divisor = math.gcd(count, rate_ms)
        count, rate_ms = count // divisor, rate_ms // divisor
    return check_terms(Terms(places, count, rate_ms, tokens))


def limit_key(value: object, *, of: str) -> str:
    """Return the key of a value: its text, "" for None.

    Args:
        value: a string, whole number or None.
        of: what has the value, for the error.

    Raises:
        InvalidArguments: it is nothing of that, or over 256 bytes, or has control characters.
    """
    if value is None:
        return ""
    number = plain_integer(value)
    if number is None:
        text = plain_text(value)
    else:
        # One of very many digits has no text.
        text = str(number) if number.bit_length() < 8 * KEY_LIMIT_BYTES else None
    if text is None:
        raise InvalidArguments(
            f"{of}={shown(value)} is no key of a limit or of turns: use a string, a whole number "
            "or None"
        )
    try:
        return check_text(text, what=of, limit_bytes=KEY_LIMIT_BYTES) if text else ""
    except InvalidOption as error:
        raise InvalidArguments(f"{error}, since it is the key of a limit or of turns") from None


class _Named(msgspec.Struct, frozen=True):
    """What may be said without its name: the fields of `Limit` behind it are said by theirs."""

    name: str = ""


class Limit(_Named, frozen=True, kw_only=True):
    """How many jobs run at once, or start in a time, of each key; for ``limits=`` of a task.

    A limit holds in its queue. Jobs that find no room are ``blocked`` until there is some: they
    keep their place in line, and jobs of other keys pass them.

    Attributes:
        name: tasks of one queue that name the same limit share it, and must declare the same.
            Default: the task's own, under the task's name, and that of ``by`` behind a colon.
        by: the parameter whose value is the key, a string, whole number or None, at most 256
            bytes. "": all jobs of the task have one key. None and "" are one key.
        concurrency: most jobs of a key that may be active at once, 1 to 1,000,000.
        rate: how many jobs of a key may start in a time, as ``"10/min"``, ``"5/2h"`` or
            ``"1/250ms"``: 1 to 1,000,000 in 1 ms to ten years; units are ms, s, min, h and d.
        burst: how many of these may start at once after a pause, 1 to 1,000,000, default as many
            as the rate has.

    Raises:
        InvalidOption: a value is out of bounds, or neither concurrency nor rate is said.
    """

    by: str = ""
    concurrency: int | None = None
    rate: str | None = None
    burst: int | None = None

    def __post_init__(self) -> None:
        """Check all values."""
        if self.name != "":
            check_limit_name(self.name, limit_bytes=ID_LIMIT_BYTES)
        if plain_text(self.by) is None:
            raise InvalidOption(f"by={shown(self.by)} is not valid: name a parameter of the task")
        _ = self.terms

    @property
    def terms(self) -> Terms:
        """What it allows, in whole numbers."""
        return limit_terms(concurrency=self.concurrency, rate=self.rate, burst=self.burst)

    def name_in(self, task: str) -> str:
        """Return its name among the limits of a task's queue."""
        if self.name:
            return self.name
        return f"{task}:{self.by}" if self.by else task


def _check_places(value: int, *, name: str, least: int = 1) -> int:
    count = plain_integer(value)
    if count is None or not least <= count <= MOST_PLACES:
        raise InvalidOption(
            f"{name}={shown(value)} is out of bounds: use a whole number, "
            f"{least:,} to {MOST_PLACES:,}"
        )
    return count


def _read_rate(rate: str) -> tuple[int, int]:
    text = plain_text(rate)
    match = None if text is None else _RATE.fullmatch(text)
    if match is None:
        raise InvalidOption(
            f"rate={shown(rate)} can't be read: use a count, a slash and a period, as '10/min' or "
            "'5/2h'; units are ms, s, min, h and d"
        )
    count, rate_ms = int(match[1]), int(match[2] or 1) * _UNITS_MS[match[3]]
    if not 1 <= count <= MOST_PLACES:
        raise InvalidOption(f"rate={shown(rate)} is out of bounds: a count is 1 to {MOST_PLACES:,}")
    if not 1 <= rate_ms <= MAX_DURATION_MS:
        raise InvalidOption(f"rate={shown(rate)} is out of bounds: a period is 1 ms to ten years")
    return count, rate_ms
