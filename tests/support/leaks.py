"""What must hold of a server's keys after every step: nothing leaks, and no two keys disagree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import redis

from tests.support import clock, gate_leaks, schedule_leaks
from tests.support.record import taken_apart

KEY = re.compile(r"hr:\{([^:}]+)(:[^}]+)?\}:([a-z-]+)(?::(.*))?\Z", re.DOTALL)
TERMINAL = {"completed", "failed", "cancelled"}
COUNTED = ("queued", "scheduled", "retrying", "active")
BLOCKED = "blocked"
NUMBERS = ("events", "head", "tail", "old", "front", "aged")
# Each is deleted by who owns it, or bounded: by the number of queues, lanes and settings.
LASTING = {
    *(
        "ready",
        "wake",
        "woken",
        "delayed",
        "beats",
        "finished",
        "dead",
        "events",
        "counts",
        "config",
    ),
    *("lanes", "committed", "readers", BLOCKED),
    *gate_leaks.LASTING,
}
OF_A_WORKER = {"worker", "processing", "cancels"}
OF_A_JOB = {"job", "payload", "errors"}
PASSING = {"stats", "calls", "result", "output", "damaged", "walk", "tally", "fired", "idempotent"}
OF_A_WRITE = {"stage", "write"}
OF_A_SUCCESSOR = {"next"}
OF_A_TENANT = {"queues", *schedule_leaks.LASTING, *schedule_leaks.PASSING}

_READERS: dict[str, Callable[[Any, str], Any]] = {
    "string": lambda pipe, key: pipe.get(key),
    "list": lambda pipe, key: pipe.lrange(key, 0, -1),
    "set": lambda pipe, key: pipe.smembers(key),
    "zset": lambda pipe, key: pipe.zrange(key, 0, -1, withscores=True),
    "hash": lambda pipe, key: pipe.hgetall(key),
    "stream": lambda pipe, key: pipe.xrange(key),
}


def dump(client: redis.Redis) -> dict[str, tuple[Any, bool]]:
    """Return every key's value, and whether the key has a TTL.

    Without the marks of who walks through a queue, which say nothing of it and end by themselves.
    """
    keys = sorted(key.decode() for key in client.scan_iter(count=10_000))
    keys = [key for key in keys if key != clock.KEY and not key.endswith("}:walk")]
    with client.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.type(key)
        types = [kind.decode() for kind in pipe.execute()]
        for key, kind in zip(keys, types, strict=True):
            if kind != "none":  # it has just expired
                _READERS[kind](pipe, key)
                pipe.ttl(key)
        replies = pipe.execute()
    alive = [key for key, kind in zip(keys, types, strict=True) if kind != "none"]
    return {
        key: (value, ttl >= 0)
        for key, value, ttl in zip(alive, replies[::2], replies[1::2], strict=True)
        if ttl != -2
    }


def without_calls(dumped: dict[str, tuple[Any, bool]]) -> dict[str, tuple[Any, bool]]:
    """Return a dump without what is remembered of calls, which every numbered call changes."""
    memory = {b"claim_number", b"settle_number", b"settled"}
    kept = {}
    for key, (value, has_ttl) in dumped.items():
        kind = _parsed(key)[1]
        if kind == "worker":
            value = {name: word for name, word in value.items() if name not in memory}
        if kind != "calls":
            kept[key] = (value, has_ttl)
    return kept


def problems(client: redis.Redis) -> list[str]:
    """Return what is wrong with the keys of a server, nothing if all is well."""
    return problems_in(dump(client))


def problems_in(dumped: dict[str, tuple[Any, bool]]) -> list[str]:
    """Return what is wrong with keys that `dump` found, or that were read in its form."""
    queues: dict[str, _Queue] = {}
    tenants: dict[str, schedule_leaks.Keys] = {}
    found = []
    for key, (value, has_ttl) in dumped.items():
        root, kind, name = _parsed(key)
        if kind == "":
            found.append(f"{key} is not a key of ours")
        elif ":" not in root:
            if kind != "queues":
                tenants.setdefault(root, {}).setdefault(kind, {})[name] = (value, has_ttl)
        else:
            queues.setdefault(root, _Queue()).add(kind, name, value, has_ttl=has_ttl)
    return [
        *found,
        *(f"{root} {problem}" for root, queue in queues.items() for problem in queue.problems()),
        *(
            f"{tenant} {problem}"
            for tenant, keys in tenants.items()
            for problem in schedule_leaks.problems(keys)
        ),
    ]


def _parsed(key: str) -> tuple[str, str, str]:
    """Return a key's root, its kind and the name after it; the kind is "" for a foreign key."""
    match = KEY.match(key)
    if not match or (match[2] is None and match[3] not in OF_A_TENANT):
        return "", "", ""
    return f"{match[1]}{match[2] or ''}", match[3], match[4] or ""


class _Queue:
    """The keys of one queue."""

    def __init__(self) -> None:
        self.keys: dict[str, dict[str, tuple[Any, bool]]] = {}

    def add(self, kind: str, name: str, value: Any, *, has_ttl: bool) -> None:
        self.keys.setdefault(kind, {})[name] = (value, has_ttl)

    def values(self, kind: str) -> dict[str, Any]:
        return {name: value for name, (value, _) in self.keys.get(kind, {}).items()}

    def only(self, kind: str, default: Any) -> Any:
        return self.values(kind).get("", default)

    def problems(self) -> Iterator[str]:
        jobs = {
            name: {f: word.decode(errors="replace") for f, word in taken_apart(value).items()}
            for name, value in self.values("job").items()
        }
        yield from self._leaks(jobs)
        yield from self._writes()
        yield from self._blocked(jobs)
        yield from gate_leaks.problems(
            gate_leaks.keys_of(self.keys), jobs, self.only("delayed", [])
        )
        yield from self._counts(jobs)
        yield from self._places(jobs)
        yield from self._ended(jobs)

    def _leaks(self, jobs: dict[str, dict[str, str]]) -> Iterator[str]:
        listed = {name.decode() for name in self.only("beats", {})}
        for kind, keys in self.keys.items():
            for name, (_, has_ttl) in keys.items():
                label = f"{kind}:{name}"
                if kind in OF_A_JOB:
                    ended = jobs[name]["state"] in TERMINAL if name in jobs else True
                    if has_ttl != ended:
                        yield f"{label} {'has' if has_ttl else 'lacks'} a TTL"
                elif kind in OF_A_WORKER:
                    if name not in listed:
                        yield f"{label} is of an incarnation that is not listed"
                elif kind in PASSING:
                    if not has_ttl:
                        yield f"{label} lacks a TTL"
                elif kind not in LASTING | OF_A_WRITE | OF_A_SUCCESSOR | gate_leaks.KINDS:
                    yield f"{label} is not a key of ours"

    def _writes(self) -> Iterator[str]:
        """Check that stages and writes have a TTL or somebody who comes for them."""
        committed = [name.decode() for name in self.only("committed", [])]
        left = Counter(name.partition(":")[2] for name in committed)
        for name, (_, has_ttl) in self.keys.get("stage", {}).items():
            if has_ttl == (name in committed):
                yield f"stage:{name} {'has' if has_ttl else 'lacks'} a TTL"
        for name, (fields, has_ttl) in self.keys.get("write", {}).items():
            if has_ttl == (name in left):
                yield f"write:{name} {'has' if has_ttl else 'lacks'} a TTL"
            if int(fields[b"stages_left"]) != left[name]:
                yield f"write:{name} has {left[name]} stages, and says {fields[b'stages_left']!r}"

    def _blocked(self, jobs: dict[str, dict[str, str]]) -> Iterator[str]:
        """Check that each successor is of an active job that says so, and all have their place."""
        stored = set(self.values("next"))
        said = {job_id for job_id, job in jobs.items() if "next" in job}
        active = {job_id for job_id, job in jobs.items() if job["state"] == "active"}
        places = {member.decode() for member, _ in self.only(BLOCKED, [])}
        parked = {job_id for job_id, job in jobs.items() if job["state"] == BLOCKED}
        if not stored == said == said & active == places - parked:
            yield f"successors {stored}, of {said}, in {places - parked}"
        if not parked <= places:
            yield f"blocked jobs {parked}, in {places}"
        counted = int(self.only("counts", {}).get(BLOCKED.encode(), 0))
        if counted != len(stored | parked):
            yield f"counts {counted} blocked jobs of {len(stored | parked)}"

    def _counts(self, jobs: dict[str, dict[str, str]]) -> Iterator[str]:
        states = Counter(job["state"] for job in jobs.values())
        stored = {name.decode(): int(n) for name, n in self.only("counts", {}).items()}
        for state in COUNTED:
            if stored.get(state, 0) != states[state]:
                yield f"counts {stored.get(state, 0)} {state} jobs of {states[state]}"
        lanes = Counter(
            f"queued:{job['lane']}"
            for job in jobs.values()
            if job["state"] == "queued" and "lane" in job
        )
        lanes["elsewhere"] = lanes.total()
        for name in {*lanes, *(set(stored) - {*COUNTED, BLOCKED, *NUMBERS})}:
            if stored.get(name, 0) != lanes[name]:
                yield f"counts {stored.get(name, 0)} {name} of {lanes[name]}"

    def _places(self, jobs: dict[str, dict[str, str]]) -> Iterator[str]:
        """Check that each job is in exactly the one place where its state belongs."""
        ready: Counter[str] = Counter()
        lines = {
            **self.values("ready"),
            **{
                f"{name} in order": [entry for entry, _ in pairs]
                for name, pairs in self.values("ordered").items()
            },
        }
        for name, entries in lines.items():
            for entry in entries:
                generation, _, job_id = entry.decode().partition(":")
                job = jobs.get(job_id, {})
                if job.get("state") == "queued" and job["gen"] == generation:
                    ready[job_id] += 1
                    if name.split()[0] != f"{job.get('lane', 'default')}:{job.get('tier', '5')}":
                        yield f"{job_id!r} is ready in {name}"
        queued = {job_id: 1 for job_id, job in jobs.items() if job["state"] == "queued"}
        if ready != queued:
            yield f"ready entries {dict(ready)}, queued jobs {queued}"
        members = {member.decode() for member, _ in self.only("delayed", [])}
        delayed = members - {gate_leaks.DUE}
        waiting = {
            f"{job['created']}{job.get('gen') or '0' * 14}:{job_id}"
            for job_id, job in jobs.items()
            if job["state"] in ("scheduled", "retrying")
        }
        if delayed != waiting:
            yield f"delayed {delayed}, scheduled and retrying {waiting}"
        active = {i: job for i, job in jobs.items() if job["state"] == "active"}
        yield from self._held("processing", active)
        asked = {i: job for i, job in active.items() if "cancel" in job}
        yield from self._held("cancels", asked)
        for lane, tokens in self.values("wake").items():
            if len(tokens) > 1:
                yield f"has more than one wake-up token of lane {lane}"

    def _held(self, kind: str, expected: dict[str, dict[str, str]]) -> Iterator[str]:
        owned: dict[str, set[str]] = {}
        for job_id, job in expected.items():
            owned.setdefault(job["claim"].partition("/")[0], set()).add(job_id)
        found = {
            name: {member.decode() for member in members}
            for name, members in self.values(kind).items()
        }
        if found != owned:
            yield f"{kind} {found}, the records say {owned}"

    def _ended(self, jobs: dict[str, dict[str, str]]) -> Iterator[str]:
        """Check that every ended record is indexed, or nothing would bound their number."""
        finished = {member.decode() for member, _ in self.only("finished", [])}
        dead = {member.decode() for member, _ in self.only("dead", [])}
        for job_id, job in jobs.items():
            index = dead if job["state"] == "failed" else finished
            if job["state"] in TERMINAL and job_id not in index:
                yield f"{job['state']} {job_id!r} is not indexed"
