"""Where the server's and redis-py's errors become ours; nowhere else."""

from __future__ import annotations

from redis import exceptions as redis_errors

from headrace.errors import (
    ReplyLost,
    StaleCall,
    StorageError,
    StorageFault,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
)

_BY_CODE: dict[str, type[StorageError]] = {
    "STALECALL": StaleCall,
    "NEWLAYOUT": StorageRefused,
    "MISCONF": StorageUnavailable,
    "BUSY": StorageUnavailable,
    "NOREPLICAS": StorageUnavailable,
    "UNBLOCKED": StorageUnavailable,
}

# The first match counts, so a subclass stands before its base.
_BY_CLASS: tuple[tuple[type[BaseException], type[StorageError]], ...] = (
    (redis_errors.AuthenticationError, StorageRefused),
    (redis_errors.AuthorizationError, StorageRefused),
    (redis_errors.ExternalAuthProviderError, StorageRefused),
    (redis_errors.AuthenticationWrongNumberOfArgsError, StorageRefused),
    (redis_errors.NoPermissionError, StorageRefused),
    (redis_errors.OutOfMemoryError, StorageFull),
    (redis_errors.ReadOnlyError, StorageUnavailable),
    (redis_errors.MasterDownError, StorageUnavailable),
    (redis_errors.ClusterDownError, StorageUnavailable),
    (redis_errors.TryAgainError, StorageUnavailable),
    (redis_errors.AskError, StorageRefused),
    (redis_errors.ClusterCrossSlotError, StorageRefused),
    (redis_errors.BusyLoadingError, StorageUnavailable),
    (redis_errors.MaxConnectionsError, StorageUnavailable),
    (redis_errors.ConnectionError, StorageUnavailable),
    (redis_errors.TimeoutError, StorageUnavailable),
    (redis_errors.RedisError, StorageFault),
    (redis_errors.RedisClusterException, StorageFault),
    (OSError, StorageUnavailable),
    (Exception, StorageFault),
    # A caller that was cancelled while it wrote broke the connection of all who wait on it.
    (BaseException, StorageUnavailable),
)

_ADVICE: dict[type[StorageError], str] = {
    StorageFull: "Redis is at maxmemory: let workers drain, or give it more memory",
    StorageRefused: "check the URL's user, password and permissions",
}


def is_missing_function(error: BaseException) -> bool:
    """Whether the server doesn't have the library: it is new, was flushed or failed over."""
    return isinstance(error, redis_errors.ResponseError) and "Function not found" in str(error)


def is_known_library(error: BaseException) -> bool:
    """Whether loading failed because somebody else just loaded it."""
    return isinstance(error, redis_errors.ResponseError) and "already exists" in str(error)


def translate(error: BaseException, *, sent: bool = False) -> StorageError:
    """Return our error for one of redis-py's.

    Args:
        error: what redis-py raised.
        sent: whether a call was on its way, so that a lost connection leaves its effect unknown.
    """
    text = str(error) or type(error).__name__
    code = text.partition(" ")[0]
    # A library that was flushed between its loading and the call: nothing was done, so try again.
    kind = StorageUnavailable if is_missing_function(error) else _BY_CODE.get(code)
    if kind is None:
        kind = next(ours for theirs, ours in _BY_CLASS if isinstance(error, theirs))
    is_reply = isinstance(error, redis_errors.ResponseError | redis_errors.BusyLoadingError)
    if kind is StorageUnavailable and sent and not is_reply:
        kind = ReplyLost
    advice = _ADVICE.get(kind, "")
    return kind(f"Redis: {text}{f' ({advice})' if advice and code not in _BY_CODE else ''}")
