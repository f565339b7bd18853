"""Where the server's and redis-py's errors become ours; nowhere else.

What leaves a connection has been translated: nobody beyond it meets an error of redis-py.
"""

from __future__ import annotations

from typing import NamedTuple

from redis import exceptions as theirs

from headrace.errors import (
    QueueFull,
    ReplyLost,
    StageLost,
    StaleCall,
    StorageError,
    StorageFault,
    StorageFull,
    StorageRefused,
    StorageUnavailable,
    TooManyReaders,
    TooManySchedules,
    TooManyStrikes,
)
from headrace.plain import cut
from headrace.storage.redis import keys


class FunctionMissing(StorageUnavailable):
    """The server doesn't have the library: it is new, was flushed or failed over."""


class LibraryKnown(StorageFault):
    """Loading the library failed because somebody else just loaded it."""


class NotPermitted(StorageRefused):
    """The user may not use a command, a key or a channel."""


class Meaning(NamedTuple):
    """What some errors mean, and what to do about them."""

    kind: type[StorageError]
    words: frozenset[str] = frozenset()
    """First words of the server's errors."""
    texts: tuple[str, ...] = ()
    """What is in the text of those that begin with another word, such as ERR; in small letters."""
    classes: tuple[type[Exception], ...] = ()
    """redis-py's; one that no line names is what its nearest base is."""
    advice: str = ""
    is_ours: bool = False
    """Whether our functions say it: the word is for this table, and the text for people."""


_MEANINGS = (
    # An outage: nothing was done, and it is worth trying again.
    Meaning(
        StorageUnavailable,
        words=frozenset(
            {
                "BUSY",
                "CLUSTERDOWN",
                "LOADING",
                "MASTERDOWN",
                "MISCONF",
                "NOREPLICAS",
                "READONLY",
                "TRYAGAIN",
                "UNBLOCKED",
                "UNKILLABLE",
            }
        ),
        texts=("max number of clients reached",),
        classes=(
            theirs.ClusterDownError,
            theirs.ConnectionError,
            theirs.ReadOnlyError,
            theirs.TimeoutError,
            theirs.TryAgainError,
            OSError,
        ),
    ),
    # A refusal: somebody has to change something first.
    Meaning(
        NotPermitted,
        words=frozenset({"NOPERM"}),
        texts=("unknown command",),
        classes=(theirs.NoPermissionError,),
        advice="check the URL's user, password and permissions",
    ),
    Meaning(
        StorageRefused,
        words=frozenset({"NOAUTH", "WRONGPASS"}),
        texts=("without any password", "invalid password", "for 'auth' command"),
        classes=(
            theirs.AuthenticationError,
            theirs.AuthenticationWrongNumberOfArgsError,
            theirs.AuthorizationError,
            theirs.ExternalAuthProviderError,
        ),
        advice="check the URL's user, password and permissions",
    ),
    Meaning(
        StorageRefused,
        words=frozenset({"ASK", "CROSSSLOT", "MOVED"}),
        texts=("in cluster mode",),
        classes=(theirs.AskError, theirs.ClusterCrossSlotError),
        advice="this is a node of a cluster: name a server that has every slot, and database 0",
    ),
    Meaning(
        StorageRefused,
        texts=("db index",),
        advice="the server has no such database: name another in the URL",
    ),
    Meaning(
        StorageRefused,
        words=frozenset({"DENIED", "NOPROTO"}),
        advice="see the server's version and settings",
    ),
    Meaning(StorageRefused, words=frozenset({"NEWLAYOUT"}), is_ours=True),
    Meaning(
        StorageFull,
        words=frozenset({"OOM"}),
        classes=(theirs.OutOfMemoryError,),
        advice="Redis is at maxmemory: let workers drain, or give it more memory",
    ),
    Meaning(QueueFull, words=frozenset({"QUEUEFULL"})),
    Meaning(StaleCall, words=frozenset({"STALECALL"}), is_ours=True),
    Meaning(
        TooManySchedules,
        words=frozenset({"TOOMANY"}),
        advice="delete those that are not needed",
        is_ours=True,
    ),
    Meaning(
        StageLost,
        words=frozenset({"STAGELOST"}),
        advice="stage it again under a new token",
        is_ours=True,
    ),
    Meaning(
        TooManyReaders,
        words=frozenset({"TOOREADERS"}),
        advice="forget those that are not used",
        is_ours=True,
    ),
    Meaning(TooManyStrikes, words=frozenset({"TOOSTRIKES"}), advice="lift some", is_ours=True),
    Meaning(FunctionMissing, texts=("function not found",)),
    Meaning(LibraryKnown, texts=("already exists",)),
)
_FAULT = Meaning(StorageFault)  # anything else should never come
_CUT = Meaning(StorageUnavailable)  # a task was cancelled, and took its connection along

_BY_WORD = {word: meaning for meaning in _MEANINGS for word in meaning.words}
_BY_TEXT = [(text, meaning) for meaning in _MEANINGS for text in meaning.texts]
_BY_CLASS = {cls: meaning for meaning in _MEANINGS for cls in meaning.classes}

_ANSWERS = (theirs.ResponseError, theirs.BusyLoadingError)
"""What the server said itself, so that no connection was lost."""

TEXT_LIMIT = 500
"""Most characters of the server's or the system's own words, which may repeat a long path."""


def refused(text: str) -> StorageError:
    """Return our error for the server's own. Nothing was done, or the server says what it did."""
    return _made(_told(text), text)


def translate(error: BaseException, where: str = "") -> StorageError:
    """Return our error for one of redis-py's or of the system's.

    Args:
        error: what redis-py raised, or what ended a connection before the call was sent.
        where: the server, as `Location.where` names it.
    """
    if isinstance(error, StorageError):
        return error
    text = str(error)
    meaning = _told(text) if isinstance(error, theirs.RedisError) else _FAULT
    if meaning is _FAULT:
        known = (_BY_CLASS[cls] for cls in type(error).__mro__ if cls in _BY_CLASS)
        meaning = next(known, _FAULT if isinstance(error, Exception) else _CUT)
    return _made(meaning, text or type(error).__name__, where)


def not_connected(error: BaseException, where: str) -> StorageError:
    """Return what a call hears for which no connection could be made."""
    ours = translate(error, where)
    if type(ours) is not StorageUnavailable or isinstance(error, _ANSWERS):
        return ours
    return StorageUnavailable(
        f"{str(ours).rstrip('.')}: is it running there? Name another by url=, --url or HEADRACE_URL"
    )


def lost(error: BaseException, where: str) -> ReplyLost:
    """Return what a call hears that was on its way when ``error`` ended its connection."""
    return ReplyLost(_said(str(error) or type(error).__name__, where))


def unsent(error: ReplyLost) -> StorageUnavailable:
    """Return what a call hears that was to follow another one, whose answer was lost."""
    return StorageUnavailable(str(error))


def _told(text: str) -> Meaning:
    """Return the meaning of a server's words."""
    known = _BY_WORD.get(text.partition(" ")[0])
    if known is not None:
        return known
    lowered = text.lower()
    return next((meaning for part, meaning in _BY_TEXT if part in lowered), _FAULT)


def _made(meaning: Meaning, text: str, where: str = "") -> StorageError:
    if meaning.kind is QueueFull:
        _, limit, waiting, root, *_ = text.split()
        return QueueFull(keys.queue_of(root), limit=int(limit), waiting=int(waiting))
    if meaning.is_ours:
        text = text.partition(" ")[2]
    advice = f" ({meaning.advice})" if meaning.advice else ""
    return meaning.kind(f"{_said(cut(text, TEXT_LIMIT), where)}{advice}")


def _said(text: str, where: str) -> str:
    """Return who said it, and what; redis-py's own words may name the server already."""
    return f"Redis at {where}: {text}" if where and where not in text else f"Redis: {text}"
