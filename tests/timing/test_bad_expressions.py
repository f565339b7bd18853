"""Cron expressions that are refused, and what they are told."""

from __future__ import annotations

from datetime import date
from itertools import islice

import pytest

from headrace import Cron, InvalidOption
from headrace.timing.fields import read_fields
from headrace.timing.walls import DAY_S, MONTHS, WallTimes

EPOCH = date(1970, 1, 1).toordinal()

REFUSED = [
    # How many fields.
    ("", "has 0 fields and not 5"),
    ("   ", "has 0 fields and not 5"),
    ("hourly", "'hourly' has 1 field and not 5: give minute"),
    ("* * * *", "'\\* \\* \\* \\*' has 4 fields and not 5: give minute, hour, day of the month"),
    ("* * * * * *", "has 6 fields and not 5: .* \\(seconds=True is for six fields"),
    ("* * * * * * *", "has 7 fields and not 5"),
    (" ".join("*" * 60), "has 60 fields and not 5"),
    # Which field, and what is wrong with it.
    ("60 * * * *", "the minute '60' of '60 .*': '60' is out of bounds: use 0 to 59"),
    ("0 24 * * *", "the hour '24' of .*: '24' is out of bounds: use 0 to 23"),
    ("0 0 0 * *", "the day of the month '0' of .*: '0' is out of bounds: use 1 to 31, or L"),
    ("0 0 32 * *", "the day of the month '32' of"),
    ("0 0 * 0 *", "the month '0' of .*: '0' is out of bounds: use 1 to 12, or jan to dec"),
    ("0 0 * 13 *", "the month '13' of"),
    ("0 0 * foo *", "the month 'foo' of"),
    ("0 0 * mon *", "the month 'mon' of"),
    ("jan * * * *", "the minute 'jan' of"),
    ("0 0 * * 8", "the weekday '8' of .*: '8' is out of bounds: use 0 to 7, or sun to sat"),
    ("0 0 * * jan", "the weekday 'jan' of"),
    ("0 0 * * 1#0", "the weekday '1#0' of"),
    ("0 0 * * 1#6", "the weekday '1#6' of"),
    ("0 0 * * 9L", "the weekday '9l' of"),
    ("0 0 1,5,40 * *", "the day of the month '1,5,40' of .*: '40' is out of bounds"),
    ("0 9-25 * * *", "the hour '9-25' of"),
    ("99999999999 * * * *", "the minute '99999999999' of"),
    # Forms.
    ("a b c d e", "the minute 'a' of .*: 'a' is no value, range, step or list"),
    ("-1 * * * *", "the minute '-1' of .*: '-1' is no value"),
    ("1.5 * * * *", "'1.5' is no value"),
    ("1e3 * * * *", "'1e3' is no value"),
    ("+1 * * * *", "'\\+1' is no value"),
    ("1,,2 * * * *", "the minute '1,,2' of .*: an item is empty"),
    (", * * * *", "the minute ',' of .*: an item is empty"),
    ("1-2-3 * * * *", "'1-2-3' is no value"),
    ("1/2/3 * * * *", "'1/2/3' is no value"),
    ("*5 * * * *", "'\\*5' is no value"),
    ("** * * * *", "'\\*\\*' is no value"),
    ("0 0 * * 1-5#2", "'1-5#2' is no value"),
    ("0 0 * * *#2", "'\\*#2' is no value"),
    ("0 0 * * L", "the weekday 'l' of .*: 'l' is no value"),
    ("0 L * * *", "the hour 'l' of .*: 'l' is no value"),
    ("0 0 1-L * *", "'1-l' is no value"),
    ("0 0 L-3 * *", "'l-3' is no value"),
    ("0 0 * * 1#1,3", "the weekday '1#1,3' of .*: '#' and 'L' can't stand in one list"),
    ("0 0 * * 1L,*", "'#' and 'L' can't stand in one list"),
    ("? * * * *", "the minute '\\?' of .*: '\\?' stands alone, for the day of the month"),
    ("0 0 ?,1 * *", "'\\?' stands alone"),
    ("0\n0 * * * *", "has 5 fields|the minute '0\\\\n0'"),
    ("\N{ARABIC-INDIC DIGIT THREE} * * * *", "the minute .* is no value"),
    ("0\N{NO-BREAK SPACE}0 * * * *", "the minute"),
    ("*\x00 * * * *", "the minute '\\*\\\\x00' of"),
    ("\ud800 * * * *", "the minute '\\\\ud800' of"),
    # Steps and ranges.
    ("*/0 * * * *", "the minute '\\*/0' of .*: the step of '\\*/0' is not 1 to 60"),
    ("5/0 * * * *", "the step of '5/0' is not 1 to 60"),
    ("*/90 * * * *", "is not 1 to 60; for an interval use Every\\(seconds\\)"),
    ("0 */25 * * *", "the hour '\\*/25' of .*: the step of '\\*/25' is not 1 to 24"),
    ("0 */999999999 * * *", "is not 1 to 24"),
    ("*/ * * * *", "'\\*/' is no value"),
    ("*/-1 * * * *", "'\\*/-1' is no value"),
    ("5-5 * * * *", "the minute '5-5' of .*: '5-5' is one value: write '5'"),
    ("0 0 * jan-1 *", "the month 'jan-1' of .*: 'jan-1' is one value: write 'jan'"),
    ("0 0 * * 7-0", "the weekday '7-0' of .*: '7-0' is one value"),
    ("0 22-2/2 * * *", "the hour '22-2/2' of .*: '22-2' goes backwards and has a step"),
    # What other crons know.
    ("R * * * *", "the minute 'r' of .*: 'r' is drawn anew by each process"),
    ("H * * * *", "'h' is drawn anew by each process: write a number"),
    ("H(0-29)/10 * * * *", "is drawn anew by each process"),
    ("0 0 15W * *", "'15w': the nearest working day is not supported"),
    ("0 0 LW * *", "'lw': the nearest working day is not supported"),
    ("@reboot", "'@reboot' is no time: enqueue the job where your program starts"),
    ("@every 5m", "'@every 5m' is not known: use @yearly, .* an interval is Every\\(seconds\\)"),
    ("@", "'@' is not known"),
    # Days that never come.
    ("0 0 30 2 *", "'0 0 30 2 \\*' never comes: month '2' has no day '30'$"),
    ("0 0 31 2 *", "month '2' has no day '31'$"),
    ("0 0 31 4,jun *", "month '4,jun' has no day '31'$"),
    ("0 0 */31 * 1#5", "month '\\*' has no day '\\*/31' that is the weekday '1#5'$"),
    # Lengths.
    ("1" * 10_240, "has 10,240 characters: use at most 1,000"),
    ("0," * 600 + "0 * * * *", "has 1,209 characters"),
]


@pytest.mark.parametrize(("expression", "words"), REFUSED, ids=range(len(REFUSED)))
def test_an_expression_is_refused_and_its_field_named(expression: str, words: str) -> None:
    with pytest.raises(InvalidOption, match=words) as caught:
        Cron(expression)
    message = str(caught.value)
    assert message.startswith("Cron: ")
    assert len(message) < 400
    assert message.encode().decode().isprintable()


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "has 5 fields and not 6: give second, minute, .* \\(seconds=True is for six"),
        ("60 * * * * *", "the second '60' of"),
        ("* 60 * * * *", "the minute '60' of"),
        ("* * * * * * 2026", "has 7 fields and not 6"),
    ],
    ids=["five", "second", "minute", "year"],
)
def test_six_fields_are_refused_alike(expression: str, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        Cron(expression, seconds=True)


@pytest.mark.parametrize("expression", [None, 5, b"* * * * *", ["*"] * 5], ids=repr)
def test_what_is_no_text_is_refused(expression: object) -> None:
    with pytest.raises(InvalidOption, match="is no expression: pass text, as in '0 9"):
        Cron(expression)  # type: ignore[arg-type]  # what callers pass all the same


class Counted(WallTimes):
    """Counts the months that it looks at."""

    looked = 0

    def _days_in(self, month: int) -> tuple[int, ...]:
        self.looked += 1
        return super()._days_in(month)


@pytest.mark.parametrize("expression", ["0 0 31 2 *", "* * 30 2 *", "0 0 */31 * 1#5"])
def test_a_search_for_what_never_comes_ends(expression: str) -> None:
    walls = Counted(read_fields(expression, seconds=False))
    assert not walls.is_possible
    assert walls.looked == 0
    assert list(walls.since(0)) == list(walls.before(0)) == []
    assert walls.looked == 2 * MONTHS


def test_the_rarest_day_is_found_within_the_search() -> None:
    # A fifth Monday in February: in 2072 and then, since 2100 is no leap year, in 2112.
    walls = Counted(read_fields("0 0 * 2 1#5", seconds=False))
    first, second = (date(year, 2, 29).toordinal() - EPOCH for year in (2072, 2112))
    assert next(walls.since((first + 1) * DAY_S)) == second * DAY_S
    assert walls.looked <= MONTHS
    assert next(walls.before(second * DAY_S)) == first * DAY_S


def test_a_search_goes_on_for_as_long_as_there_are_days() -> None:
    walls = WallTimes(read_fields("@yearly", seconds=False))
    assert len(list(islice(walls.since(0), 200))) == 200


def test_the_newest_of_ages_take_as_many_steps_as_they_are() -> None:
    walls = Counted(read_fields("* * * * *", seconds=False))
    assert len(list(islice(walls.before(50 * 366 * DAY_S), 1000))) == 1000
    assert walls.looked == 1
