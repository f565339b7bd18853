"""The options of commands that look at or steer what is stored: where it is, said or by an app."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from headrace.app import App
from headrace.cli.loading import load_app_for
from headrace.cli.options import Function, Target, app_option, on_target
from headrace.errors import AppImportError


def on_app_target(function: Function) -> Callable[..., Any]:
    """Add the options that say which storage, one of them an app's, and pass on a ``target``.

    Nothing is imported where URL and tenant are both said: so what is stored can be seen while the
    app's code is broken.
    """

    @app_option
    @on_target
    @functools.wraps(function)
    def wrapper(*args: Any, target: Target, app_path: str | None, **rest: Any) -> Any:
        return function(*args, target=target_of(app_path, target), **rest)

    return wrapper


def target_of(path: str | None, target: Target) -> Target:
    """Return the storage that options say, as far as an app at ``path`` does not say it.

    Raises:
        AppImportError: the app is needed, and can't be imported.
    """
    if path is None or target.is_explicit:
        return target
    try:
        app = load_app_for(path, target)
    except AppImportError as error:
        raise AppImportError(f"{error}; with both --url and --tenant no app is needed") from error
    return place_of_app(app, target)


def place_of_app(app: App[Any], target: Target) -> Target:
    """Return the storage of an app that was loaded for ``target``."""
    return msgspec.structs.replace(
        target, url=app.url, tenant=app.tenant, allow_eviction=app.allow_eviction
    )
