"""Time zones by name."""

from __future__ import annotations

import subprocess
import sys
from enum import StrEnum
from zoneinfo import ZoneInfo

import pytest

from headrace import Cron, InvalidOption


class Zone(StrEnum):
    HOME = "Europe/Berlin"


@pytest.mark.parametrize(
    "name",
    ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST5EDT", Zone.HOME],
)
def test_a_zone_is_known_by_its_name(name: str) -> None:
    assert Cron("0 9 * * *", tz=name).tz == name
    assert type(Cron("0 9 * * *", tz=name).tz) is str


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("America/New York", "America/New_York"),
        ("utc", "UTC"),
    ],
)
def test_an_unknown_zone_names_a_near_one(name: str, meant: str) -> None:
    with pytest.raises(InvalidOption, match=rf"^tz='{name}' is not .*: did you mean '{meant}'\?$"):
        Cron("0 9 * * *", tz=name)


NO_ZONES = [
    "",
    "PST",  # EST is known, and another time
    "+02:00",
    "UTC+2",
    "Europe",
    "Europe/",
    "/Europe/Berlin",
    "../../etc/passwd",
    "/etc/localtime",
    "localtime",  # of the machine
    "posixrules",
    "right/Europe/Berlin",  # with leap seconds
    "posix/Europe/Berlin",
    "Europe/Berlin\x00",
    "Europe/Berlin\n",
    "Europe/B\N{LATIN SMALL LETTER E WITH ACUTE}rlin",
    "\ud800",
    "x" * 10_000,
]


@pytest.mark.parametrize("name", NO_ZONES, ids=range(len(NO_ZONES)))
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidOption, match=r"^tz=.* is not a time zone: ") as caught:
        Cron("0 9 * * *", tz=name)
    assert len(str(caught.value)) < 250
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("zone", [None, 2, ZoneInfo("Europe/Berlin")], ids=repr)
def test_a_zone_that_is_no_name_is_refused(zone: object) -> None:
    with pytest.raises(InvalidOption, match="is not a name: pass that of a zone, as in 'Europe/B"):
        Cron("0 9 * * *", tz=zone)  # type: ignore[arg-type]  # what callers pass all the same


WITHOUT_DATA = """
import sys, zoneinfo
sys.modules["tzdata"] = None
zoneinfo.reset_tzpath(())
from headrace import Cron, InvalidOption
assert Cron("0 9 * * *").after(0) == 9 * 3_600_000
try:
    Cron("0 9 * * *", tz="Europe/Berlin")
except InvalidOption as error:
    sys.exit(str(error))
"""


def test_without_zone_data_only_utc_is_known_and_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DATA], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == (
        "tz='Europe/Berlin' is not a time zone: no time zone data are installed, so only 'UTC' is "
        "known; install tzdata"
    )
