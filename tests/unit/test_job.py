"""Ids and names: what is accepted, what is drawn."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace import InvalidOption, JobState
from headrace.job import JobIds, check_name, check_text, new_job_id
from headrace.plain import one_line


@pytest.mark.parametrize("name", ["a", "A9", "emails.high", "a_b-c.d", "0", "x" * 100])
def test_a_plain_name_is_accepted(name: str) -> None:
    assert check_name(name, what="queue") == name


@pytest.mark.parametrize(
    "name",
    [
        "a}:ready",
        "{b}",
        "a:ready",
        "",
        "x" * 101,
        "x" * 300,
        "..",
        "../x",
        "%2e%2e",
        "%00",
        "a\r\nDEL x",
        "a\n",
        "a\x00",
        "*",
        "[a-z]*",
        "a b",
        "-a",
        "_a",
        ".a",
        "\uff41",  # full-width a
        "\u0430",  # Cyrillic a
        "e\u0301",  # e and a combining accent
        "\u00e9",
        "a\u202eb",  # right-to-left override
        "\u0661",  # an Arabic digit
        "\ud800",
        b"a",
        None,
        1,
    ],
)
def test_a_bad_name_is_refused_with_its_value_and_the_rule(name: Any) -> None:
    # RELIABILITY §5 27 to 33 and 35.
    with pytest.raises(InvalidOption, match="letters, digits") as caught:
        check_name(name, what="queue")
    assert repr(name)[:100] in str(caught.value)


@pytest.mark.parametrize(
    "job_id",
    [
        "123",
        "00123",
        "a:b",
        "a:exp",
        "{x}",
        "*",
        "../x",
        " ",
        "a b",
        "😀",
        "é",
        "x" * 256,
        "漢" * 85,
    ],
)
def test_any_printable_text_is_an_id(job_id: str) -> None:
    # BC-66.
    assert check_text(job_id, what="job id") == job_id


@pytest.mark.parametrize(
    "job_id",
    [
        "",
        "x" * 257,
        "漢" * 86,
        "x" * 10_000,
        "a\nb",
        "a\x00",
        "\x1b[31m",
        "\x7f",
        "\x85",
        "\ud800",
        None,
        5,
        b"id",
    ],
)
def test_a_bad_id_is_refused_in_a_short_message(job_id: Any) -> None:
    with pytest.raises(InvalidOption, match="job id") as caught:
        check_text(job_id, what="job id")
    message = str(caught.value)
    assert len(message) < 300
    message.encode()


def test_ids_rise_and_never_repeat() -> None:
    ids = [new_job_id() for _ in range(50_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert {len(job_id) for job_id in ids} == {26}


def test_threads_that_share_a_source_draw_rising_ids_that_never_repeat() -> None:
    draw, threads, count = JobIds(), 4, 150_000
    newest = [""]
    ends = threading.Barrier(threads)

    def draw_many(_: int) -> list[str]:
        ids = []
        ends.wait()
        for _ in range(count):
            earlier = newest[0]  # its call was over before this one begins
            job_id = draw()
            if job_id <= earlier:
                raise AssertionError(f"{job_id} came after {earlier}")
            newest[0] = job_id
            ids.append(job_id)
        return ids

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            drawn = list(pool.map(draw_many, range(threads)))
    finally:
        sys.setswitchinterval(interval)
    assert all(ids == sorted(ids) for ids in drawn)
    together = set().union(*drawn)
    assert len(together) == threads * count
    assert all(re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", job_id) for job_id in together)


def test_a_clock_that_is_set_back_makes_no_id_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = JobIds()
    first = draw()
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
    assert draw() > first


def test_two_sources_never_draw_the_same() -> None:
    first, second = JobIds(), JobIds()
    assert not {first() for _ in range(1000)} & {second() for _ in range(1000)}


def test_a_forked_child_draws_other_ids_than_its_parent() -> None:
    new_job_id()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, new_job_id().encode())
        os._exit(0)
    drawn = os.read(reader, 26).decode()
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    assert drawn[10:] != new_job_id()[10:]


def test_three_states_are_terminal() -> None:
    terminal = {state for state in JobState if state.is_terminal}
    assert terminal == {JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("page 3 of 12: ½ 📮 <b>", "page 3 of 12: ½ 📮 <b>"),
        ("a\nb\tc\r\n", "a b c  "),
        ("\x00\x1b[31mred\x7f\x85", "  [31mred  "),
        ("half of \ud83d", "half of ?"),
    ],
)
def test_one_line_has_neither_control_characters_nor_what_cannot_be_encoded(
    text: str, shown: str
) -> None:
    assert one_line(text) == shown
