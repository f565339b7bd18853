"""What the text of a cron expression says, as numbers.

croniter reads the fields; it is imported only here, and only once there is an expression to read.
What it reads otherwise than cron does, or what is most likely a slip, is refused before.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from headrace.errors import InvalidOption
from headrace.plain import cut, shown

MAX_EXPRESSION = 1_000
"""Most characters of an expression: twice what lists of all values take."""

LAST = -1
"""The last day of a month, or the last one of its Mondays, beside numbers that count from 1."""

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Field(msgspec.Struct, frozen=True):
    """A field: its name, what is in bounds, in words and numbers, and the form of its items."""

    name: str
    bounds: str
    low: int
    high: int
    form: re.Pattern[str]
    has_question_mark: bool = False


_VALUE = r"(?:\d{1,9}|[a-z]{3})"
_PLAIN = rf"\*(?:/\d{{1,9}})?|{_VALUE}(?:-{_VALUE})?(?:/\d{{1,9}})?"
_NTH = re.compile(rf"{_VALUE}#\d|l\d|\dl", re.ASCII)


def _form(*more: str) -> re.Pattern[str]:
    return re.compile("|".join((_PLAIN, *more)), re.ASCII)


SECOND = Field("second", "0 to 59", 0, 59, _form())
MINUTE = Field("minute", "0 to 59", 0, 59, _form())
HOUR = Field("hour", "0 to 23", 0, 23, _form())
DAY = Field("day of the month", "1 to 31, or L", 1, 31, _form("l"), has_question_mark=True)
MONTH = Field("month", "1 to 12, or jan to dec", 1, 12, _form())
WEEKDAY = Field(
    "weekday", "0 to 7, or sun to sat", 0, 6, _form(_NTH.pattern), has_question_mark=True
)

# In the order of croniter, which has the second last.
FIELDS = (MINUTE, HOUR, DAY, MONTH, WEEKDAY, SECOND)
_ANY = ("*",) * len(FIELDS)


class CronFields(msgspec.Struct, frozen=True, kw_only=True):
    """What an expression names, each in ascending order.

    Args:
        texts: the fields as they were written, in lower case and in the order of `FIELDS`.
        days: days of the month; `LAST` among them for ``L``.
        weekdays: 0 is Sunday; none where ``nth`` says which.
        nth: pairs of a weekday and which of its days in a month: 1 to 5, or `LAST`.
        is_either_day: a day has to fit its field of the month or its weekday, since both are
            restricted; otherwise it has to fit both.
        is_every_hour: the hour begins with a star, so that the entry follows real time.
    """

    texts: tuple[str, ...]
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    nth: tuple[tuple[int, int], ...]
    is_either_day: bool
    is_every_hour: bool


@lru_cache(maxsize=4096)
def read_fields(expression: str, *, seconds: bool) -> CronFields:
    """Read an expression of five fields, or of six with the second first if ``seconds``.

    Raises:
        InvalidOption: it can't be read; the message names the field.
    """
    texts = _split(expression, seconds=seconds)
    for field, text in zip(FIELDS, texts, strict=True):
        reason = _why_refused(field, text)
        if reason:
            raise InvalidOption(
                f"Cron: the {field.name} {shown(text)} of {shown(expression)}: {reason}"
            )
    expanded, nth = _expand(texts)
    minutes, hours, days, months, weekdays, of_a_minute = (
        _values(field, found) for field, found in zip(FIELDS, expanded, strict=True)
    )
    _, hour, day, _, weekday, _ = texts
    return CronFields(
        texts=texts,
        seconds=of_a_minute,
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=() if nth else weekdays,
        nth=tuple(sorted((of, LAST if n == "l" else n) for of, ns in nth.items() for n in ns)),
        is_either_day=day[0] not in "*?" and weekday[0] not in "*?",
        is_every_hour=hour[0] == "*",
    )


def _split(expression: str, *, seconds: bool) -> tuple[str, ...]:
    """Return the texts of all `FIELDS`."""
    if len(expression) > MAX_EXPRESSION:
        raise InvalidOption(
            f"Cron: {cut(expression, 40)!r} has {len(expression):,} characters: use at most "
            f"{MAX_EXPRESSION:,}"
        )
    text = expression.lower()
    if text.startswith("@"):
        return (*_macro(text).split(), "0")
    texts = text.split(" ") if text else []
    if len(texts) != 5 + seconds:
        raise InvalidOption(_wrong_count(expression, len(texts), seconds=seconds))
    return (*texts[1:], texts[0]) if seconds else (*texts, "0")


def _macro(text: str) -> str:
    if text in MACROS:
        return MACROS[text]
    if text == "@reboot":
        raise InvalidOption("Cron: '@reboot' is no time: enqueue the job where your program starts")
    raise InvalidOption(
        f"Cron: {shown(text)} is not known: use {', '.join(MACROS)}, or five fields; an interval "
        "is Every(seconds)"
    )


def _wrong_count(expression: str, count: int, *, seconds: bool) -> str:
    names = [field.name for field in FIELDS[:5]]
    hint = f"give {', '.join(['second', *names] if seconds else names)}"
    if count == 5 + (not seconds):
        hint += " (seconds=True is for six fields, the second first)"
    noun = "field" if count == 1 else "fields"
    return f"Cron: {shown(expression)} has {count} {noun} and not {5 + seconds}: {hint}"


def _why_refused(field: Field, text: str) -> str:
    """Return what is wrong with a field, "" if nothing is."""
    if text == "?" and field.has_question_mark:
        return ""
    items = text.split(",")
    for item in items:
        reason = _why_no_form(item) if not field.form.fullmatch(item) else _why_no_item(field, item)
        if reason:
            return reason
    if len({_NTH.fullmatch(item) is None for item in items}) > 1:
        return "'#' and 'L' can't stand in one list with other weekdays"
    return ""


def _why_no_form(item: str) -> str:
    if not item:
        return "an item is empty"
    if "?" in item:
        return "'?' stands alone, for the day of the month or the weekday"
    if re.match(r"[hr]($|[(/])", item):
        return f"{shown(item)} is drawn anew by each process: write a number"
    if re.search(r"\dw|w\d|lw", item):
        return f"{shown(item)}: the nearest working day is not supported"
    return f"{shown(item)} is no value, range, step or list"


@lru_cache(maxsize=4096)
def _why_no_item(field: Field, item: str) -> str:
    """Return what is wrong with an item that looks like one, "" if nothing is."""
    # Cached, since croniter takes 30 µs an item, and there are few that schedules use.
    body, _, step = item.partition("/")
    if step:
        count = field.high - field.low + 1
        if not 1 <= int(step) <= count:
            # Beyond that one value is left, and an interval was meant.
            return (
                f"the step of {shown(item)} is not 1 to {count}; for an interval use Every(seconds)"
            )
    if not _is_in_bounds(field, item):
        return f"{shown(item)} is out of bounds: use {field.bounds}"
    return _why_no_range(field, body, step) if "-" in body else ""


def _why_no_range(field: Field, body: str, step: str) -> str:
    first, _, last = body.partition("-")
    low, high = _number(field, first), _number(field, last)
    if field is WEEKDAY and last == "7" and first != "7":
        high = 7
    if low == high:
        # cron reads one value, and croniter the whole field.
        return f"{shown(body)} is one value: write {shown(first)}"
    if low > high and step:
        # croniter counts on from the highest value, as no cron does.
        return f"{shown(body)} goes backwards and has a step: write a list"
    return ""


def _number(field: Field, value: str) -> int:
    expanded, _ = _expand(_alone(field, value))
    (number,) = expanded[FIELDS.index(field)]
    return int(number)


def _is_in_bounds(field: Field, item: str) -> bool:
    from croniter import CroniterError

    try:
        _expand(_alone(field, item))
    except CroniterError:
        return False
    return True


def _alone(field: Field, text: str) -> tuple[str, ...]:
    return tuple(text if other is field else "*" for other in FIELDS)


def _expand(texts: tuple[str, ...]) -> tuple[list[list[Any]], dict[Any, set[Any]]]:
    """Return croniter's reading: numbers, ``*`` and ``l`` by field; and which weekdays a month."""
    # It takes 70 ms to import, most of it dateutil, which programs without schedules don't need.
    from croniter import croniter

    *others, weekday, second = texts
    # The last Friday is written 5L too, as Quartz does; croniter knows L5.
    weekday = re.sub(r"(\d)l", r"l\1", weekday)
    return croniter.expand(" ".join((*others, weekday, second)))


def _values(field: Field, found: list[Any]) -> tuple[int, ...]:
    if "*" in found:
        return tuple(range(field.low, field.high + 1))
    return tuple(sorted(LAST if value == "l" else value for value in found))
