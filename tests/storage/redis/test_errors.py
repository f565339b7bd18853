"""Every error that redis-py and the server can raise becomes one of ours, by what it means."""

from __future__ import annotations

import asyncio
from enum import Enum

import pytest
from redis import exceptions
from redis.exceptions import RedisError, ResponseError

from headrace.errors import (
    ReplyLost,
    StaleCall,
    StorageError,
    StorageFault,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
)
from headrace.storage.redis.errors import is_known_library, is_missing_function, translate

CLASSES = sorted(
    (
        cls
        for cls in vars(exceptions).values()
        if isinstance(cls, type) and issubclass(cls, Exception) and not issubclass(cls, Enum)
    ),
    key=lambda cls: cls.__name__,
)

# What is neither of these is an answer that makes no sense: a fault.
MEANINGS: dict[type[StorageError], set[str]] = {
    StorageUnavailable: {
        "BusyLoadingError",
        "ClusterDownError",
        "ConnectionError",
        "MasterDownError",
        "MaxConnectionsError",
        "ReadOnlyError",
        "TimeoutError",
        "TryAgainError",
    },
    StorageFull: {"OutOfMemoryError"},
    StorageRefused: {
        "AskError",
        "AuthenticationError",
        "AuthenticationWrongNumberOfArgsError",
        "AuthorizationError",
        "ClusterCrossSlotError",
        "ExternalAuthProviderError",
        "MovedError",
        "NoPermissionError",
    },
}


def made(cls: type[Exception]) -> Exception:
    """Return an error of a class, as redis-py makes it."""
    if issubclass(cls, exceptions.AskError):
        return cls("3999 127.0.0.1:6381")
    return cls("something happened")


@pytest.mark.parametrize("cls", CLASSES)
def test_every_class_of_redis_py_means_one_of_ours(cls: type[Exception]) -> None:
    expected = next((ours for ours, names in MEANINGS.items() if cls.__name__ in names), None)
    error = translate(made(cls))
    assert type(error) is (expected or StorageFault)
    assert str(error).startswith("Redis: ")


def test_the_classes_named_here_are_all_there() -> None:
    named = set().union(*MEANINGS.values())
    assert named <= {cls.__name__ for cls in CLASSES}


@pytest.mark.parametrize("cls", CLASSES)
def test_only_a_lost_connection_leaves_the_effect_of_a_call_unknown(
    cls: type[Exception],
) -> None:
    error = made(cls)
    is_reply = isinstance(error, ResponseError | exceptions.BusyLoadingError)
    before, after = type(translate(error)), type(translate(error, sent=True))
    if before is StorageUnavailable and not is_reply:
        assert after is ReplyLost
    else:
        assert after is before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("STALECALL 3 is older than 4", StaleCall),
        ("NEWLAYOUT the queue has layout 2, this release knows 1", StorageRefused),
        ("MISCONF Redis is configured to save RDB snapshots", StorageUnavailable),
        ("BUSY Redis is busy running a script", StorageUnavailable),
        ("NOREPLICAS Not enough good replicas to write.", StorageUnavailable),
        ("UNBLOCKED force unblock from blocking operation", StorageUnavailable),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", StorageFault),
        ("ERR user_function:12: attempt to index a nil value", StorageFault),
        ("", StorageFault),
    ],
)
def test_the_first_word_of_a_reply_decides(text: str, expected: type[StorageError]) -> None:
    assert type(translate(ResponseError(text))) is expected
    assert type(translate(ResponseError(text), sent=True)) is expected


@pytest.mark.parametrize(
    "error",
    [
        OSError("no route"),
        ConnectionResetError(),
        TimeoutError(),
        BrokenPipeError(),
        # One caller was cancelled while it wrote, which broke the connection of all.
        asyncio.CancelledError(),
    ],
)
def test_what_breaks_a_connection_is_told_by_whether_the_call_was_sent(
    error: BaseException,
) -> None:
    assert type(translate(error)) is StorageUnavailable
    assert type(translate(error, sent=True)) is ReplyLost
    assert str(translate(error)) != "Redis: "


def test_anything_else_is_a_fault() -> None:
    assert type(translate(RuntimeError("what?"))) is StorageFault
    assert type(translate(RedisError())) is StorageFault


def test_advice_goes_with_what_an_operator_can_mend() -> None:
    assert "maxmemory" in str(translate(exceptions.OutOfMemoryError("command not allowed")))
    assert "password" in str(translate(exceptions.AuthenticationError("invalid")))
    layout = str(translate(ResponseError("NEWLAYOUT the queue has layout 2")))
    assert "password" not in layout


def test_a_missing_and_a_known_library_are_recognized() -> None:
    assert is_missing_function(ResponseError("Function not found"))
    assert not is_missing_function(ResponseError("no such key"))
    assert not is_missing_function(OSError("Function not found"))
    assert is_known_library(ResponseError("Library 'headrace_1' already exists"))
    assert not is_known_library(ResponseError("Function not found"))
