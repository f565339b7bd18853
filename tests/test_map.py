"""What docs/design.md and CONTRIBUTING.md say of files, against the files and the layers."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from headrace.storage.redis.library import LIB_ORDER

ROOT = Path(__file__).parents[1]


def blocks(page: str, heading: str) -> list[list[str]]:
    """Return the first words of the lines of each block of code below a heading."""
    text = (ROOT / page).read_text()
    level = heading.partition(" ")[0]
    found = re.search(rf"^{heading}\n(.*?)(?=^#{{1,{len(level)}}} |\Z)", text, re.M | re.S)
    assert found is not None, f"{page} has no {heading}"
    return [
        [line.split()[0] for line in block.splitlines()]
        for block in re.findall(r"^```\n(.*?)^```$", found[1], re.M | re.S)
    ]


def layers() -> dict[str, list[str]]:
    """Return the modules of each package whose layers are checked, from the top."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return {
        container: [name for layer in contract["layers"] for name in re.findall(r"\w+", layer)]
        for contract in contracts
        if contract["type"] == "layers"
        for container in contract["containers"]
    }


@pytest.mark.parametrize("package", layers())
def test_the_map_has_the_modules_of_the_layers_in_their_order(package: str) -> None:
    folder = package.replace(".", "/")
    assert blocks("docs/design.md", f"### src/{folder}") == [layers()[package]]


def test_the_map_has_the_lua_libraries_in_their_order() -> None:
    assert blocks("docs/design.md", "### lua/lib") == [list(reversed(LIB_ORDER))]


@pytest.mark.parametrize("heading", ["## Add a verb", "## Add an option", "## Add a mechanism"])
def test_the_files_that_a_change_takes_are_there(heading: str) -> None:
    paths = [path for block in blocks("CONTRIBUTING.md", heading) for path in block]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_no_page_has_a_merge_left_in_it() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    assert [page.name for page in pages if re.search(r"^[<>]{7} ", page.read_text(), re.M)] == []
