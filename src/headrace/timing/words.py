"""A cron expression in plain words: "every Monday at 09:00, New York time"."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

from headrace.timing.fields import DAY, HOUR, LAST, MINUTE, SECOND, CronFields, Field
from headrace.timing.walls import clock_text

MOST_TIMES = 6
"""More times of a day than these are told by their rule."""

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_NTHS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", LAST: "last"}
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def cron_words(fields: CronFields, zone: str) -> str:
    """Return what an expression means in a zone of this name."""
    time, day = _time(fields), _day(fields)
    if time.startswith("at "):
        every_day = "" if time.endswith((" of every hour", " of every minute")) else "every day "
        text = f"{day} {time}" if day else f"{every_day}{time}"
    else:
        text = f"{time}, {day}" if day else time
    return f"{text}, {zone_words(zone)}"


def zone_words(zone: str) -> str:
    """Return a zone as people say it: "New York time", "UTC"."""
    area, _, city = zone.rpartition("/")
    return f"{city.replace('_', ' ')} time" if area not in ("", "Etc") else zone


def _time(fields: CronFields) -> str:
    """Return "at 09:00", "every 15 minutes", "at minute 5 of every hour"."""
    hours, minutes, seconds = fields.hours, fields.minutes, fields.seconds
    if len(hours) * len(minutes) * len(seconds) <= MOST_TIMES:
        clocks = [h * 3600 + m * 60 + s for h, m, s in product(hours, minutes, seconds)]
        return f"at {_list([clock_text(clock) for clock in clocks])}"
    if seconds != (0,):
        parts = [(SECOND, seconds), (MINUTE, minutes), (HOUR, hours)]
    elif minutes != (0,):
        parts = [(MINUTE, minutes), (HOUR, hours)]
    else:
        return _every(HOUR, hours) or _on_the_hour(hours)
    (finest, values), *coarser = parts
    text = _every(finest, values)
    goes_on = bool(text)
    text = text or f"at {_named(finest, values)}"
    for field, values in coarser:
        text += _within(field, values, goes_on=goes_on)
        goes_on = _step(field, values) > 0
    return text


def _on_the_hour(hours: Sequence[int]) -> str:
    clocks = [clock_text(hour * 3600) for hour in hours]
    return (
        f"every hour from {clocks[0]} to {clocks[-1]}" if _is_run(hours) else f"at {_list(clocks)}"
    )


def _within(field: Field, values: Sequence[int], *, goes_on: bool) -> str:
    """Return to which values of a coarser field a finer one is bound, "" if to all."""
    step = _step(field, values)
    if step == 1:
        return "" if goes_on else f" of every {field.name}"
    if step:
        return f" of every {_nth(step)} {field.name}"
    if field is HOUR and goes_on and (len(values) == 1 or _is_run(values)):
        return f" from {clock_text(values[0] * 3600)} to {clock_text(values[-1] * 3600 + 59 * 60)}"
    return f" of {_named(field, values)}"


def _every(field: Field, values: Sequence[int]) -> str:
    step = _step(field, values)
    if not step:
        return ""
    return f"every {field.name}" if step == 1 else f"every {step} {field.name}s"


def _step(field: Field, values: Sequence[int]) -> int:
    """Return the step of several values that go evenly round the field from its start, else 0."""
    count = field.high - field.low + 1
    step = count // len(values)
    is_even = len(values) > 1 and step * len(values) == count
    return step if is_even and tuple(values) == tuple(range(field.low, count, step)) else 0


def _named(field: Field, values: Sequence[int]) -> str:
    names = [str(value) for value in values]
    if len(values) == 1:
        return f"{field.name} {names[0]}"
    return f"{field.name}s {f'{names[0]} to {names[-1]}' if _is_run(values) else _list(names)}"


def _day(fields: CronFields) -> str:
    """Return which days fit, "" if all do."""
    every_month = len(fields.months) == len(MONTHS)
    months = _list([MONTHS[month - 1] for month in fields.months])
    of_month = "every month" if every_month else months
    dates = f"{_dates(fields)} of {of_month}" if _dates(fields) else ""
    weekdays = _weekdays(fields)
    if not weekdays:
        return dates or ("" if every_month else f"every day in {months}")
    if dates and not fields.is_either_day:
        return f"{dates}, if it is {_list(_articles(weekdays, fields), 'or')},"
    if fields.nth:
        text = f"on {_list(weekdays)} of {of_month}"
    else:
        text = _every_weekday(weekdays) + ("" if every_month else f" in {months}")
    return f"{dates} and {text}" if dates else text


def _dates(fields: CronFields) -> str:
    """Return which days of the month fit, "" if all do: "on the 1st and the 15th"."""
    days = [day for day in fields.days if day != LAST]
    if len(days) == DAY.high:
        return ""
    names = [f"the {_nth(day)}" for day in days]
    steps = {late - early for early, late in pairwise(days)}
    if len(days) > MOST_TIMES and len(steps) == 1 and LAST not in fields.days:
        (step,) = steps
        every = "every day" if step == 1 else f"every {_nth(step)} day"
        return f"{every} from {names[0]} to {names[-1]}"
    return f"on {_list([*names, 'the last day'] if LAST in fields.days else names)}"


def _weekdays(fields: CronFields) -> list[str]:
    """Return which weekdays fit, none if all do: "Monday", "the first Monday"."""
    if fields.nth:
        return [f"the {_NTHS[n]} {WEEKDAYS[weekday]}" for weekday, n in fields.nth]
    # A week begins on Monday, so that a weekend is at its end.
    days = sorted(fields.weekdays, key=lambda day: day or 7)
    return [] if len(days) == len(WEEKDAYS) else [WEEKDAYS[day] for day in days]


def _articles(weekdays: list[str], fields: CronFields) -> list[str]:
    return weekdays if fields.nth else [f"a {weekday}" for weekday in weekdays]


def _every_weekday(weekdays: list[str]) -> str:
    indexes = [WEEKDAYS.index(weekday) or 7 for weekday in weekdays]
    if _is_run(indexes):
        return f"{weekdays[0]} to {weekdays[-1]}"
    return f"every {_list(weekdays)}"


def _is_run(values: Sequence[int]) -> bool:
    """Whether there are three values or more, without a gap."""
    return len(values) > 2 and values[-1] - values[0] == len(values) - 1


def _list(names: Sequence[str], joint: str = "and") -> str:
    *most, last = names
    return f"{', '.join(most)} {joint} {last}" if most else last


def _nth(number: int) -> str:
    ending = "th" if number in (11, 12, 13) else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"
