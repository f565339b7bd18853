"""The error tree, and what becomes of redis-py's errors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
import redis.exceptions

import headrace.errors
from headrace import (
    HeadraceError,
    InvalidArguments,
    InvalidOption,
    JobError,
    NotSerializable,
    OutsideHandler,
    PayloadTooLarge,
    ReplyLost,
    StorageError,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
    UnknownTask,
    UsageError,
    WaitTimeout,
)
from headrace.errors import Signal, StaleCall, StorageFault
from headrace.storage.redis.errors import NotPermitted, translate


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


def redis_errors() -> list[type[Exception]]:
    return [
        value
        for _, value in inspect.getmembers(redis.exceptions, inspect.isclass)
        if issubclass(value, Exception) and value.__module__ == "redis.exceptions"
    ]


@pytest.mark.parametrize("kind", redis_errors(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("sent", [False, True])
def test_every_error_of_redis_py_becomes_one_of_ours(kind: type[Exception], *, sent: bool) -> None:
    error = kind.__new__(kind)
    error.args = ("some text",)
    assert isinstance(translate(error, sent=sent), StorageError)


@pytest.mark.parametrize(
    ("error", "unsent", "sent"),
    [
        (redis.ConnectionError("reset"), StorageUnavailable, ReplyLost),
        (redis.TimeoutError("slow"), StorageUnavailable, ReplyLost),
        (OSError("no route"), StorageUnavailable, ReplyLost),
        (redis.AuthenticationError("no"), StorageRefused, StorageRefused),
        (redis.exceptions.NoPermissionError("no"), NotPermitted, NotPermitted),
        (redis.exceptions.OutOfMemoryError("full"), StorageFull, StorageFull),
        (redis.exceptions.ReadOnlyError("replica"), StorageUnavailable, StorageUnavailable),
        (redis.BusyLoadingError("loading"), StorageUnavailable, StorageUnavailable),
        (redis.ResponseError("STALECALL 1 is older"), StaleCall, StaleCall),
        (redis.ResponseError("MISCONF disk"), StorageUnavailable, StorageUnavailable),
        (redis.ResponseError("WRONGTYPE of key"), StorageFault, StorageFault),
    ],
)
def test_a_sent_call_whose_connection_broke_counts_as_unknown(
    error: Exception, unsent: type[StorageError], sent: type[StorageError]
) -> None:
    assert type(translate(error)) is unsent
    assert type(translate(error, sent=True)) is sent


def test_a_full_server_says_what_to_do() -> None:
    error = translate(redis.exceptions.OutOfMemoryError("command not allowed"))
    assert "let workers drain" in str(error)
