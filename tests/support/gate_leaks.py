"""What must hold of the keys of gates and strikes after every step: they agree with the jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from headrace.limit import Terms, read_terms
from tests.support.gate_check import has_place

Jobs = Mapping[str, Mapping[str, str]]
Members = list[tuple[bytes, float]]

LASTING = {"limits", "gates", "lines", "ordered", "strikes", "struck"}
KINDS = {"gate", "line"}
DUE = "gates"
"""What stands for all gates among the delayed."""


class Gate(msgspec.Struct):
    """What is stored of a gate."""

    ready: int = 0
    active: int = 0
    waiting: int = 0
    due_ms: int = 0
    placed_ms: int = 0
    owed: int = 0
    rate: int = 0
    rate_ms: int = 0
    at_ms: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether nobody is in it."""
        return not (self.ready or self.active or self.waiting)


class Keys(msgspec.Struct):
    """The keys of the gates of one queue."""

    gates: dict[str, Gate]
    passing: set[str]
    lines: dict[str, list[str]]
    listed: set[str]
    due: dict[str, int]
    limits: dict[str, Terms | None]
    strikes: dict[str, Strike]
    struck: dict[str, str]
    config: dict[str, str]


class Strike(msgspec.Struct):
    """What is stored of a strike."""

    since_ms: int
    action: str
    task: str
    where: str


def _texts(value: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): word.decode(errors="replace") for name, word in value.items()}


def keys_of(keys: Mapping[str, Mapping[str, tuple[Any, bool]]]) -> Keys:
    """Return what the keys of a queue, by kind and name, say of its gates."""
    gates = {
        name: Gate(*map(int, value.split())) for name, (value, _) in keys.get("gate", {}).items()
    }

    def only(kind: str) -> Any:
        return keys.get(kind, {}).get("", ({}, False))[0]

    said = only("limits")
    strikes = {name: word.split("\t", 3) for name, word in _texts(only("strikes")).items()}
    return Keys(
        gates=gates,
        passing={name for name, (_, has_ttl) in keys.get("gate", {}).items() if has_ttl},
        lines={
            name: [member.decode() for member, _ in members]
            for name, (members, _) in keys.get("line", {}).items()
        },
        listed={member.decode() for member, _ in keys.get("lines", {}).get("", ([], False))[0]},
        due={m.decode(): int(at) for m, at in keys.get(DUE, {}).get("", ([], False))[0]},
        limits={
            name.decode(): read_terms(operator.decode() or declared.decode())
            for name, value in said.items()
            for declared, _, operator in [value.partition(b"\t")]
        },
        strikes={name: Strike(int(since), *rest) for name, (since, *rest) in strikes.items()},
        struck=_texts(only("struck")),
        config=_texts(only("config")),
    )


def problems(keys: Keys, jobs: Jobs, delayed: Members) -> Iterator[str]:
    """Return which rules the gates of a queue break."""
    yield from _places(keys, jobs)
    yield from _lines(keys, jobs)
    yield from _openings(keys)
    yield from _strikes(keys)
    noted = [int(at) for member, at in delayed if member.decode() == DUE]
    if noted != sorted(keys.due.values())[:1]:
        yield f"gates are due at {noted}, of {keys.due}"


def _places(keys: Keys, jobs: Jobs) -> Iterator[str]:
    expected: Counter[tuple[str, str]] = Counter()
    for job in jobs.values():
        for name in job.get("gates", "").split("\n"):
            if name and has_place(name, job["state"]):
                expected[name, job["state"]] += 1
    for name in keys.gates.keys() | {name for name, _ in expected}:
        gate = keys.gates.get(name, Gate())
        counts = (expected[name, "queued"], expected[name, "active"])
        if (gate.ready, gate.active) != counts:
            yield f"gate {name!r} counts {gate.ready}, {gate.active} jobs of {counts}"
        if name in keys.gates and (name in keys.passing) != gate.is_idle:
            yield f"gate {name!r} is {gate} and {'has' if name in keys.passing else 'lacks'} a TTL"


def _lines(keys: Keys, jobs: Jobs) -> Iterator[str]:
    expected: defaultdict[str, set[str]] = defaultdict(set)
    for job_id, job in jobs.items():
        is_blocked = job["state"] == "blocked"
        if is_blocked != ("parked" in job):
            yield f"{job_id!r} is {job['state']} and stands in {job.get('parked')!r}"
        elif is_blocked and _is_no_line(job["parked"], job.get("gates", "")):
            yield f"{job_id!r} stands in {job['parked']!r}, which is no gate of it"
        elif is_blocked:
            expected[job["parked"]].add(job_id)
    found = {name: set(members) for name, members in keys.lines.items()}
    if found != expected:
        yield f"lines {found}, the records say {dict(expected)}"
    if keys.listed != set(expected):
        yield f"lists the lines {keys.listed} of {set(expected)}"
    for name in keys.gates.keys() | set(expected):
        if keys.gates.get(name, Gate()).waiting != len(expected[name]):
            yield f"gate {name!r} counts {keys.gates.get(name)} in line of {len(expected[name])}"


def _is_no_line(name: str, gates: str) -> bool:
    """Whether a job with these gates can't stand there; the line of a strike has no tab."""
    return "\t" in name and name not in gates.split("\n")


def _strikes(keys: Keys) -> Iterator[str]:
    """Check what claims look at against the strikes that there are."""
    first: dict[str, str] = {}
    by_age = sorted(keys.strikes.items(), key=lambda one: (one[1].since_ms, one[0].encode()))
    for name, strike in by_age:
        if not strike.where:
            first.setdefault(strike.task, f"{strike.action}\t{name}")
    if keys.struck != first:
        yield f"claims meet {keys.struck}, of {first}"
    said = tuple(keys.config.get(name, "0") for name in ("is_struck", "has_conditions"))
    expected = bool(first), any(strike.where for strike in keys.strikes.values())
    if said != tuple(str(int(flag)) for flag in expected):
        yield f"claims are told {said} of {expected}"


def _openings(keys: Keys) -> Iterator[str]:
    opening = {name[1:].partition("\t")[0] for name in keys.due if name.startswith("\t")}
    for name, gate in keys.gates.items():
        if gate.due_ms != keys.due.get(name, 0):
            yield f"gate {name!r} is due at {gate.due_ms}, and noted at {keys.due.get(name)}"
        limit = name.partition("\t")[0]
        terms = ("\t" in name and keys.limits.get(limit)) or Terms()
        is_full = terms.concurrency and gate.ready + gate.active >= terms.concurrency
        is_spent = terms.rate and gate.ready >= terms.burst
        is_full = is_full or (gate.ready > 0 and not has_place(name, "active"))
        is_closed = is_full or is_spent or name in keys.strikes
        if gate.waiting and not (gate.due_ms or limit in opening or is_closed):
            yield f"the line of {name!r} has room and stays closed"
