"""``headrace enqueue --debounce`` and ``--throttle``."""

from __future__ import annotations

from tests.cli.conftest import Cli

SEND = ("enqueue", "send", "-q", "mails")


def test_the_last_of_debounced_calls_is_what_waits(here: Cli) -> None:
    first = here(*SEND, "--debounce", "1h", "--args", '{"n": 1}')
    assert first.out == "Job debounce:send of send is scheduled in mails.\n"
    ran = here(*SEND, "--debounce", "1h", "--args", '{"n": 2}', "-o", "json")
    assert ran.json["outcome"] == "updated"
    assert here("job", "show", "debounce:send", "-o", "json").json["args"] == {"n": 2}
    assert here(*SEND, "--debounce", "1h", "--id", "7", "-o", "json").json["outcome"] == "scheduled"


def test_the_first_of_throttled_calls_is_named_to_all(here: Cli) -> None:
    first = here(*SEND, "--throttle", "10m", "-o", "json").json
    again = here(*SEND, "--throttle", "10m", "-o", "json").json
    assert (first["outcome"], again["outcome"]) == ("queued", "duplicate")
    assert again["id"] == first["id"]


def test_a_debounced_call_may_be_waited_for_and_is_named_when_that_takes_long(here: Cli) -> None:
    ran = here(*SEND, "--debounce", "1h", "--wait", "--timeout", "10ms", "-o", "json")
    assert (ran.code, ran.json["id"]) == (124, "debounce:send")
    ran = here(*SEND, "--wait", "--timeout", "10ms", "-o", "json")
    assert (ran.code, len(ran.json["id"])) == (124, 26)


def test_what_makes_no_sense_is_a_usage_error(here: Cli) -> None:
    ran = here(*SEND, "--debounce", "2s", "--delay", "1s")
    assert (ran.code, "delay=1.0 makes no sense with debounce=2" in ran.err) == (2, True)
    ran = here(*SEND, "--debounce", "2s", "--throttle", "1m")
    assert (ran.code, "debounce=2 and throttle=60: say one of them" in ran.err) == (2, True)
