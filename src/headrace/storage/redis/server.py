"""What kind of server this is, and whether the promises can be kept on it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from headrace.storage.values import Finding

LEAST_REDIS = (7, 0)
LEAST_VALKEY = (7, 2)
# Debian's 7.0.15 carries the fixes of CVE-2025-49844, -46817 and -46818 from its revision 12u6 on,
# but INFO doesn't show revisions; upstream these releases are the first with all of them.
PATCHED_REDIS: dict[tuple[int, ...], int] = {
    (6, 2): 20,
    (7, 2): 11,
    (7, 4): 6,
    (8, 0): 4,
    (8, 2): 2,
}


class ServerInfo(msgspec.Struct, frozen=True):
    """The few facts of ``INFO`` that decide."""

    kind: str
    version: str
    policy: str
    maxmemory: int
    has_aof: bool
    fsync: str
    has_snapshots: bool

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version as numbers."""
        return tuple(int(part) for part in self.version.split(".") if part.isdigit())


def parse_info(text: str) -> dict[str, str]:
    """Return the fields of an ``INFO`` reply."""
    lines = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, _, value in lines if name}


def server_info(fields: Mapping[str, str], config: Mapping[str, str]) -> ServerInfo:
    """Return the facts from ``INFO`` and, where it could be read, ``CONFIG GET``."""
    valkey = fields.get("valkey_version", "")
    return ServerInfo(
        kind="Valkey" if valkey else "Redis",
        version=valkey or fields.get("redis_version", ""),
        policy=fields.get("maxmemory_policy", ""),
        maxmemory=int(fields.get("maxmemory", 0)),
        has_aof=fields.get("aof_enabled") == "1",
        fsync=config.get("appendfsync", ""),
        has_snapshots=bool(config.get("save", "")),
    )


def refusal(info: ServerInfo, *, allow_eviction: bool) -> str:
    """Return why the server can't be used, and what to do; "" if it can."""
    least = LEAST_VALKEY if info.kind == "Valkey" else LEAST_REDIS
    if info.numbers and info.numbers[:2] < least:
        wanted = ".".join(map(str, least))
        return (
            f"{info.kind} {info.version} is too old: headrace needs functions, "
            f"so Redis 7.0 or Valkey 7.2 at least (here {info.kind} {wanted})"
        )
    if info.policy not in ("", "noeviction") and not allow_eviction:
        return (
            f"maxmemory-policy is {info.policy}: the server may throw waiting jobs away. "
            "Set it to noeviction (CONFIG SET maxmemory-policy noeviction), or pass "
            "allow_eviction=True (--allow-eviction) to accept that"
        )
    return ""


def findings(info: ServerInfo, *, clock_skew_ms: float) -> list[Finding]:
    """Return what ``headrace doctor`` says of the server."""
    return [
        _version(info),
        _patches(info),
        _policy(info),
        _persistence(info),
        Finding(
            "clock",
            "ok" if abs(clock_skew_ms) < 1000 else "warning",
            f"the server's clock differs from this host's by {abs(clock_skew_ms):.0f} ms; "
            "delays and expiries follow the server's",
        ),
    ]


def _version(info: ServerInfo) -> Finding:
    problem = refusal(info, allow_eviction=True)
    return Finding(
        "version", "error" if problem else "ok", problem or f"{info.kind} {info.version}"
    )


def _patches(info: ServerInfo) -> Finding:
    known = PATCHED_REDIS.get(info.numbers[:2])
    if info.kind == "Redis" and known is not None and len(info.numbers) > 2:
        if info.numbers[2] >= known:
            return Finding("patch level", "ok", "has the Lua fixes of October 2025")
        return Finding(
            "patch level",
            "warning",
            f"{info.version} lacks the Lua fixes of October 2025 (CVE-2025-49844): "
            f"update to {info.numbers[0]}.{info.numbers[1]}.{known}",
        )
    return Finding(
        "patch level",
        "unknown",
        f"{info.kind} {info.version} doesn't tell its distribution's patches: "
        "see that the fixes of CVE-2025-49844 are in",
    )


def _policy(info: ServerInfo) -> Finding:
    if info.policy != "noeviction":
        return Finding("eviction", "error", refusal(info, allow_eviction=False) or "unknown policy")
    limit = f"maxmemory {info.maxmemory:,} bytes" if info.maxmemory else "no maxmemory is set"
    return Finding("eviction", "ok", f"noeviction, {limit}")


def _persistence(info: ServerInfo) -> Finding:
    if info.has_aof and info.fsync == "always":
        return Finding("persistence", "ok", "AOF, fsync always: no accepted job is lost")
    if info.has_aof:
        mode = info.fsync or "unknown"
        return Finding(
            "persistence", "ok", f"AOF, fsync {mode}: a power loss costs the last 1 to 2 seconds"
        )
    if info.has_snapshots:
        return Finding(
            "persistence",
            "warning",
            "snapshots only: a restart goes back to the last one; set appendonly yes",
        )
    return Finding("persistence", "warning", "none: a restart loses every job; set appendonly yes")
