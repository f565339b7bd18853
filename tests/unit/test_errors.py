"""The error tree."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

import headrace.errors
from headrace import (
    HeadraceError,
    InvalidArguments,
    InvalidOption,
    JobError,
    NotSerializable,
    OutsideHandler,
    PayloadTooLarge,
    UnknownTask,
    UsageError,
    WaitTimeout,
)
from headrace.errors import Signal


def own_errors() -> Iterator[type[BaseException]]:
    for _, value in inspect.getmembers(headrace.errors, inspect.isclass):
        if issubclass(value, BaseException) and value.__module__ == "headrace.errors":
            yield value


def test_every_error_has_a_place_in_the_drawn_tree() -> None:
    drawn = headrace.errors.__doc__ or ""
    for error in own_errors():
        assert error.__name__ in drawn
        assert issubclass(error, HeadraceError | Signal)


def test_signals_are_no_errors() -> None:
    assert not issubclass(Signal, HeadraceError)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (InvalidArguments, TypeError),
        (InvalidOption, ValueError),
        (NotSerializable, TypeError),
        (PayloadTooLarge, ValueError),
        (UnknownTask, LookupError),
        (OutsideHandler, LookupError),
        (WaitTimeout, TimeoutError),
    ],
)
def test_an_error_is_also_what_python_programmers_would_catch(
    error: type[Exception], builtin: type[Exception]
) -> None:
    assert issubclass(error, builtin)
    assert issubclass(error, UsageError | JobError)
