"""Checks that a Lua library knows only those before it, and names only what is there.

    python -m tests.support.lua_order

No linter sees this: the libraries are tables, and a name that one lacks is nil when it is called.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from headrace.storage.redis.library import LIB_ORDER, lua_folder

ALSO_A_VARIABLE = {"unit"}
"""Libraries whose name is also that of a variable, so that not every field of it is theirs."""


def problems(folder: Path, order: Sequence[str]) -> list[str]:
    """Return what is wrong with the Lua files of a folder, nothing if all is well."""
    defined = {name: _defined(folder / "lib" / f"{name}.lua", name) for name in order}
    found = []
    for path in sorted(folder.rglob("*.lua")):
        place = f"{path.parent.name}/{path.name}"
        own = order.index(path.stem) if path.parent.name == "lib" else len(order)
        for library, name in sorted(set(_uses(path, order))):
            if name not in defined[library]:
                if library not in ALSO_A_VARIABLE:
                    found.append(f"{place} uses {library}.{name}, which is not there")
            elif order.index(library) > own:
                found.append(f"{place} uses {library}.{name}, which comes after it")
    return found


def _code(path: Path) -> str:
    """Return a file's text without comments and strings."""
    return re.sub(r"'(\\.|[^'\\\n])*'|--[^\n]*", "''", path.read_text())


def _defined(path: Path, library: str) -> set[str]:
    code = _code(path)
    functions = re.findall(rf"^function {library}\.(\w+)", code, re.MULTILINE)
    values = re.findall(rf"^(?:{library}\.\w+, )?{library}\.(\w+)[\w., ]* = ", code, re.MULTILINE)
    return {*functions, *values}


def _uses(path: Path, order: Sequence[str]) -> Iterator[tuple[str, str]]:
    for match in re.finditer(rf"(?<![.:\w])({'|'.join(order)})\.(\w+)", _code(path)):
        yield match[1], match[2]


def main() -> int:
    """Print what is wrong; the exit code is 1 if anything is."""
    found = problems(lua_folder(), LIB_ORDER)
    for problem in found:
        print(problem)  # noqa: T201  # it is a command
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
