"""Imports a user's app by its path. Only `worker` and `enqueue` do: reading needs no user code."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from headrace.app import App
from headrace.cli.options import Target
from headrace.description import is_a, told, traceback_of
from headrace.errors import AppImportError, InvalidOption
from headrace.plain import shown
from headrace.storage.connect import check_url

DEFAULT_ATTRIBUTE = "app"


def load_app(path: str) -> App[Any]:
    """Import ``module:attribute``; without an attribute it is ``app``.

    Raises:
        AppImportError: the module can't be imported, or there is no app in it.
    """
    module_name, sign, attribute = path.partition(":")
    if not module_name or (sign and not attribute):
        raise AppImportError(f"{shown(path)} names no app: say which as module:attribute")
    attribute = attribute or DEFAULT_ATTRIBUTE
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    found: Any = _import(module_name, path)
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise AppImportError(
                f"the app {shown(path)} can't be imported: {shown(module_name)} has no "
                f"{shown(attribute)}; say which as module:attribute"
            ) from None
    if not isinstance(found, App):
        raise AppImportError(
            f"the app {shown(path)} is of type {type(found).__name__} and no headrace.App: "
            "say which as module:attribute"
        )
    return found


def load_app_for(path: str, target: Target) -> App[Any]:
    """Import an app and let the command's own options go before what its code says.

    A URL of the environment does not: the app reads the same variables where its code names none.
    """
    app = load_app(path)
    if target.url is not None and target.is_url_explicit:
        app.url = check_url(target.url)
    if target.tenant is not None:
        app.tenant = target.tenant_name
    app.allow_eviction = app.allow_eviction or target.allow_eviction
    return app


def _import(module_name: str, path: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except InvalidOption:
        raise  # of its App, whose URL and tenant the environment may have said
    except (Exception, SystemExit) as error:  # a user's module may do anything
        missing = error.name if type(error) is ModuleNotFoundError else None
        if missing and f"{module_name}.".startswith(f"{missing}."):
            where = f"in {os.getcwd()} or among what is installed"
            why = f"there is no module {shown(module_name)} {where}"
        else:
            why = f"{told(error)}{_place(error)}"
        raise AppImportError(f"the app {shown(path)} can't be imported: {why}") from error


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
