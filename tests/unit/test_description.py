"""Any exception can be described, whatever its class does."""

from __future__ import annotations

from typing import NoReturn

import pytest

from headrace.description import describe, full_traceback, is_a, told
from tests.apps.zoo import EXCEPTIONS, ClassRaises, TextExits


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_whatever_an_exception_does_it_is_described_in_plain_bounded_text(name: str) -> None:
    error = EXCEPTIONS[name]()
    info = describe(error, 3)
    assert (info.start, bool(info.type), bool(info.traceback)) == (3, True, True)
    for text, limit in ((info.type, 2_000), (info.message, 2_000), (info.traceback, 8_000)):
        assert type(text) is str
        assert len(text) <= limit
        text.encode()
    assert told(error).startswith(info.type)


def raised(error: BaseException) -> BaseException:
    try:
        throw(error)
    except BaseException as caught:
        return caught


def throw(error: BaseException) -> NoReturn:
    raise error


def test_the_traceback_is_kept_where_only_the_text_is_odd() -> None:
    info = describe(raised(TextExits()), 1)
    assert "in throw" in info.traceback
    assert info.message == "<its text can't be shown: SystemExit>"


def test_the_place_is_kept_where_the_rest_can_not_be_told() -> None:
    text = full_traceback(raised(EXCEPTIONS["SyntaxOfBytes"]()))
    assert "in throw" in text
    assert text.endswith("SyntaxError: x (f, line 1)")


def test_a_group_s_inner_errors_and_causes_are_told() -> None:
    group = ExceptionGroup("several", [ValueError("inner")])
    group.__cause__ = KeyError("before")
    assert "ValueError: inner" in full_traceback(group)
    assert "KeyError: 'before'" in full_traceback(group)


def test_one_without_a_text_is_told_by_its_type() -> None:
    assert told(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert told(ValueError("no")) == "ValueError: no"


def test_what_a_class_is_does_not_depend_on_what_it_says() -> None:
    assert is_a(ClassRaises(), Exception)
    assert not is_a(EXCEPTIONS["ClaimsToBeFinal"](), ValueError)
