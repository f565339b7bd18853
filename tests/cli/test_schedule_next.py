"""``headrace schedule next``: the next instants in both times, without a storage."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli

pytestmark = pytest.mark.parametrize("cli_url", ["file"], indirect=True)

NOWHERE = {"HEADRACE_REDIS_URL": "redis://127.0.0.1:1"}


def test_the_next_instants_are_shown_with_the_words(cli: Cli) -> None:
    ran = cli(
        "schedule", "next", "0 9 * * 1", "--tz", "America/New_York", "-n", "3",
        "--after", "2026-10-20T00:00Z", env=NOWHERE,
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    words, header, *lines = ran.out.splitlines()
    assert "Monday" in words
    assert "09:00" in words
    assert "New York" in words
    assert header.split() == ["LOCAL", "UTC", "NOTE"]
    assert [" ".join(line.split()) for line in lines] == [
        "Mon 2026-10-26 09:00:00 EDT Mon 2026-10-26 13:00:00",
        "Mon 2026-11-02 09:00:00 EST Mon 2026-11-02 14:00:00",
        "Mon 2026-11-09 09:00:00 EST Mon 2026-11-09 14:00:00",
    ]


def test_the_document_has_both_times_and_the_rule_that_applied(here: Cli) -> None:
    document = here(
        "schedule", "next", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "2",
        "--after", "2027-03-27T12:00Z", "-o", "json",
    ).json  # fmt: skip
    assert list(document) == ["timing", "words", "tz", "instants"]
    assert document["timing"] == "cron 30 2 * * * Europe/Berlin"
    assert document["tz"] == "Europe/Berlin"
    after_gap, usual = document["instants"]
    assert after_gap["at"] == "2027-03-28T01:00:00Z"
    assert after_gap["local"] == "2027-03-28T03:00:00+02:00"
    assert "02:30" in after_gap["rule"]
    assert usual == {
        "at": "2027-03-29T00:30:00Z",
        "local": "2027-03-29T02:30:00+02:00",
        "rule": None,
    }


def test_a_rule_is_told_beside_its_instant(here: Cli) -> None:
    ran = here(
        "schedule", "next", "30 1 * * *", "--tz", "America/New_York", "-n", "2",
        "--after", "2026-10-31T12:00Z",
    )  # fmt: skip
    repeated, usual = ran.out.splitlines()[2:]
    assert "2026-11-01 01:30:00 EDT" in repeated
    assert "twice" in repeated
    assert usual.endswith("2026-11-02 06:30:00")


def test_what_the_clocks_leave_out_can_be_skipped(here: Cli) -> None:
    document = here(
        "schedule", "next", "30 2 * * *", "--tz", "Europe/Berlin", "-n", "1",
        "--after", "2027-03-27T12:00Z", "--dst", "skip", "-o", "json",
    ).json  # fmt: skip
    [only] = document["instants"]
    assert only["at"] == "2027-03-29T00:30:00Z"


def test_six_fields_have_their_seconds_first(here: Cli) -> None:
    document = here(
        "schedule", "next", "*/20 * * * * *", "--seconds", "-n", "3",
        "--after", "2026-01-01T00:00Z", "-o", "json",
    ).json  # fmt: skip
    assert [one["at"] for one in document["instants"]] == [
        "2026-01-01T00:00:20Z",
        "2026-01-01T00:00:40Z",
        "2026-01-01T00:01:00Z",
    ]


def test_an_interval_has_instants_too(here: Cli) -> None:
    document = here(
        "schedule", "next", "--every", "6h", "--tz", "Asia/Kolkata", "-n", "2",
        "--after", "2026-01-01T00:00Z", "-o", "json",
    ).json  # fmt: skip
    assert [one["at"] for one in document["instants"]] == [
        "2026-01-01T06:00:00Z",
        "2026-01-01T12:00:00Z",
    ]
    assert document["instants"][0]["local"] == "2026-01-01T11:30:00+05:30"
    ran = here("schedule", "next", "--every", "100ms", "-n", "1", "--after", "2026-01-01T00:00Z")
    assert ran.out.splitlines()[-1].split()[:3] == ["Thu", "2026-01-01", "00:00:00.100"]


def test_ten_instants_from_now_on_are_the_default(here: Cli) -> None:
    document = here("schedule", "next", "@hourly", "-o", "json").json
    instants = [one["at"] for one in document["instants"]]
    assert len(instants) == 10
    assert instants == sorted(set(instants))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "say an expression, or --every"),
        (("* * * * *", "--every", "5"), "say an expression, or --every"),
        (("61 * * * *",), "61"),
        (("0 0 31 2 *",), "0 0 31 2 *"),
        (("* * * *",), "* * * *"),
        (("@reboot",), "@reboot"),
        (("* * * * *", "--tz", "Europe/Berlinn"), "Europe/Berlin"),
        (("--every", "5", "--tz", "Europe/Berlinn"), "Europe/Berlin"),
        (("--every", "5", "--dst", "skip"), "--dst goes with --cron"),
        (("--every", "10ms"), "0.01"),
        (("* * * * *", "--after", "2026-01-01"), "is not an instant"),
        (("* * * * *", "--after", "1960-01-01T00:00Z"), "out of bounds"),
        (("* * * * *", "-n", "0"), "0 is not in the range"),
    ],
)
def test_what_can_not_be_is_told_in_one_line(here: Cli, words: tuple[str, ...], told: str) -> None:
    ran = here("schedule", "next", *words)
    assert (ran.code, ran.out) == (2, ""), ran
    assert ran.err.startswith("Error: ")
    assert ran.err.count("\n") == 1
    assert told in ran.err
