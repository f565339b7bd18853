"""Cron expressions in plain words."""

from __future__ import annotations

import pytest

from headrace import Cron
from headrace.timing.words import zone_words

WORDS = [
    ("* * * * *", "every minute"),
    ("*/15 * * * *", "every 15 minutes"),
    ("0 * * * *", "every hour"),
    ("@hourly", "every hour"),
    ("0 */2 * * *", "every 2 hours"),
    ("5 * * * *", "at minute 5 of every hour"),
    ("*/25 * * * *", "at minutes 0, 25 and 50 of every hour"),
    ("30 */2 * * *", "every day at minute 30 of every 2nd hour"),
    ("0 9-17 * * *", "every hour from 09:00 to 17:00"),
    ("0 1-13/2 * * *", "every day at 01:00, 03:00, 05:00, 07:00, 09:00, 11:00 and 13:00"),
    ("*/15 9-17 * * mon-fri", "every 15 minutes from 09:00 to 17:59, Monday to Friday"),
    ("* 2 * * *", "every minute from 02:00 to 02:59"),
    ("*/10 */6 * * *", "every 10 minutes of every 6th hour"),
    ("1 1-10 * * *", "every day at minute 1 of hours 1 to 10"),
    ("0-9 8,20 * * *", "every day at minutes 0 to 9 of hours 8 and 20"),
    ("@daily", "every day at 00:00"),
    ("0 9 * * 1", "every Monday at 09:00"),
    ("0 9,17 * * *", "every day at 09:00 and 17:00"),
    ("30 6 * * sat,sun", "every Saturday and Sunday at 06:30"),
    ("0 0 * * 6-2", "every Monday, Tuesday, Saturday and Sunday at 00:00"),
    ("0 0 * * 5-7", "Friday to Sunday at 00:00"),
    ("0 0 * 6-8 *", "every day in June, July and August at 00:00"),
    ("0 0 * 6-8 1", "every Monday in June, July and August at 00:00"),
    ("0 0 1,15 * *", "on the 1st and the 15th of every month at 00:00"),
    ("0 0 15,L 2 *", "on the 15th and the last day of February at 00:00"),
    ("0 0 2,3,11 * *", "on the 2nd, the 3rd and the 11th of every month at 00:00"),
    ("0 0 */2 * *", "every 2nd day from the 1st to the 31st of every month at 00:00"),
    (
        "0 0 1-7 * */7",
        "every day from the 1st to the 7th of every month, if it is a Sunday, at 00:00",
    ),
    (
        "0 0 */13 * 1#1",
        "on the 1st, the 14th and the 27th of every month, if it is the first Monday, at 00:00",
    ),
    ("0 0 13 * 5", "on the 13th of every month and every Friday at 00:00"),
    ("0 0 13 * 5#1", "on the 13th of every month and on the first Friday of every month at 00:00"),
    ("0 0 * * 5L", "on the last Friday of every month at 00:00"),
    ("0 0 * 6 5#3,1#1", "on the first Monday and the third Friday of June at 00:00"),
]

SIX_FIELDS = [
    ("* * * * * *", "every second"),
    ("*/10 * * * * *", "every 10 seconds"),
    ("30 * * * * *", "at second 30 of every minute"),
    ("0 * * * * *", "every minute"),
    ("*/10 0 * * * *", "every 10 seconds of minute 0 of every hour"),
    ("15,45 */5 * * * *", "every day at seconds 15 and 45 of every 5th minute"),
    ("5 5 5 * * *", "every day at 05:05:05"),
]


@pytest.mark.parametrize(("expression", "words"), WORDS)
def test_an_expression_in_words(expression: str, words: str) -> None:
    assert Cron(expression).words() == f"{words}, UTC"


@pytest.mark.parametrize(("expression", "words"), SIX_FIELDS)
def test_an_expression_with_seconds_in_words(expression: str, words: str) -> None:
    assert Cron(expression, seconds=True).words() == f"{words}, UTC"


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("America/New_York", "New York time"),
        ("America/Argentina/Buenos_Aires", "Buenos Aires time"),
        ("UTC", "UTC"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("EST5EDT", "EST5EDT"),
    ],
)
def test_a_zone_in_words(zone: str, words: str) -> None:
    assert zone_words(zone) == words
    assert Cron("0 9 * * 1", tz=zone).words() == f"every Monday at 09:00, {words}"
