"""What can be told of an exception, whatever its class does: nothing here raises.

An exception is a user's object. Its ``__str__``, its properties and its class's attributes are code
that may raise anything, `SystemExit` too, and this is called where an attempt must end.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import TypeGuard, TypeVar

from headrace.job import ErrorInfo

E = TypeVar("E", bound=BaseException)

MESSAGE_LIMIT = 2_000
TRACEBACK_LIMIT = 8_000

RELATED_LIMIT = 1_000
"""An exception with more causes and inner errors is told without them; a property may bring an
endless chain."""

# Read past the attributes of an exception's own class, and of the class of that.
_qualname_of = type.__dict__["__qualname__"].__get__
_module_of = type.__dict__["__module__"].__get__
_traceback_of = BaseException.__dict__["__traceback__"].__get__


def describe(error: BaseException, start: int) -> ErrorInfo:
    """Return the history entry for an exception, each part cut to its limit."""
    return ErrorInfo(
        type=_name(type(error)),
        message=message_of(error),
        traceback=_encodable(full_traceback(error)[-TRACEBACK_LIMIT:]),
        start=start,
    )


def told(error: BaseException) -> str:
    """Return an exception's type and text, as events, logs and other errors quote it."""
    name, message = _name(type(error)), message_of(error)
    return f"{name}: {message}" if message else name


def full_traceback(error: BaseException) -> str:
    """Return its traceback as text, with what it was raised from as far as that can be told."""
    with suppress(BaseException):
        if _has_few_relatives(error):
            return "".join(traceback.format_exception(error))
    # Without causes, notes, inner errors and the fields of a SyntaxError: one of them is odd.
    with suppress(BaseException):
        return "".join([*traceback.format_tb(traceback_of(error)), told(error)])
    return ""


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
    return _encodable(message[:MESSAGE_LIMIT])


def _name(kind: type[BaseException]) -> str:
    name = _said(lambda: _qualname_of(kind))
    module = _said(lambda: _module_of(kind))
    if module and module != "builtins":
        name = f"{module}.{name}"
    return "".join(c for c in _encodable(name[:MESSAGE_LIMIT]) if c.isprintable())


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


def _encodable(text: str) -> str:
    """Replace lone surrogates, which can't be encoded."""
    return text.encode(errors="replace").decode()
