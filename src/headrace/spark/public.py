"""Packages whose public names are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from headrace.spark.requirements import check_pyspark


def on_first_use(package: str, modules: Mapping[str, str]) -> None:
    """Let a package import the module of each public name when that is first used.

    Using one raises `MissingRequirement` where pyspark or pyarrow is missing or too old.

    Args:
        package: its name, while it is imported.
        modules: the module of each name, which may be called as the name is.
    """

    class Package(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name not in modules:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            check_pyspark()
            return getattr(import_module(f"{package}.{modules[name]}"), name)

        def __setattr__(self, name: str, value: object) -> None:
            # Importing a module puts it into its package, where a function has this name.
            if name not in modules or not isinstance(value, ModuleType):
                super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return [*super().__dir__(), *modules]

    sys.modules[package].__class__ = Package
