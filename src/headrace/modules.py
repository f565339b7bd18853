"""Imports a program's own modules by name: its app's, and those that declare tasks.

What such a module raises becomes one typed error that says where. Packages are walked.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from headrace.description import is_a, told, traceback_of
from headrace.errors import AppImportError, InvalidOption
from headrace.plain import plain_text, shown


def check_modules(names: Iterable[str], *, name: str) -> tuple[str, ...]:
    """Return module names as plain strings; nothing is imported.

    Args:
        names: such as ``["shop.tasks", "shop.mail"]``.
        name: the option that says them.

    Raises:
        InvalidOption: these are no names of modules.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidOption(f"{name}={shown(names)}: pass a list of module names")
    return tuple(_check_module(module, name) for module in names)


def _check_module(module: str, name: str) -> str:
    text = plain_text(module)
    if text is not None and all(part.isidentifier() for part in text.split(".")):
        return text
    meant = None if text is None else module_of_file(text)
    hint = "as in shop.tasks" if meant is None else f"perhaps {meant}"
    raise InvalidOption(f"{name}={shown(module)} is no name of a module: use its full name, {hint}")


def module_of_file(path: str) -> str | None:
    """Return the name by which a file such as ``shop/jobs.py`` is imported, None if it is no path.

    It counts from the folder on Python's path that is nearest to it, or the working directory.
    """
    if not path.endswith(".py") and os.sep not in path:
        return None
    file = Path.cwd() / path.removesuffix(".py")
    roots = [root for root in (Path.cwd(), *map(Path, sys.path)) if root in file.parents]
    if not roots:
        return None
    parts = file.relative_to(max(roots, key=lambda root: len(root.parts))).parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None


def import_tree(name: str, *, cause: str) -> None:
    """Import a module, and all that are below it if it is a package, but ``__main__``.

    Args:
        name: the module's.
        cause: why, in a few words for the error.

    Raises:
        AppImportError: one of them can't be imported.
        InvalidOption: an app that one of them makes has a bad option.
    """
    module = import_named(name, subject=f"the module {shown(name)} ({cause})")
    for below in _below(module):
        import_tree(below, cause=cause)


def _below(module: ModuleType) -> Iterator[str]:
    for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module.__name__}."):
        if not found.name.endswith(".__main__"):  # which would run the program
            yield found.name


def import_named(name: str, *, subject: str) -> ModuleType:
    """Import one module.

    Args:
        name: the module's.
        subject: what the error is to begin with.

    Raises:
        AppImportError: it can't be imported.
        InvalidOption: an app that it makes has a bad option.
    """
    try:
        return importlib.import_module(name)
    except InvalidOption:
        raise  # of its App, whose URL and tenant the environment may have said
    except (Exception, SystemExit) as error:  # a user's module may do anything
        missing = error.name if type(error) is ModuleNotFoundError else None
        if missing and f"{name}.".startswith(f"{missing}."):
            where = f"in {os.getcwd()} or among what is installed"
            why = f"there is no module {shown(name)} {where}"
        else:
            why = f"{told(error)}{_place(error)}"
        raise AppImportError(f"{subject} can't be imported: {why}") from error


def _place(error: BaseException) -> str:
    """Return where in the user's code it was raised; the last frames may be a library's."""
    if is_a(error, SyntaxError):
        return ""
    own = [
        frame
        for frame in traceback.extract_tb(traceback_of(error))
        if frame.filename.startswith(os.getcwd())
        and "site-packages" not in frame.filename
        and frame.filename != __file__
    ]
    return f" ({os.path.relpath(own[-1].filename)}, line {own[-1].lineno})" if own else ""
