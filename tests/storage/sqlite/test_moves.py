"""One module takes jobs from place to place, and one brings them into being: a scan of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace.storage.sqlite

FOLDER = Path(headrace.storage.sqlite.__file__).parent
PLACES = {"state", "seq", "due_ms", "owner", "purge_at_ms", "parked"}
COUNTS = {"queued", "scheduled", "retrying", "active", "finished", "dead", "blocked"}
WRITERS = {
    "a job comes": {"intake.py"},
    "a job moves": {"moves.py", "parking.py"},
    "a job goes": {"history.py"},
    "a job is counted": {"moves.py"},
    "a count is written": {"unit.py"},
}


def writes(tree: ast.Module) -> Iterator[str]:
    """Yield what the SQL and the calls of a module do to the places and the counts of jobs."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)):
                yield from sql_writes(text)
            case ast.JoinedStr(values=parts):
                # What is put in later may be any column.
                named = [
                    part.value if isinstance(part, ast.Constant) else "state = ?, queued = ?,"
                    for part in parts
                ]
                yield from sql_writes("".join(map(str, named)))
            case ast.Call(func=ast.Attribute(value=owner, attr="enter" | "leave" | "recount")):
                if ast.unparse(owner).endswith("unit"):
                    yield "a job is counted"


def sql_writes(text: str) -> Iterator[str]:
    if re.search(r"\bINTO jobs\b", text):
        yield "a job comes"
    if re.search(r"\bDELETE FROM jobs\b", text):
        yield "a job goes"
    if PLACES & set(columns_set("jobs", text)):
        yield "a job moves"
    if COUNTS & set(columns_set("queues", text)):
        yield "a count is written"


def columns_set(table: str, text: str) -> list[str]:
    found = re.search(rf"\bUPDATE {table} SET\b(.*?)(\bWHERE\b|$)", text, re.DOTALL)
    return re.findall(r"(\w+)\s*=", found[1]) if found else []


@pytest.mark.parametrize(("what", "files"), WRITERS.items())
def test_places_and_counts_are_written_by_the_modules_that_are_for_it(
    what: str, files: set[str]
) -> None:
    found = {
        path.name
        for path in FOLDER.rglob("*.py")
        if what in writes(ast.parse(path.read_text(), filename=str(path)))
    }
    assert found == files


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("_SQL = 'UPDATE jobs SET at = ?, seq = NULL WHERE key = ?'", ["a job moves"]),
        ("sql = f'UPDATE jobs SET {column} = ? WHERE key = ?'", ["a job moves"]),
        ("db.execute('INSERT OR REPLACE INTO jobs VALUES (?)')", ["a job comes"]),
        ("db.execute('DELETE FROM jobs')", ["a job goes"]),
        ("_SQL = 'UPDATE queues SET is_paused = 1, active = 0'", ["a count is written"]),
        ("self._unit.leave(record.state)", ["a job is counted"]),
        ("_SQL = 'UPDATE jobs SET progress = ? WHERE state = ?'", []),
        ("_SQL = 'SELECT seq FROM jobs WHERE due = ?'", []),
        ("self.tokens.leave(queue, lanes)", []),
    ],
)
def test_a_write_is_found(source: str, found: list[str]) -> None:
    assert list(writes(ast.parse(source))) == found
