"""Every key of a queue is built in one file, which agrees with Python and with those who check."""

from __future__ import annotations

import re
from pathlib import Path

import redis

from headrace.storage.redis import keys
from headrace.storage.redis.library import lua_folder
from tests.support import gate_leaks, leaks, schedule_leaks

KEYS = lua_folder() / "lib" / "keys.lua"
BUILDER = re.compile(r"^function keys\.(\w+)\(root.*\) return root \.\. ':([\w-]+)", re.MULTILINE)
CONCATENATED = re.compile(r"\broot\s*\.\.|':[a-z-]+:?'")


def built() -> dict[str, str]:
    """Return the kind of key that each function of `keys.lua` builds."""
    return dict(BUILDER.findall(KEYS.read_text()))


def concatenations(path: Path) -> list[str]:
    """Return the lines of a Lua file that build a key."""
    lines = (re.sub(r"--.*", "", line) for line in path.read_text().splitlines())
    return [line.strip() for line in lines if CONCATENATED.search(line)]


def test_no_other_file_builds_a_key() -> None:
    others = [path for path in lua_folder().rglob("*.lua") if path != KEYS]
    assert others
    assert {path.name: found for path in others if (found := concatenations(path))} == {}


def test_a_key_that_is_built_elsewhere_is_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong.lua"
    path.write_text("local a = unit.root .. ':job:' .. id\nlocal b = ':dead' -- root .. ':x'\n")
    assert len(concatenations(path)) == 2


def test_each_kind_has_a_function_of_its_name() -> None:
    functions = built()
    assert functions.pop("aside") == "damaged"
    assert {name.replace("_", "-") for name in functions} == set(functions.values())


def test_the_care_for_strange_data_knows_the_type_of_each_kind() -> None:
    source = (lua_folder() / "lib" / "damage.lua").read_text()
    types = source[source.index("local TYPES") : source.index("}", source.index("local TYPES"))]
    # Its own note is not a key that it sets aside.
    assert set(re.findall(r"([\w-]+)(?:'\])? = '", types)) == set(built().values()) - {"damaged"}


def test_the_check_for_leaks_has_a_rule_for_each_kind() -> None:
    of_a_queue = (
        *(leaks.LASTING, leaks.OF_A_WORKER, leaks.OF_A_JOB, leaks.OF_A_WRITE),
        *(leaks.PASSING, leaks.OF_A_SUCCESSOR, gate_leaks.KINDS),
    )
    of_a_tenant = (schedule_leaks.LASTING, schedule_leaks.PASSING - leaks.PASSING)
    rules = (*of_a_queue, *of_a_tenant)
    assert sorted(kind for rule in rules for kind in rule) == sorted(set(built().values()))


def test_python_and_lua_build_the_same_keys(server: redis.Redis) -> None:
    script = f"""
        local keys = {{}}
        {KEYS.read_text()}
        local token = keys.wake(KEYS[1], 'gpu')
        local schedules = keys.schedules(KEYS[2])
        local root, kind = keys.parts(keys.schedule_history(KEYS[2], 'x:y'))
        return {{ token, keys.woken(KEYS[1]), schedules, root, kind, keys.parts(token) }}
    """
    root, tenant_root = keys.root("acme", "mail"), keys.tenant_root("acme")
    assert server.eval(script, 2, root, tenant_root) == [
        keys.wake("acme", "mail", "gpu").encode(),
        keys.woken("acme", "mail").encode(),
        keys.schedules("acme").encode(),
        tenant_root.encode(),
        b"schedule-history",
        root.encode(),
        b"wake",
    ]
