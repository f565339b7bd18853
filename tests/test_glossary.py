"""One word for each thing: docs/glossary.md against the identifiers of Python, Lua and SQL."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "headrace"
LUA = ROOT / "lua"
GLOSSARY = ROOT / "docs" / "glossary.md"

OTHERS = {"start_new_session"}
"""Names that others have given."""


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def section(name: str) -> str:
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", GLOSSARY.read_text(), re.M | re.S)
    assert found is not None
    return found[1]


def rows() -> list[tuple[str, list[str]]]:
    """Return each word, and what may not be said instead of it."""
    cells = [line.split("|")[1:-1] for line in section("Words").splitlines() if "`" in line]
    return [(quoted(word)[0], quoted(instead)) for word, _meaning, instead in cells]


def names_without_a_unit(where: str) -> set[str]:
    found = re.search(rf"^- [^:]*{where}[^:]*: (.*?)(?=^- |\Z)", section("Units"), re.M | re.S)
    assert found is not None
    return set(quoted(found[1]))


def python_identifiers(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def lua_identifiers(source: str) -> Iterator[tuple[int, str]]:
    """Yield the words of the code, and the strings that are a word: names of fields."""
    for number, line in enumerate(source.splitlines(), start=1):
        code = re.sub(r"--.*", "", line)
        words = re.sub(r"'(?:[^'\\]|\\.)*'", " ", code)
        for word in re.findall(r"\b[A-Za-z_]\w*", words) + re.findall(r"'([A-Za-z_]\w*)'", code):
            yield number, word


def sql_identifiers(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.splitlines(), start=1):
        for word in re.findall(r"\b[a-z_]\w*", re.sub(r"--.*", "", line)):
            yield number, word


READERS = {".py": python_identifiers, ".lua": lua_identifiers, ".sql": sql_identifiers}


@cache
def identifiers() -> dict[str, dict[str, list[str]]]:
    """Return where each identifier stands, by the ending of the file."""
    found: dict[str, dict[str, list[str]]] = {ending: {} for ending in READERS}
    paths = [path for folder in (SOURCES, LUA) for path in sorted(folder.rglob("*.*"))]
    for path in paths:
        if path.suffix not in READERS or path.parent.name == "steps":  # schemas of before
            continue
        for number, word in READERS[path.suffix](path.read_text()):
            found[path.suffix].setdefault(word, []).append(f"{path.relative_to(ROOT)}:{number}")
    return found


def says(identifier: str, word: str) -> bool:
    """Whether an identifier is a class's or function's name, or has a word in it."""
    if word.endswith("()"):
        return identifier.strip("_") == word[:-2]
    if not word.islower():
        return identifier == word
    return f"_{word}_" in f"_{identifier.lower()}_" and identifier not in OTHERS


def uses(word: str) -> list[str]:
    return [
        f"{place} {identifier}"
        for found in identifiers().values()
        for identifier, places in found.items()
        if says(identifier, word)
        for place in places
    ]


def classes() -> Counter[str]:
    return Counter(
        node.name
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )


def test_the_words_of_the_glossary_are_those_of_the_code() -> None:
    known = {*identifiers()[".py"], *identifiers()[".lua"]}
    words = [word for word, _ in rows()]
    assert words
    assert [word for word in words if word not in known] == []


@pytest.mark.parametrize(
    ("word", "instead"), [(word, other) for word, others in rows() for other in others]
)
def test_no_other_word_is_used(word: str, instead: str) -> None:
    assert uses(instead) == [], f"the word is {word}"


def test_no_class_name_is_used_twice() -> None:
    # Who fires schedules, and the role of the storage that it asks.
    assert {name: count for name, count in classes().items() if count > 1} == {"Scheduler": 2}


@pytest.mark.parametrize(("where", "ending"), [("column", ".sql"), ("Lua", ".lua")])
def test_instants_and_spans_say_their_unit(where: str, ending: str) -> None:
    names = names_without_a_unit(where)
    assert names
    found = identifiers()[ending]
    assert {name: found[name] for name in names & found.keys()} == {}


@pytest.mark.parametrize(
    ("identifier", "word", "expected"),
    [
        ("inbox", "inbox", True),
        ("open_inbox", "inbox", True),
        ("INBOX_LIMIT", "inbox", True),
        ("reply_to", "reply_to", True),
        ("_tell", "tell()", True),
        ("tell_others", "tell()", False),
        ("Place", "Place", True),
        ("Placed", "Place", False),
        ("place", "Place", False),
    ],
)
def test_a_word_is_found_in_an_identifier(identifier: str, word: str, expected: object) -> None:
    assert says(identifier, word) is expected


@pytest.mark.parametrize(
    ("reader", "source", "words"),
    [
        (python_identifiers, "inbox = 'a word'  # and more", ["inbox"]),
        (lua_identifiers, "q.call('HSET', key, 'no word') -- more", ["q", "call", "key", "HSET"]),
        (sql_identifiers, "  due INTEGER, -- at that instant", ["due"]),
    ],
)
def test_identifiers_are_found(reader: object, source: str, words: list[str]) -> None:
    assert callable(reader)
    assert [word for _, word in reader(source)] == words
