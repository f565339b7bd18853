"""The layers of the Lua library: who knows whom, and who writes which keys."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from headrace.storage.redis.library import LIB_ORDER, lua_folder
from tests.support.lua_order import problems

PLACES = {"ready", "ordered", "delayed", "processing", "cancels", "finished", "dead", "counts"}
WRITERS: dict[str, set[str]] = {
    "moves.lua": PLACES,
    "history.lua": {"finished", "dead"},
    "events.lua": {"counts"},  # how many events there have been
    "entries.lua": {"ready", "ordered", "counts"},  # which numbers were given out
    "aging.lua": {"counts"},  # how many jobs were taken since one of a lower tier
    "gates.lua": {"delayed"},  # when the first gate is due
    "walk.lua": PLACES,
    "restore.lua": PLACES,
}
"""Who writes where jobs are: moves, and what puts right what was lost."""

WRITES = re.compile(
    r"(?:'(?:[LR]PUSH|LREM|LTRIM|ZADD|ZREM|ZPOPMIN|SADD|SREM|HINCRBY|HSET|HDEL|UNLINK|DEL)'|command),\s*"
    r"(?:keys\.(\w+)|(\w+))"
)
NAMED = re.compile(r"local (\w+)[^=\n]* = keys\.(\w+)\(")


def written(path: Path) -> set[str]:
    """Return the kinds of keys that a Lua file writes."""
    code = re.sub(r"--.*", "", path.read_text())
    named: defaultdict[str, set[str]] = defaultdict(set)
    for name, kind in NAMED.findall(code):
        named[name].add(kind)
    return set().union(
        *({direct} if direct else named[name] for direct, name in WRITES.findall(code))
    )


def test_a_library_knows_only_those_before_it() -> None:
    assert problems(lua_folder(), LIB_ORDER) == []


@pytest.mark.parametrize(
    ("record", "moves", "problem"),
    [
        ("function record.load() end", "function moves.move() record.load() end", ""),
        (
            "function record.load() moves.move() end",
            "function moves.move() record.load() end",
            "lib/record.lua uses moves.move, which comes after it",
        ),
        (
            "record.LIMIT = 1",
            "function moves.move() return record.LIMITS end",
            "lib/moves.lua uses record.LIMITS, which is not there",
        ),
        ("-- moves.move\nlocal a = 'moves.move'", "function moves.move() end", ""),
    ],
)
def test_a_circle_of_libraries_and_a_name_that_is_not_there_are_found(
    tmp_path: Path, record: str, moves: str, problem: str
) -> None:
    lib = tmp_path / "lib"
    lib.mkdir()
    (lib / "record.lua").write_text(record)
    (lib / "moves.lua").write_text(moves)
    assert problems(tmp_path, ("record", "moves")) == [problem] * bool(problem)


def test_only_moves_and_the_repair_write_where_jobs_are() -> None:
    found = {path.name: written(path) & PLACES for path in lua_folder().rglob("*.lua")}
    assert {name: kinds for name, kinds in found.items() if kinds - WRITERS.get(name, set())} == {}
    assert found["moves.lua"] | found["entries.lua"] == PLACES - {"finished", "dead"}
    assert found["history.lua"] <= {"finished", "dead"}


def test_another_writer_is_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong.lua"
    path.write_text(
        "local key = keys.delayed(unit.root)\nunit.call('ZADD', key, 1, id)\n"
        "unit.call(\n  'SREM', keys.cancels(unit.root, owner), id)\n"
        "unit.call('HSET', job.key, 'a', 1)"
    )
    assert written(path) & PLACES == {"delayed", "cancels"}


def test_one_file_says_that_a_record_has_more_than_most() -> None:
    source = {path.name: path.read_text() for path in lua_folder().rglob("*.lua")}
    assert [name for name, text in source.items() if re.search(r"more = '\+'|%1\+", text)] == [
        "record.lua"
    ]
