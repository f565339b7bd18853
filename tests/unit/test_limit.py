"""Limits as tasks declare them: their names, rates, keys and terms."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from headrace.errors import InvalidArguments, InvalidOption
from headrace.limit import (
    Gate,
    Limit,
    Terms,
    check_gates,
    gates_text,
    limit_key,
    limit_terms,
    read_gates,
    read_terms,
)


class Tier(StrEnum):
    GOLD = "gold"


@pytest.mark.parametrize(
    ("rate", "count", "rate_ms"),
    [
        ("10/min", 10, 60_000),
        ("100/s", 100, 1_000),
        ("5/2h", 5, 7_200_000),
        ("1/10s", 1, 10_000),
        ("1/250ms", 1, 250),
        ("1000000/d", 1_000_000, 86_400_000),
        ("1/3650d", 1, 3650 * 86_400_000),
    ],
)
def test_a_rate_is_a_count_and_a_period(rate: str, count: int, rate_ms: int) -> None:
    assert Limit(rate=rate).terms == Terms(0, count, rate_ms, count)
    assert read_terms(Limit(rate=rate).terms.text) == Limit(rate=rate).terms
    assert Limit(rate=rate).terms.rate_text == rate


def test_a_rate_of_large_numbers_is_kept_in_small_ones() -> None:
    assert limit_terms(rate="1000000/365d") == Terms(0, 1, 31_536, 1_000_000)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"concurrency": 0},
        {"concurrency": -1},
        {"concurrency": True},
        {"concurrency": 1_000_001},
        {"concurrency": 1.5},
        {"rate": "10"},
        {"rate": "10/"},
        {"rate": "0/s"},
        {"rate": "-1/s"},
        {"rate": "1000001/s"},
        {"rate": "1/0s"},
        {"rate": "1/fortnight"},
        {"rate": "1.5/s"},
        {"rate": "1/4000d"},
        {"rate": "999999/3650d"},
        {"rate": 10},
        {"rate": "\N{ARABIC-INDIC DIGIT ONE}/s"},
        {"burst": 5},
        {"concurrency": 5, "burst": 5},
        {"rate": "1/s", "burst": 0},
        {"rate": "1/s", "burst": 1_000_001},
        {"rate": "1/s", "by": 7},
        {"rate": "1/s", "name": "a\nb"},
        {"rate": "1/s", "name": 7},
    ],
    ids=str,
)
def test_what_bounds_nothing_or_is_out_of_bounds_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        Limit(**said)


def test_burst_is_as_many_as_the_rate_has_unless_it_is_said() -> None:
    assert Limit(rate="10/min").terms.burst == 10
    assert Limit(rate="10/min", burst=1).terms.burst == 1


def test_a_limit_has_its_own_name_or_its_tasks() -> None:
    assert Limit("stripe", concurrency=1).name_in("send") == "stripe"
    assert Limit(concurrency=1).name_in("send") == "send"
    assert Limit(by="customer", concurrency=1).name_in("send") == "send:customer"


@pytest.mark.parametrize(
    ("value", "key"),
    [("42", "42"), (42, "42"), (-7, "-7"), (None, ""), ("", ""), (Tier.GOLD, "gold"), ("é", "é")],
    ids=repr,
)
def test_a_key_is_the_text_of_a_value(value: object, key: str) -> None:
    assert limit_key(value, of="customer") == key


@pytest.mark.parametrize(
    "value",
    [True, 1.5, b"x", ["x"], "x" * 257, "é" * 129, "a\tb", "\ud800", 10**300, 10**5000],
    ids=["bool", "float", "bytes", "list", "long", "encoded", "tab", "surrogate", "digits", "more"],
)
def test_any_other_value_is_no_key(value: object) -> None:
    with pytest.raises(InvalidArguments, match="customer"):
        limit_key(value, of="customer")


def test_gates_are_read_as_they_were_said() -> None:
    gates = [Gate("stripe", "", Terms(50)), Gate("send:customer", "42")]
    text = gates_text(gates)
    assert text == "stripe\t\t50 0 0 0\nsend:customer\t42\t"
    assert read_gates(text) == gates
    assert check_gates(text) == text
    assert read_gates("") == []


@pytest.mark.parametrize(
    "text",
    [
        "stripe",
        "a\tb",
        "\tkey\t",
        "\n".join(f"limit{n}\t\t" for n in range(5)),
        "a\tx\t\na\ty\t",
        "a\t" + "x" * 257 + "\t",
        "a\tx\t0 5 0 5",
        "a\tx\t0 0 0 0",
        "a\tx\t0 9999999 1 9999999",
        7,
    ],
    ids=["word", "two", "no-name", "five", "twice", "long", "no-ms", "no-bound", "large", "int"],
)
def test_gates_that_are_not_valid_are_refused(text: Any) -> None:
    with pytest.raises(InvalidOption):
        check_gates(text)
