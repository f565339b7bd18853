"""The numbers of the contract stand in one place, from which the Lua library has them."""

from __future__ import annotations

import re
from pathlib import Path

from headrace.storage import limits
from headrace.storage.redis.library import library, lua_folder

NUMBER = re.compile(r"\b\d{3,}\b")
KNOWN = {name: value for name, value in vars(limits).items() if name.isupper()}
OF_THEIR_OWN = {
    ("clock.lua", 1_000): "milliseconds in a second",
    ("history.lua", 100): "places looked at beside those that are too many",
    ("history.lua", 1_000): "words in one command",
    ("entries.lua", 1_000): "words in one command",
    ("moves.lua", 1_000): "words in one command",
    ("record.lua", 100): "bytes of a lane's name",
    ("pages.lua", 50_000): "ready entries that are compared to find one again",
    ("numbers.lua", 10_000): "numbers whose text is made once",
    ("stats.lua", 10_000): "times whose name is made once",
    ("repair.lua", 5_000): "the rest between two walks",
}
"""Numbers that are like one of the contract, and mean something else."""


def numbers_again(path: Path) -> set[tuple[str, int]]:
    """Return the numbers of a Lua file that `limits` has too; small ones can't be told apart."""
    code = re.sub(r"--.*", "", path.read_text())
    return {(path.name, int(word)) for word in NUMBER.findall(code)} & {
        (path.name, value) for value in KNOWN.values() if isinstance(value, int)
    }


def test_no_number_of_the_contract_is_written_again_in_lua() -> None:
    found = {pair for path in lua_folder().rglob("*.lua") for pair in numbers_again(path)}
    assert found == set(OF_THEIR_OWN)


def test_a_number_that_is_written_again_is_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong.lua"
    path.write_text("local TTL_MS = '600000' -- or 10000\nlocal BATCH, TIER = 500, 5\n")
    assert numbers_again(path) == {("wrong.lua", 600_000), ("wrong.lua", 500)}


def test_what_lua_takes_of_the_contract_is_there() -> None:
    # A name that the table lacks would be nil, without an error.
    names = set(re.findall(r"\blimits\.([A-Z]\w+)", library().source))
    assert names <= set(KNOWN)
    assert "BATCH_LIMIT" in names
