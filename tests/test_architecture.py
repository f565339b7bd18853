"""The rules of the code that no linter knows: sizes, names, waits, and what is public."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHON_FOLDERS = ("src", "tests", "examples", "benchmarks")
MAX_LINES = 500
MAX_METHODS = 12
CLOCKS = {"time", "asyncio", "anyio"}
UNFINISHED = ("TO" + "DO", "FIX" + "ME")
PUBLIC_MODULES = (
    "headrace",
    "headrace.events",
    "headrace.spark",
    "headrace.spark.pipeline",
    "headrace.storage",
    "headrace.testing",
)


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def lua_files() -> list[Path]:
    return sorted((ROOT / "lua").rglob("*.lua"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def place(path: Path, node: ast.expr | ast.stmt) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def is_public_module(name: str) -> bool:
    return name in PUBLIC_MODULES and importlib.util.find_spec(name) is not None


def public_names(module: str) -> set[str]:
    return set(importlib.import_module(module).__all__)


def sleeps(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that wait for a time: ``sleep`` of a clock, by any name, but ``sleep(0)``."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in CLOCKS
        for alias in node.names
        if alias.name == "sleep"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_sleep(node.func, names) and not yields_only(node):
            yield node


def is_sleep(called: ast.expr, names: set[str]) -> bool:
    match called:
        case ast.Attribute(value=ast.Name(id=module), attr="sleep"):
            return module in CLOCKS
        case ast.Name(id=name):
            return name in names
    return False


def yields_only(call: ast.Call) -> bool:
    match call.args:
        case [ast.Constant(value=value)]:
            return value == 0
    return False


def test_tests_wait_for_events_and_not_for_a_time() -> None:
    # Handlers in tests/apps stand for a user's slow work.
    free = (ROOT / "tests" / "support", ROOT / "tests" / "apps")
    found = [
        place(path, call)
        for path in python_files("tests")
        if not any(path.is_relative_to(folder) for folder in free)
        for call in sleeps(parsed(path))
    ]
    assert found == [], "use tests.support.until, an event, or a handler in tests/apps"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("import time\ntime.sleep(1)", 1),
        ("import asyncio\nawait asyncio.sleep(delay)", 1),
        ("from anyio import sleep as rest\nawait rest(0.1)", 1),
        ("import asyncio\nawait asyncio.sleep(0)", 0),
        ("await clock.sleep(1)", 0),
    ],
)
def test_a_wait_is_found_by_any_name(source: str, count: int) -> None:
    assert len(list(sleeps(ast.parse(source)))) == count


def reads_in_the_locale(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls that open a file or a process as text, and name no encoding."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_text(node):
            named = {keyword.arg for keyword in node.keywords}
            if "encoding" not in named and None not in named:
                yield node


def is_text(call: ast.Call) -> bool:
    words = {word.arg: word.value for word in call.keywords}
    match call.func:
        case ast.Attribute(attr="read_text" | "write_text"):
            return not call.args or call.func.attr == "write_text"
        case ast.Name(id="open") | ast.Attribute(value=ast.Name(id="io" | "os"), attr="fdopen"):
            mode = call.args[1] if len(call.args) > 1 else words.get("mode")
        case ast.Attribute(attr="open", value=value) if not is_module(value):
            # The `open` of a path; others of that name take no mode.
            mode = call.args[0] if call.args else words.get("mode")
            return isinstance(mode, ast.Constant) and "b" not in str(mode.value)
        case _:
            asked = words.get("text", words.get("universal_newlines"))
            return isinstance(asked, ast.Constant) and asked.value is True
    return mode is None or (isinstance(mode, ast.Constant) and "b" not in str(mode.value))


def is_module(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in {"os", "io", "webbrowser"}


def test_no_file_is_read_in_the_encoding_of_the_locale() -> None:
    found = [
        place(path, call)
        for path in python_files("src")
        for call in reads_in_the_locale(parsed(path))
    ]
    assert found == [], "name the encoding, or read bytes"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("open(path)", 1),
        ("open(path, 'r')", 1),
        ("open(path, mode='w')", 1),
        ("open(path, 'rb')", 0),
        ("open(path, encoding='utf-8')", 0),
        ("path.open('w')", 1),
        ("path.open('rb')", 0),
        ("path.read_text()", 1),
        ("path.read_text(encoding='utf-8')", 0),
        ("path.write_text(text)", 1),
        ("os.fdopen(file)", 1),
        ("os.open(path, os.O_RDONLY)", 0),
        ("await connection.open()", 0),
        ("subprocess.run(command, text=True)", 1),
        ("subprocess.run(command)", 0),
    ],
)
def test_a_file_that_is_read_as_text_is_found(source: str, count: int) -> None:
    assert len(list(reads_in_the_locale(ast.parse(source)))) == count


def test_no_module_is_longer_than_it_may_be() -> None:
    sizes = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for path in python_files("src")
    }
    assert {path: size for path, size in sizes.items() if size > MAX_LINES} == {}


def methods(cls: ast.ClassDef) -> int:
    """Count what a class lets others call and writes itself."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return sum(isinstance(node, functions) and node.name[0] != "_" for node in cls.body)


def test_no_class_of_a_storage_has_more_methods_than_one_role() -> None:
    counts = {
        f"{path.relative_to(ROOT)}:{node.name}": methods(node)
        for path in python_files("src/headrace/storage")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
    }
    assert counts
    assert {cls: count for cls, count in counts.items() if count > MAX_METHODS} == {}


def test_methods_are_counted_where_they_are_written() -> None:
    source = "class A(B):\n def a(self): ...\n async def b(self): ...\n def _c(self): ...\n d = 1"
    [cls] = ast.parse(source).body
    assert isinstance(cls, ast.ClassDef)
    assert methods(cls) == 2


def test_nothing_is_left_to_be_done() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in [*python_files(*PYTHON_FOLDERS), *lua_files()]
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if any(word in line for word in UNFINISHED)
    ]
    assert found == []


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in python_files(*PYTHON_FOLDERS)
        if not ast.get_docstring(parsed(path))
    ]
    assert silent == []


def test_every_lua_file_begins_with_a_comment() -> None:
    files = lua_files()
    assert files
    silent = [
        str(path.relative_to(ROOT)) for path in files if not path.read_text().startswith("-- ")
    ]
    assert silent == []


def test_examples_use_only_what_is_public() -> None:
    found = [
        f"{place(path, node)} {what}"
        for path in python_files("examples")
        for node, what in private_uses(parsed(path))
    ]
    assert found == []


def test_the_contract_of_storages_uses_only_what_is_public() -> None:
    # So that it holds for anybody's storage.
    found = [
        f"{place(path, node)} {what}"
        for path in python_files("src/headrace/testing/contract")
        for node, what in private_uses(parsed(path))
        if not what.startswith("headrace.testing.contract.")
    ]
    assert found == []


def private_uses(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield what a module takes from headrace that is not public."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    if is_ours(alias.name) and not is_public_module(alias.name):
                        yield node, alias.name
            case ast.ImportFrom(module=str(module), names=aliases) if is_ours(module):
                for alias in aliases:
                    if not is_public_name(module, alias.name):
                        yield node, f"{module}.{alias.name}"
            case ast.Attribute(value=ast.Name(id="headrace"), attr=name):
                if not is_public_name("headrace", name):
                    yield node, f"headrace.{name}"


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == "headrace"


def is_public_name(module: str, name: str) -> bool:
    if is_public_module(f"{module}.{name}"):
        return True
    return is_public_module(module) and name in public_names(module)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("import headrace.worker.execute", 1),
        ("from headrace.storage.redis import keys", 1),
        ("from headrace import _private", 1),
        ("import headrace\nheadrace.no_such_name", 1),
        ("import headrace\nimport asyncio", 0),
    ],
)
def test_a_private_use_is_found(source: str, count: int) -> None:
    assert len(list(private_uses(ast.parse(source)))) == count


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, and those that only type checkers read."""
    for node in body:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=typed):
                yield from typed
            case _:
                yield node


def exposed(name: str) -> set[str]:
    """Return what a module defines, and for a package also what it takes from its own modules."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin)
    names: set[str] = set()
    for node in statements(parsed(path).body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign(targets=targets):
                names.update(target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=assigned)):
                names.add(assigned)
            case ast.ImportFrom(module=str(source), names=aliases):
                if path.name == "__init__.py" and is_ours(source):
                    names.update(alias.asname or alias.name for alias in aliases)
    return {word for word in names if not word.startswith("_")}


@pytest.mark.parametrize("name", [name for name in PUBLIC_MODULES if is_public_module(name)])
def test_all_names_exactly_what_is_exposed(name: str) -> None:
    declared = {word for word in public_names(name) if not word.startswith("__")}
    assert declared == exposed(name)


@pytest.mark.parametrize("name", [name for name in PUBLIC_MODULES if is_public_module(name)])
def test_all_is_sorted(name: str) -> None:
    declared = list(importlib.import_module(name).__all__)
    # Constants, classes, the rest: the order that ruff's RUF022 wants.
    assert declared == sorted(declared, key=kind_and_name)


def kind_and_name(word: str) -> tuple[bool, bool, str]:
    return (not word.isupper(), not word[:1].isupper(), word)


def test_one_module_hears_of_forks() -> None:
    found = {path.name for path in python_files("src") if "register_at_fork" in path.read_text()}
    assert found == {"forks.py"}
