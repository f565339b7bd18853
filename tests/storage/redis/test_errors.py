"""Every error that redis-py and the server can raise becomes one of ours, by what it means."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any

import pytest
from redis import exceptions
from redis.asyncio.connection import DefaultParser
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
from headrace.storage.redis.errors import (
    FunctionMissing,
    LibraryKnown,
    NotPermitted,
    lost,
    refused,
    translate,
)

CLASSES = sorted(
    (
        cls
        for cls in vars(exceptions).values()
        if isinstance(cls, type) and issubclass(cls, Exception) and not issubclass(cls, Enum)
    ),
    key=lambda cls: cls.__name__,
)

# What is none of these is an answer that makes no sense: a fault.
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
    NotPermitted: {"NoPermissionError"},
    StorageRefused: {
        "AskError",
        "AuthenticationError",
        "AuthenticationWrongNumberOfArgsError",
        "AuthorizationError",
        "ClusterCrossSlotError",
        "ExternalAuthProviderError",
        "MovedError",
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


WORDS: list[tuple[str, type[StorageError]]] = [
    ("LOADING Redis is loading the dataset in memory", StorageUnavailable),
    ("BUSY Redis is busy running a script", StorageUnavailable),
    ("UNKILLABLE The busy script has written", StorageUnavailable),
    ("MISCONF Redis is configured to save RDB snapshots", StorageUnavailable),
    ("NOREPLICAS Not enough good replicas to write.", StorageUnavailable),
    ("READONLY You can't write against a read only replica.", StorageUnavailable),
    ("MASTERDOWN Link with MASTER is down", StorageUnavailable),
    ("CLUSTERDOWN The cluster is down", StorageUnavailable),
    ("TRYAGAIN Multiple keys request during rehashing of slot", StorageUnavailable),
    ("UNBLOCKED force unblock from blocking operation", StorageUnavailable),
    ("ERR max number of clients reached", StorageUnavailable),
    ("OOM command not allowed when used memory > 'maxmemory'.", StorageFull),
    ("NOAUTH Authentication required.", StorageRefused),
    ("WRONGPASS invalid username-password pair or user is disabled.", StorageRefused),
    ("ERR invalid password", StorageRefused),
    (
        "ERR AUTH <password> called without any password configured for the default user.",
        StorageRefused,
    ),
    ("ERR wrong number of arguments for 'auth' command", StorageRefused),
    ("NOPERM this user has no permissions to run the 'fcall' command", NotPermitted),
    ("ERR unknown command 'FCALL', with args beginning with: ", NotPermitted),
    ("NOPROTO unsupported protocol version", StorageRefused),
    ("DENIED Redis is running in protected mode", StorageRefused),
    ("MOVED 3999 127.0.0.1:6381", StorageRefused),
    ("ASK 3999 127.0.0.1:6381", StorageRefused),
    ("CROSSSLOT Keys in request don't hash to the same slot", StorageRefused),
    ("ERR DB index is out of range", StorageRefused),
    ("ERR SELECT is not allowed in cluster mode", StorageRefused),
    ("NEWLAYOUT the queue has layout 2, this release knows 1", StorageRefused),
    ("STALECALL call 3 is older than 4", StaleCall),
    ("ERR Function not found", FunctionMissing),
    ("ERR Library 'headrace_1' already exists", LibraryKnown),
    ("WRONGTYPE Operation against a key holding the wrong kind of value", StorageFault),
    ("NOSCRIPT No matching script.", StorageFault),
    ("EXECABORT Transaction discarded because of previous errors.", StorageFault),
    ("ERR user_function:12: attempt to index a nil value", StorageFault),
    ("", StorageFault),
]
"""What a server can say, from its own sources, and what it means to a caller."""


@pytest.mark.parametrize(("text", "expected"), WORDS, ids=lambda part: str(part)[:20])
def test_the_words_of_a_reply_decide(text: str, expected: type[StorageError]) -> None:
    error = refused(text)
    assert type(error) is expected
    assert text.partition(" ")[2] in str(error)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("TOOSTRIKES the queue has 100 strikes", "Redis: the queue has 100 strikes (lift some)"),
        ("NEWLAYOUT the queue has layout 9", "Redis: the queue has layout 9"),
        ("OOM no memory", "Redis: OOM no memory (Redis is at maxmemory: let workers drain, or "),
    ],
)
def test_the_words_of_our_own_functions_are_not_shown(text: str, told: str) -> None:
    assert str(refused(text)).startswith(told)


@pytest.mark.parametrize(("text", "expected"), WORDS, ids=lambda part: str(part)[:20])
def test_redis_py_s_reading_of_a_reply_means_the_same(
    text: str, expected: type[StorageError]
) -> None:
    parse: Any = DefaultParser.parse_error
    assert type(translate(parse(text))) is expected


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
def test_what_breaks_a_connection_is_told_with_the_server_s_name(error: BaseException) -> None:
    what = str(error) or type(error).__name__
    before, after = translate(error, "db1:6379"), lost(error, "db1:6379")
    assert (type(before), type(after)) == (StorageUnavailable, ReplyLost)
    assert str(before) == str(after) == f"Redis at db1:6379: {what}"


def test_a_server_that_redis_py_names_is_not_named_twice() -> None:
    error = exceptions.ConnectionError("Error 111 connecting to db1:6379. Connection refused.")
    assert str(translate(error, "db1:6379")) == f"Redis: {error}"


def test_anything_else_is_a_fault() -> None:
    assert type(translate(RuntimeError("what?"))) is StorageFault
    assert type(translate(RedisError())) is StorageFault


def test_advice_goes_with_what_an_operator_can_mend() -> None:
    assert "maxmemory" in str(translate(exceptions.OutOfMemoryError("command not allowed")))
    assert "password" in str(translate(exceptions.AuthenticationError("invalid")))
    layout = str(translate(ResponseError("NEWLAYOUT the queue has layout 2")))
    assert "password" not in layout
