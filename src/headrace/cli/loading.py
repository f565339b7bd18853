"""Imports a user's app by its path."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.app import App
from headrace.cli.options import Target
from headrace.errors import AppImportError
from headrace.job import check_name
from headrace.modules import check_modules, import_named, import_tree, module_of_file
from headrace.plain import shown
from headrace.storage.connect import check_url
from headrace.twin import AppTwin, app_of

DEFAULT_ATTRIBUTE = "app"


def load_app(path: str) -> App[Any]:
    """Import ``module:attribute``; without an attribute it is ``app``.

    Raises:
        AppImportError: the module can't be imported, or there is no app in it.
    """
    module_name, sign, attribute = path.partition(":")
    if not module_name or (sign and not attribute):
        raise AppImportError(f"{shown(path)} names no app: say which as module:attribute")
    meant = module_of_file(module_name)
    if meant is not None:
        raise AppImportError(
            f"{shown(path)} is a file, and an app is named by its module: "
            f"use {meant}{sign}{attribute}"
        )
    attribute = attribute or DEFAULT_ATTRIBUTE
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = import_named(module_name, subject=f"the app {shown(path)}")
    found: Any = module
    for name in attribute.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise AppImportError(
                f"the app {shown(path)} can't be imported: {shown(module_name)} has no "
                f"{shown(attribute)}; {_hint(module)}"
            ) from None
    found = app_of(found)
    if not isinstance(found, App):
        raise AppImportError(
            f"the app {shown(path)} is of type {type(found).__name__} and no headrace.App: "
            f"{_hint(module)}"
        )
    return found


def _hint(module: ModuleType) -> str:
    """Return which apps a module has, and how one is said."""
    names = [name for name, value in vars(module).items() if isinstance(value, App | AppTwin)]
    if not names:
        return "say which as module:attribute"
    return f"perhaps {' or '.join(f'{module.__name__}:{name}' for name in names)}"


def load_app_with_tasks(path: str, target: Target, modules: Sequence[str]) -> App[Any]:
    """Import an app as `load_app_for`, and all modules of its tasks.

    Args:
        path: the app's.
        target: what the command's options say.
        modules: that declare tasks too, beside those that the app includes.

    Raises:
        AppImportError: a module can't be imported, or there is no app in it.
        InvalidOption: ``modules`` are no names of modules, or the app has a bad option.
    """
    modules = check_modules(modules, name="--import")
    app = load_app_for(path, target)
    app.load()
    for module in modules:
        import_tree(module, cause=f"--import {module}")
    return app


def load_app_for(path: str, target: Target) -> App[Any]:
    """Import an app and let the command's own options go before what its code says.

    The environment does not: the app reads the same variables where its code names nothing, and a
    worker whose code says one tenant must not silently serve another's queues.
    """
    app = load_app(path)
    if target.url is not None and target.is_url_explicit:
        app.url = check_url(target.url)
    if target.is_tenant_explicit:
        app.tenant = check_name(target.tenant_name, what="tenant")
    app.allow_eviction = app.allow_eviction or target.allow_eviction
    return app
