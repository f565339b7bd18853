"""The kit is built on what the rest of headrace uses too, and on nothing that is private there."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import headrace

SOURCES = Path(headrace.__file__).parent
KIT = sorted((SOURCES / "testing").glob("*.py"))
OWN = "headrace.testing"


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def reaches(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield what a module takes that is private elsewhere."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if is_private(name):
                yield node.lineno, name
            case ast.ImportFrom(module=str(module), names=aliases):
                names = [*module.split("."), *(alias.name for alias in aliases)]
                yield from ((node.lineno, name) for name in names if is_private(name))
            case ast.Call(func=ast.Name(id="getattr" | "setattr"), args=[_, name, *_]):
                if isinstance(name, ast.Constant) and is_private(str(name.value)):
                    yield node.lineno, str(name.value)


def private_names(kind: type) -> set[str]:
    """Return the private names that a class uses on itself."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    return {name for name in defined | used if is_private(name)}


def kit_classes() -> list[type]:
    modules = [import_module(f"{OWN}.{path.stem}") for path in KIT if path.stem != "__init__"]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
    ]


def bases_elsewhere(kind: type) -> list[type]:
    return [
        base
        for base in kind.__mro__
        if base.__module__.startswith("headrace.") and not base.__module__.startswith(f"{OWN}.")
    ]


def imported() -> set[str]:
    """Return the names that the kit imports from the rest of headrace."""
    return {
        alias.name
        for path in KIT
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom)
        and node.module is not None
        and node.module.startswith("headrace.")
        and not node.module.startswith(f"{OWN}.")
        for alias in node.names
    }


def names_elsewhere() -> Iterator[str]:
    """Yield the names that the rest of headrace uses, also as ``"module:name"``."""
    for path in SOURCES.rglob("*.py"):
        if SOURCES / "testing" in path.parents:
            continue
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Name(id=name):
                    yield name
                case ast.Constant(value=str(text)):
                    yield text.rpartition(":")[2]


def test_the_kit_uses_no_private_name() -> None:
    found = [f"{path.name}:{line} {name}" for path in KIT for line, name in reaches(parsed(path))]
    assert found == []


def test_what_the_kit_derives_shares_no_private_name_with_its_base() -> None:
    pairs = [(kind, base) for kind in kit_classes() for base in bases_elsewhere(kind)]
    assert pairs
    shared = {
        f"{kind.__name__} of {base.__name__}": names
        for kind, base in pairs
        if (names := private_names(kind) & private_names(base))
    }
    assert shared == {}


def test_nothing_is_there_for_the_kit_alone() -> None:
    assert imported()
    assert imported() - set(names_elsewhere()) == set()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from headrace.app import _hidden", ["_hidden"]),
        ("from headrace._inner import shown", ["_inner"]),
        ("app._clients = None", ["_clients"]),
        ("self._app._clients", ["_clients"]),
        ("setattr(app, '_clients', None)", ["_clients"]),
        ("self._clients", []),
        ("app.__class__.__name__", []),
    ],
)
def test_a_private_name_is_found(source: str, names: list[str]) -> None:
    assert [name for _, name in reaches(ast.parse(source))] == names


def test_a_shared_private_name_is_found() -> None:
    class Base:
        def __init__(self) -> None:
            self._number = 0

    class Derived(Base):
        def number(self) -> int:
            return self._number

    assert private_names(Derived) & private_names(Base) == {"_number"}
