"""The Lua library: found, assembled and named by the hash of its source.

Redis has no ``require``, so the files are joined: shared tables first, each file in a scope of its
own. The hash is part of every function's name, so that two releases run side by side on one server.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from headrace.storage import limits
from headrace.storage.base import VERBS
from headrace.storage.verbs import Verb

LIB_ORDER = (
    *("keys", "clock", "numbers", "damage", "settings", "counts", "record"),
    *("events", "stats", "wake", "history", "intake"),
    *(
        "turns",
        "terms",
        "bucket",
        "strikes",
        "gates",
        "parking",
        "entries",
        "moves",
        "unit",
        "plain",
    ),
    *("readers", "updates", "successors", "idempotency", "batch"),
    *("fail_jobs", "finish", "attempts", "outcomes", "lines", "due"),
    *("slots", "aging", "starts", "incarnations"),
    *("pages", "reading", "before", "holders", "walk", "recounts"),
    *("schedules", "releases", "staged"),
)
"""The files of ``lua/lib``: each knows only those before it."""

PREFIX = "headrace_"


class Library(msgspec.Struct, frozen=True):
    """An assembled library: its name on the server, and its source."""

    name: str
    source: str

    def function(self, verb: str) -> str:
        """Return the name of a verb's function on the server."""
        return f"{self.name}_{verb}"


def lua_folder() -> Path:
    """Return the folder of the Lua sources: the packaged one, else the checkout's."""
    packaged = Path(__file__).with_name("lua")
    return packaged if packaged.is_dir() else Path(__file__).parents[4] / "lua"


def assemble(replacements: Mapping[str, str] | None = None) -> Library:
    """Join the sources; ``replacements`` gives other text for a lib file, as tests do."""
    folder = lua_folder()
    paths = sorted((folder / "functions").glob("*.lua"))
    parts = [_limits(), _flags(path.stem for path in paths)]
    parts.append(f"local {', '.join(LIB_ORDER)} = {', '.join('{}' for _ in LIB_ORDER)}")
    parts.append("local functions = {}")
    for name in LIB_ORDER:
        text = (replacements or {}).get(name) or _text(folder / "lib" / f"{name}.lua")
        parts.append(f"do -- lib/{name}.lua\n{text}end")
    parts += [f"do -- functions/{path.name}\n{_text(path)}end" for path in paths]
    # Part by part: the process would keep the room of the whole text once more.
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
    name = PREFIX + digest.hexdigest()[:8]
    parts += [
        f"redis.register_function{{ function_name = '{name}_{verb}', callback = functions.{verb}, "
        f"flags = flags.{verb} }}"
        for verb in (path.stem for path in paths)
    ]
    return Library(name=name, source="\n".join((f"#!lua name={name}", *parts, "")))


def _limits() -> str:
    """Return the numbers of the contract as a Lua table."""
    known = {name: value for name, value in vars(limits).items() if name.isupper()}
    words = (
        f"{name} = '{value}'" if isinstance(value, str) else f"{name} = {value}"
        for name, value in known.items()
    )
    return f"local limits = {{ {', '.join(words)} }}"


def _flags(functions: Iterable[str]) -> str:
    """Return what Redis has to know of each function, by what its verb is, as a Lua table."""
    words = (f"{name} = {{ {_flag(VERBS.get(name, Verb()))} }}" for name in functions)
    return f"local flags = {{ {', '.join(words)} }}"


def _flag(verb: Verb) -> str:
    if verb.reads:
        return "'no-writes'"
    # Memory may be full, and yet workers must drain: only what grows is refused then.
    return "" if verb.grows else "'allow-oom'"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def library() -> Library:
    """Return this release's library."""
    return assemble()


if __name__ == "__main__":
    # The line numbers in the server's errors refer to this text.
    sys.stdout.write(library().source)
