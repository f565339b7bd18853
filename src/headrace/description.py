"""What can be told of an exception, whatever its class does: nothing here raises.

An exception is a user's object. Its ``__str__``, its properties and its class's attributes are code
that may raise anything, `SystemExit` too, and this is called where an attempt must end.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import TypeGuard, TypeVar

import msgspec

from headrace import errors
from headrace.job import ErrorInfo
from headrace.plain import encodable

E = TypeVar("E", bound=BaseException)

MESSAGE_LIMIT = 2_000
TRACEBACK_LIMIT = 8_000

RELATED_LIMIT = 1_000
"""An exception with more causes and inner errors is told without them; a property may bring an
endless chain."""

_package = os.path.join(os.path.dirname(__file__), "")
RUNNERS = (
    f"{_package}worker{os.sep}",
    f"{_package}testing{os.sep}",
    f"{_package}django{os.sep}tasks.py",
    f"{_package}middleware.py",
    os.path.join(os.path.dirname(futures.__file__), "thread.py"),
)
"""The files of what calls handlers and what is around them."""

SELF_EXPLAINING = (errors.UsageError, msgspec.MsgspecError)
"""Errors whose message says all, where they were raised by our own code."""

# Read past the attributes of an exception's own class, and of the class of that.
_qualname_of = type.__dict__["__qualname__"].__get__
_module_of = type.__dict__["__module__"].__get__
_traceback_of = BaseException.__dict__["__traceback__"].__get__


def describe(error: BaseException, start: int) -> ErrorInfo:
    """Return the history entry for an exception, each part cut to its limit."""
    return ErrorInfo(
        type=_name(type(error)),
        message=message_of(error),
        traceback=encodable(handler_traceback(error)[-TRACEBACK_LIMIT:]),
        start=start,
    )


def told(error: BaseException) -> str:
    """Return an exception's type and text, as events, logs and other errors quote it."""
    name, message = _name(type(error)), message_of(error)
    return f"{name}: {message}" if message else name


def full_traceback(error: BaseException) -> str:
    """Return its traceback as text, with what it was raised from as far as that can be told."""
    return _traceback(error, list)


def handler_traceback(error: BaseException) -> str:
    """Return the same without what every handler has above it: the frames of the worker.

    It is empty for an error of ours that was raised before or after the handler: its message says
    which argument or result is wrong, and how.
    """
    with suppress(BaseException):
        if issubclass(type(error), SELF_EXPLAINING) and _is_ours(error):
            return ""
    return _traceback(error, without_runners)


Keep = Callable[[list[traceback.FrameSummary]], list[traceback.FrameSummary]]
"""Returns the frames of a stack that are shown."""


def _traceback(error: BaseException, keep: Keep) -> str:
    with suppress(BaseException):
        if _has_few_relatives(error):
            return _with_relatives(error, keep)
    # Without causes, notes, inner errors and the fields of a SyntaxError: one of them is odd.
    with suppress(BaseException):
        frames = keep(traceback.extract_tb(traceback_of(error)))
        return "".join([*traceback.format_list(frames), told(error)])
    return ""


def _with_relatives(error: BaseException, keep: Keep) -> str:
    whole = traceback.TracebackException(
        type(error), error, traceback_of(error), lookup_lines=False, compact=True
    )
    parts = [whole]
    while parts:
        part = parts.pop()
        part.stack = traceback.StackSummary.from_list(keep(part.stack))
        parts += [near for near in (part.__cause__, part.__context__) if near is not None]
        parts += part.exceptions or []
    return "".join(whole.format())


def without_runners(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Return frames without those of the worker, unless there are no others."""
    return [frame for frame in frames if not frame.filename.startswith(RUNNERS)] or frames


def _is_ours(error: BaseException) -> bool:
    """Whether no code but ours has a part in it, nor in what it was raised from."""
    related: BaseException | None = error
    for _ in range(RELATED_LIMIT):
        if related is None:
            return True
        files = [f.f_code.co_filename for f, _ in traceback.walk_tb(traceback_of(related))]
        if not files or not all(file.startswith(_package) for file in files):
            return False
        related = related.__cause__ or related.__context__
    return False


def is_a(error: BaseException, kind: type[E]) -> TypeGuard[E]:
    """Whether it is of that class; `isinstance` would ask its ``__class__`` too."""
    return issubclass(type(error), kind)


def traceback_of(error: BaseException) -> TracebackType | None:
    """Return its traceback, whatever its class makes of ``__traceback__``."""
    found: TracebackType | None = _traceback_of(error)
    return found


def message_of(error: BaseException) -> str:
    """Return its text, cut to its limit."""
    try:
        message = str.__str__(str(error))  # which may be of a class derived from str
    except BaseException as broken:  # also SystemExit
        message = f"<its text can't be shown: {_name(type(broken))}>"
    return encodable(message[:MESSAGE_LIMIT])


def _name(kind: type[BaseException]) -> str:
    name = _said(lambda: _qualname_of(kind))
    module = _said(lambda: _module_of(kind))
    if module == errors.__name__:
        module = errors.__package__ or module  # from which everybody imports it
    if module and module != "builtins":
        name = f"{module}.{name}"
    return "".join(c for c in encodable(name[:MESSAGE_LIMIT]) if c.isprintable())


def _has_few_relatives(error: BaseException) -> bool:
    """Whether what is told along with it comes to an end, and soon."""
    known = {id(error): error}
    new = [error]
    while new:
        last = new.pop()
        found = [last.__cause__, last.__context__]
        if isinstance(last, BaseExceptionGroup):
            found += islice(last.exceptions, RELATED_LIMIT)
        for relative in found:
            if relative is not None and id(relative) not in known:
                known[id(relative)] = relative
                new.append(relative)
        if len(known) > RELATED_LIMIT:
            return False
    return True


def _said(get: Callable[[], object]) -> str:
    """Return a text that is a plain `str`, "" for anything else."""
    with suppress(BaseException):
        return str.__str__(get())
    return ""
