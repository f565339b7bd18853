"""The commands and replies of what looks after the server: most belong to no slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.job import is_name
from headrace.storage.redis import keys
from headrace.storage.redis.calls.call import Call, command, nothing, text
from headrace.storage.redis.library import PREFIX, Library
from headrace.storage.redis.server import parse_info

FIRST_CURSOR = "0"
KEYS_A_STEP = 1_000
"""Keys that the server looks at in one step: half a millisecond."""

TenantSign = tuple[str, str]
"""What a key is called that tells of a tenant, and its type."""

TENANT_SIGNS: tuple[TenantSign, ...] = ((keys.queues("*"), "set"), (keys.schedules("*"), "zset"))


def ping() -> Call[None]:
    """Build ``check``."""
    return command("check", "", "PING", read=nothing)


def tenants(sign: TenantSign, cursor: str) -> Call[tuple[str, list[str]]]:
    """Build one step of the look for tenants: the next cursor, and those that were met."""
    pattern, kind = sign
    words = ("SCAN", cursor, "MATCH", pattern, "COUNT", KEYS_A_STEP, "TYPE", kind)
    return command("tenants", "", *words, read=_read_tenants)


def _read_tenants(reply: Sequence[Any]) -> tuple[str, list[str]]:
    names = (keys.tenant_of(text(key)) for key in reply[1])
    return text(reply[0]), [name for name in names if is_name(name)]


def info() -> Call[dict[str, str]]:
    """Build the question for all that the server tells of itself."""
    return command("diagnose", "", "INFO", read=lambda reply: parse_info(reply.decode()))


def config(name: str) -> Call[dict[str, str]]:
    """Build the question for a setting of the server."""
    return command("diagnose", "", "CONFIG", "GET", name, read=read_pairs)


def time_us() -> Call[int]:
    """Build the question for the server's time, in microseconds since the epoch."""
    return command("diagnose", "", "TIME", read=_read_time)


def _read_time(reply: Sequence[bytes]) -> int:
    return int(reply[0]) * 1_000_000 + int(reply[1])


def damaged(root: str) -> Call[dict[str, str]]:
    """Build the question for what was set aside in a queue: counts by kind."""
    return command("diagnose", root, "HGETALL", f"{root}:damaged", read=read_pairs)


def read_pairs(flat: Sequence[bytes]) -> dict[str, str]:
    """Read names and values that take turns."""
    return dict(zip(map(text, flat[::2]), map(text, flat[1::2]), strict=True))


def libraries() -> Call[list[str]]:
    """Build the question for the headrace libraries that are loaded, sorted."""
    words = ("FUNCTION", "LIST", "LIBRARYNAME", f"{PREFIX}*")
    return command("diagnose", "", *words, read=_read_libraries)


def _read_libraries(reply: Sequence[Sequence[bytes]]) -> list[str]:
    return sorted(entry[entry.index(b"library_name") + 1].decode() for entry in reply)


def load(library: Library) -> Call[None]:
    """Build what loads a library."""
    return command("load", "", "FUNCTION", "LOAD", library.source, read=nothing)


def unload(name: str) -> Call[None]:
    """Build what deletes a library."""
    return command("tidy", "", "FUNCTION", "DELETE", name, read=nothing)
