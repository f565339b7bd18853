"""Which frame of an error is told: the innermost of its own traceback."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from headrace.description import describe
from headrace.errors import UsageError
from headrace.frames import innermost_frame
from headrace.job import ErrorInfo

FAKE = 'Traceback (most recent call last):\n  File "fake.py", line 3, in fake\nKeyError: 1'


def plain() -> None:
    raise ValueError("x")


def chained() -> None:
    try:
        plain()
    except ValueError as error:
        raise RuntimeError("y") from error


def while_handling() -> None:
    try:
        chained()
    except RuntimeError:
        plain()


def leaves(count: int) -> list[Exception]:
    """Return errors that were raised, with causes of their own."""
    found: list[Exception] = []
    for _ in range(count):
        try:
            chained()
        except RuntimeError as error:
            found.append(error)
    return found


def group() -> None:
    raise ExceptionGroup("several", [*leaves(2), ExceptionGroup("inner", leaves(1))])


def of_a_group() -> None:
    try:
        group()
    except ExceptionGroup as error:
        raise RuntimeError("z") from error


def group_of_a_cause() -> None:
    try:
        plain()
    except ValueError:
        group()


def recursive() -> None:
    recursive()


def unreadable() -> None:
    compile("a b", "<text>", "exec")


def quoting() -> None:
    raise ValueError(f"it said\n{FAKE}")


def quoting_in_a_group() -> None:
    raise ExceptionGroup(f"it said\n{FAKE}", leaves(1))


def noted() -> None:
    error = ValueError("x")
    error.add_note(FAKE)
    raise error


@pytest.mark.parametrize(
    ("raises", "name"),
    [
        (plain, "plain"),
        (chained, "chained"),
        (while_handling, "plain"),
        (group, "group"),
        (of_a_group, "of_a_group"),
        (group_of_a_cause, "group"),
        (recursive, "recursive"),
        (unreadable, "unreadable"),
        (quoting, "quoting"),
        (quoting_in_a_group, "quoting_in_a_group"),
        (noted, "noted"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_the_frame_is_the_last_one_of_the_errors_own_traceback(
    raises: Callable[[], None], name: str
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # any at all
        raises()
    place, _, function = innermost_frame(describe(caught.value, 1)).partition(" in ")
    file, _, number = place.rpartition(":")
    assert (file, function) == (__file__, name)
    assert 0 < int(number) < 110


def test_an_error_without_a_traceback_has_no_frame() -> None:
    assert innermost_frame(ErrorInfo("WorkerDied", "its beat stopped")) == ""
    assert innermost_frame(describe(UsageError("of ours"), 1)) == ""


def test_a_traceback_of_which_the_end_is_left_shows_its_last_frame() -> None:
    end = (
        'st recent call last):\n  File "a.py", line 1, in f\n    g()\n  File "b.py", line 2, in g\n'
    )
    assert innermost_frame(ErrorInfo("E", "x", f"{end}E: x\n")) == "b.py:2 in g"


def test_a_message_or_a_group_that_leaves_no_room_for_frames_has_none() -> None:
    for error in (ValueError("\t\n" * 5_000), ExceptionGroup("many", leaves(100))):
        with suppress(Exception):
            raise error
        assert innermost_frame(describe(error, 1)) == ""


@pytest.mark.parametrize(
    "text",
    [
        '  File "' * 400_000,
        '  File "", line 1' * 200_000,
        '  File "a", line ' + "1" * 3_000_000,
        "\n" * 3_000_000,
        "following exception:\n\nTraceback (most recent call last):\n" * 50_000,
    ],
    ids=["files", "lines", "digits", "empty lines", "heads"],
)
def test_no_text_takes_long(text: str) -> None:
    # A text of three million characters that took a step for each pair of them would never end.
    innermost_frame(ErrorInfo("E", text, text))
