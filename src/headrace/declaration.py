"""What a function is as a task: its name, and where it can run."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import dropwhile, takewhile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from headrace.errors import UsageError
from headrace.plain import shown
from headrace.settings import ExecutorKind

MAIN = "__main__"

_OF_METHODS = ("self", "cls")
_OF_CONTEXTS = ("context", "ctx")
_STATIC = "put @staticmethod above @app.task, and leave out its `self` or `cls`"


def default_name(function: Callable[..., Any]) -> str:
    """Return ``module.qualname``; the main program goes by the name under which others import it.

    Warns where there is no such name, since only this process can then run the task's jobs.
    """
    module = function.__module__
    if module == MAIN:
        found = _module_of_main(function)
        if found is None:
            warnings.warn(
                f"the task {MAIN}.{function.__qualname__} is in no file that a worker could "
                "import, so only this process can run its jobs: move it to a module, or pass name=",
                stacklevel=1 + len(list(takewhile(_is_ours, _frames(inspect.currentframe())))),
            )
        module = found or MAIN
    return f"{module}.{function.__qualname__}"


def default_app_name() -> str:
    """Return the name of the module that makes an app, for the main program as `default_name`."""
    frame = next(dropwhile(_is_ours, _frames(inspect.currentframe())), None)
    if frame is None:
        return MAIN
    module = _module_of(frame)
    return (_main_module(frame.f_globals, frame.f_code) or MAIN) if module == MAIN else module


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_ours(frame: FrameType) -> bool:
    # An `App[State](...)` is called by typing.
    module = _module_of(frame)
    return module == "typing" or module.partition(".")[0] == "headrace"


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", MAIN))


def _module_of_main(function: Callable[..., Any]) -> str | None:
    bare = inspect.unwrap(function)
    own = getattr(bare, "__globals__", None) or vars(sys.modules[MAIN])
    return _main_module(own, getattr(bare, "__code__", None))


def _main_module(own: Mapping[str, Any], code: CodeType | None) -> str | None:
    """Return the name of the main program's own module, None if it is in no file.

    The globals of its code tell, since a profiler or a debugger runs the program in another main.
    """
    file = own.get("__file__") or ""
    if code is not None and code.co_filename != file and not Path(code.co_filename).is_file():
        return None  # typed at a prompt, whose own program is no home of it, or in a notebook
    spec = own.get("__spec__")
    if spec is not None and spec.name != MAIN:
        return str(spec.name)
    path = Path(file)
    if not path.is_file():
        return None
    # `python pkg` runs pkg/__main__.py.
    return f"{path.resolve().parent.name}.{MAIN}" if path.stem == MAIN else path.stem


def is_redefinition(function: Callable[..., Any], before: Callable[..., Any]) -> bool:
    """Whether one function takes the other's place: one defined again at a prompt or in a notebook.

    Also one of a module that was reloaded there. In a program two of one name are a mistake.
    """
    module, name = function.__module__, function.__qualname__
    is_same = (before.__module__, before.__qualname__) == (module, name)
    return is_same and (module == MAIN or hasattr(sys, "ps1"))


def check_function(function: Callable[..., Any]) -> None:
    """See that a function can be a task's, whose arguments are stored.

    Raises:
        UsageError: it is no function, a generator or a method, or its first parameter may be meant
            as a `Context` and isn't annotated.
    """
    if isinstance(function, staticmethod | classmethod):
        raise UsageError(f"{function.__qualname__} is a method, not a function: {_STATIC}")
    if isinstance(function, type):
        raise UsageError(f"{function.__qualname__} is a class: decorate a def or an async def")
    if not callable(function) or not hasattr(function, "__qualname__"):
        raise UsageError(f"{shown(function)} is not a function: decorate a def or an async def")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"{function.__qualname__} is a generator: return a value, and pass pieces of it on by "
            "context.emit"
        )
    _check_first(function)


def _check_first(function: Callable[..., Any]) -> None:
    name = function.__qualname__
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except ValueError as error:
        raise UsageError(f"the parameters of {name} can't be read ({error})") from None
    if first is None or first.annotation is not first.empty:
        return
    scope = name.rpartition(".")[0]
    if first.name in _OF_METHODS and scope and not scope.endswith("<locals>"):
        raise UsageError(
            f"{name} is a method, and its {first.name!r} can't be stored: make it a function, or "
            f"{_STATIC}"
        )
    if first.name in _OF_METHODS or first.name in _OF_CONTEXTS:
        raise UsageError(
            f"the first parameter of {name} has no annotation: write `context: Context` if the "
            f"worker is to fill it in, or the type of {first.name!r} if callers pass it"
        )


def executor_kind(function: Callable[..., Any], wanted: str | None) -> ExecutorKind:
    """Return where a function that was checked runs.

    Raises:
        UsageError: it can't run there.
    """
    if wanted not in (None, "thread", "process"):
        raise UsageError(f"executor={shown(wanted)} is not known: use 'thread' or 'process'")
    if inspect.iscoroutinefunction(function):
        if wanted is not None:
            raise UsageError(
                f"{function.__qualname__} is an async def function, which runs in the event loop: "
                f"make it a plain def for executor={wanted!r}"
            )
        return ExecutorKind.COROUTINE
    if wanted != "process":
        return ExecutorKind.THREAD
    if "<" in function.__qualname__:
        raise UsageError(
            f"{function.__qualname__} can't be found from another process: define it at the top "
            "level of a module for executor='process'"
        )
    return ExecutorKind.PROCESS
