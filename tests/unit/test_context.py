"""What a handler may say through its context, and what is refused or cleaned first."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headrace import Context, InvalidOption
from headrace.context import Silent
from headrace.job import Claim, ClaimedJob
from headrace.json_codec import JSON

JOB = ClaimedJob("x", "mail", "send", b"[]", Claim(1, "w1/0"), 0, 0, 0, 0, b"")


class Notes(Silent):
    """Takes down what is said."""

    def __init__(self) -> None:
        self.said: list[tuple[float, str]] = []

    def progress(self, fraction: float, text: str) -> None:
        self.said.append((fraction, text))


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def context(notes: Notes) -> Context[None]:
    return Context(
        JOB,
        max_attempts=3,
        timeout=None,
        headers={},
        state=None,
        reporter=notes,
        encode=JSON.encoder(Any),
    )


@pytest.mark.parametrize("fraction", [0, 1, 0.5, 1e-9])
async def test_progress_may_be_awaited_or_not(
    context: Context[None], notes: Notes, fraction: float
) -> None:
    context.progress(fraction)
    await context.progress(fraction, "so far")
    assert notes.said == [(float(fraction), ""), (float(fraction), "so far")]


def test_a_progress_text_is_one_line(context: Context[None], notes: Notes) -> None:
    # It stands in a line of the queue's events, and on the operator's terminal.
    context.progress(0.5, "line 1\nfailed\tx\x1b[2J\ud800")
    assert notes.said == [(0.5, "line 1 failed x [2J?")]


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan, math.inf, True, "0.5", None])
def test_a_fraction_out_of_bounds_is_refused(
    context: Context[None], notes: Notes, fraction: Any
) -> None:
    with pytest.raises(InvalidOption, match="use a number from 0 to 1"):
        context.progress(fraction)
    assert notes.said == []


@pytest.mark.parametrize("text", ["x" * 201, b"x", None, 1])
def test_a_progress_text_that_is_none_is_refused(
    context: Context[None], notes: Notes, text: Any
) -> None:
    with pytest.raises(InvalidOption, match="200 characters at most"):
        context.progress(0.5, text)
    assert notes.said == []
