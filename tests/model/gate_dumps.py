"""What is kept of limits and gates, on a server and in a database, in the model's form."""

from __future__ import annotations

from typing import Any

from headrace.storage.sqlite.engine.step import Step
from headrace.strike import Strike, StrikeAction
from tests.model.places import Dump
from tests.model.redis_dump import ServerState
from tests.support.gate_check import rows
from tests.support.gate_leaks import Gate


def of_server(server: ServerState, root: str, now: int) -> Dump:
    """Return that of one queue, whose keys begin with a root."""
    kinds: dict[str, dict[str, Any]] = {"gate": {}, "line": {}, "limits": {}, "strikes": {}}
    for key, (value, _) in server.keys.items():
        kind, _, name = key.removeprefix(f"{root}:").partition(":")
        if key.startswith(f"{root}:") and kind in kinds:
            kinds[kind][name] = value
    gates = {name: Gate(*map(int, value.split())) for name, value in kinds["gate"].items()}
    limits = {
        name.decode(): said.decode().partition("\t")[::2]
        for name, said in kinds["limits"].get("", {}).items()
    }
    lines = {name: [member.decode() for member, _ in line] for name, line in kinds["line"].items()}
    found = {
        name: (gate.ready, gate.active, _owed(gate.owed, gate.rate, gate.at_ms, now))
        for name, gate in gates.items()
    }
    strikes = {
        name.decode(): _strike(name.decode(), *said.decode().split("\t", 3))
        for name, said in kinds["strikes"].get("", {}).items()
    }
    return {"limits": limits, "gates": _without_idle(found), "lines": lines, "strikes": strikes}


def numbers_of_server(server: ServerState, root: str) -> dict[str, float]:
    """Return the numbers of ready jobs' places, which those of all lanes have in common."""
    lines = [value for key, (value, _) in server.keys.items() if key.startswith(f"{root}:ordered:")]
    return {member.decode().partition(":")[2]: number for line in lines for member, number in line}


def numbers_of_database(step: Step, queue: str) -> dict[str, float]:
    """Return the same."""
    return {job["id"]: job["seq"] for job in _rows(step, queue, "jobs") if job["seq"] is not None}


def of_database(step: Step, queue: str) -> Dump:
    """Return that of one queue, which is by this name of the only tenant that has limits."""
    lines: dict[str, list[str]] = {}
    for job in sorted(
        _rows(step, queue, "jobs"), key=lambda job: (-job["tier"], job["number"] or 0)
    ):
        if job["parked"] is not None:
            lines.setdefault(job["parked"], []).append(job["id"])
    found = {
        row["name"]: (
            row["ready"],
            row["active"],
            _owed(row["owed"], row["rate"], row["owed_at_ms"], step.now_ms),
        )
        for row in _rows(step, queue, "gates")
    }
    return {
        "limits": {
            row["name"]: (row["declared"], row["operator"]) for row in _rows(step, queue, "limits")
        },
        "gates": _without_idle(found),
        "lines": lines,
        "strikes": {
            row["id"]: _strike(
                row["id"], row["since_ms"], row["action"], row["task"], row["conditions"]
            )
            for row in _rows(step, queue, "strikes")
        },
    }


def _rows(step: Step, queue: str, table: str) -> list[dict[str, Any]]:
    keys = {row["key"] for row in rows(step.db, "queues") if row["name"] == queue}
    return [row for row in rows(step.db, table) if row["queue"] in keys]


def _strike(strike_id: str, since_ms: str | int, action: str, task: str, where: str) -> Strike:
    return Strike(
        id=strike_id,
        task=task,
        where=where,
        action=StrikeAction(action),
        since_ms=int(since_ms),
    )


def _owed(owed: int, rate: int, at_ms: int, now: int) -> int:
    return max(0, owed - max(0, now - at_ms) * rate)


def _without_idle(gates: dict[str, tuple[int, int, int]]) -> dict[str, tuple[int, int, int]]:
    """Leave out what nobody is in and owes nothing: it may be forgotten."""
    return {name: gate for name, gate in gates.items() if any(gate)}
