"""All that a queue keeps on a Redis server, read from its keys, in the model's form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import redis

from headrace.job import DEFAULT_KEEP_MS, DEFAULT_MAX_STALLS, ErrorInfo, JobState, Verdict
from headrace.storage.queues import QueueSettings
from headrace.storage.redis.calls.call import read_error
from headrace.storage.redis.calls.producer import read_verdicts
from tests.model.places import Dump
from tests.support.record import OF_FEW, PARTS, taken_apart

READ_ALL = """
local readers = {
  string = { 'GET' }, list = { 'LRANGE', 0, -1 }, set = { 'SMEMBERS' }, hash = { 'HGETALL' },
  zset = { 'ZRANGE', 0, -1, 'WITHSCORES' }, stream = { 'XREVRANGE', '+', '-', 'COUNT', 1 },
}
local time = redis.call('TIME')
local reply = { string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) }
for _, key in ipairs(redis.call('KEYS', 'hr:*')) do
  local kind = redis.call('TYPE', key).ok
  local command = readers[kind]
  if string.find(key, ':output:', 1, true) then
    command = { 'XRANGE', '-', '+' }
  end
  if command then
    local value = redis.call(command[1], key, unpack(command, 2))
    reply[#reply + 1] = { key, kind, redis.call('PEXPIRETIME', key), value }
  end
end
return reply
"""
"""One call for the time and all keys with their values: a round trip each would take too long."""

# fmt: off
FIELDS = frozenset({
    *PARTS, *OF_FEW, "epoch", "claim", "task", "payload", "tier", "put_back", "reason",
    "error", "result", "progress", "output",
    "next",
})
# fmt: on
QUANTUM_MS = 10_000
"""The TTLs that the machine gives are multiples of this, and no step takes as long."""

OLD = 2**40
"""The last number of what comes before entries without any."""


class Value(NamedTuple):
    """A key's value, and when the server lets it expire, -1 for never."""

    value: Any
    expires: int


class ServerState(NamedTuple):
    """Everything on a server, at one moment of its own clock."""

    at: int
    keys: dict[str, Value]


def _pairs(flat: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


_SHAPES: dict[bytes, Callable[[Any], Any]] = {
    b"set": set,
    b"hash": lambda flat: dict(_pairs(flat)),
    b"zset": lambda flat: [(member, float(score)) for member, score in _pairs(flat)],
}


def read_server(client: redis.Redis) -> ServerState:
    """Read every key of ours."""
    time, *rows = client.eval(READ_ALL, 0)
    keys = {
        key.decode(): Value(_SHAPES.get(kind, lambda value: value)(value), expires)
        for key, kind, expires, value in rows
    }
    return ServerState(int(time), keys)


def _settings(config: dict[str, bytes]) -> QueueSettings:
    found = {name: config[name] for name in QueueSettings.__struct_fields__ if name in config}
    on_failed = found.pop("on_failed", b"").decode()
    numbers = {name: int(word) for name, word in found.items()}
    return QueueSettings(**numbers, on_failed=on_failed)


def _put_back(stored: bytes | None) -> tuple[int, int, ErrorInfo] | None:
    if stored is None:
        return None
    since, charged, error_type, body = stored.split(b"\t", 3)
    error = msgspec.json.decode(body, type=ErrorInfo)
    assert error.type.encode() == error_type
    return int(since), int(charged), error


class Deaths:
    """When keys expire by the clock that the tests move.

    A server's own expiry follows the real clock. So each TTL is noted when it is first seen, which
    is in the step that set it, and `due` tells which keys the moved clock has outlived.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}

    def note(self, server: ServerState, root: str, now: int) -> None:
        """Note the TTLs of a queue's keys."""
        known = {}
        for key, (_, expires) in server.keys.items():
            if expires < 0 or not key.startswith(root):
                continue
            seen, dies = self._known.get(key, (0, 0))
            if seen != expires:
                left_ms = expires - server.at
                dies = now + -(-left_ms // QUANTUM_MS) * QUANTUM_MS
            known[key] = (expires, dies)
        self._known = known

    def of(self, key: str) -> int | None:
        """Return when a key dies, None if it does not."""
        known = self._known.get(key)
        return None if known is None else known[1]

    def put_off(self, ms: int) -> dict[str, int]:
        """Return when the server has to let each key expire, after the clock was set back.

        What is left of a TTL is compared with a new one on the server: it must be no shorter there
        than by the moved clock, although time goes on there until the next step.
        """
        ms = max(ms, QUANTUM_MS)
        self._known = {key: (expires + ms, dies) for key, (expires, dies) in self._known.items()}
        return {key: expires for key, (expires, _) in self._known.items()}

    def due(self, now: int) -> list[str]:
        """Return the keys that are dead."""
        return [key for key, (_, dies) in self._known.items() if dies <= now]


class RedisDump:
    """The dump of one queue.

    Args:
        server: everything on the server.
        root: the queue's.
        deaths: when its keys die.
    """

    def __init__(self, server: ServerState, root: str, deaths: Deaths) -> None:
        self._keys = server.keys
        self._root = root
        self._deaths = deaths
        self.problems: list[str] = []
        self._jobs = {name: taken_apart(value) for name, value in self._named("job")}

    def _named(self, kind: str) -> Iterator[tuple[str, Any]]:
        prefix = f"{self._root}:{kind}:"
        for key, (value, _) in self._keys.items():
            if key.startswith(prefix):
                yield key.removeprefix(prefix), value

    def _one(self, name: str, default: Any) -> Any:
        key = f"{self._root}:{name}"
        return self._keys[key].value if key in self._keys else default

    def read(self) -> Dump:
        """Return all of it; what can't be right is in ``problems``."""
        config = {field.decode(): word for field, word in self._one("config", {}).items()}
        counts = {name.decode(): int(n) for name, n in self._one("counts", {}).items()}
        for name in ("events", "head", "tail", "old", "front"):
            counts.pop(name, None)
        aged = counts.pop("aged", 0)
        elsewhere = counts.pop("elsewhere", 0)
        by_lane = {
            name.partition(":")[2]: counts.pop(name)
            for name in list(counts)
            if name.startswith("queued:")
        }
        if elsewhere != sum(by_lane.values()) or 0 in by_lane.values():
            self.problems.append(f"{elsewhere} jobs are elsewhere, of {by_lane}")
        if here := counts.get("queued", 0) - elsewhere:
            by_lane["default"] = here
        finished, dead = self._ended("finished"), self._ended("dead")
        states = ("queued", "scheduled", "retrying", "active", "blocked")
        return {
            "paused": config.get("paused") == b"1",
            "settings": _settings(config),
            "aged": aged,
            "counts": {
                **{state: counts.pop(state, 0) for state in states},
                **counts,
                "history": len(finished),
                "dead": len(dead),
            },
            "queued by lane": by_lane,
            "lanes": {
                task.decode(): lane.decode() for task, lane in self._one("lanes", {}).items()
            },
            "output": dict(self._output()),
            "jobs": {job_id: self._job(job_id, job) for job_id, job in self._jobs.items()},
            "successors": dict(self._successors()),
            "ready": self._ready(),
            "delayed": list(self._delayed()),
            "finished": finished,
            "dead": dead,
            "held": {
                name: sorted(member.decode() for member in members)
                for name, members in self._named("processing")
            },
            "workers": {
                name.decode(): self._worker(name.decode(), beat)
                for name, beat in self._one("beats", {}).items()
            },
            "calls": self._calls(),
            "fired": self._fired(),
            "idempotent": {
                key: (job_id.decode(), self._deaths.of(f"{self._root}:idempotent:{key}"))
                for key, job_id in self._named("idempotent")
            },
            "readers": {
                name.decode(): tuple(map(int, word.split()[1:]))
                for name, word in self._one("readers", {}).items()
            },
        }

    def _delayed(self) -> dict[str, float]:
        """Return when what waits for a time is due, in the order of the set."""
        members = self._one("delayed", [])
        return {
            member.decode().partition(":")[2]: due for member, due in members if member != b"gates"
        }

    def _ended(self, name: str) -> dict[str, int]:
        return {member.decode(): int(score) for member, score in self._one(name, [])}

    def _ready(self) -> dict[str, list[str]]:
        """Return the entries that stand for a queued job; left-over ones say nothing.

        Those without numbers come behind the heads, and before the tails.
        """
        ready: dict[str, list[str]] = {}
        numbered = list(self._named("ordered"))
        early = [(name, [one for one, at in pairs if at <= OLD]) for name, pairs in numbered]
        late = [(name, [one for one, at in pairs if at > OLD]) for name, pairs in numbered]
        for name, entries in (*early, *self._named("ready"), *late):
            ids = ready.pop(name, [])
            for entry in entries:
                generation, _, job_id = entry.partition(b":")
                job = self._jobs.get(job_id.decode(), {})
                if job.get("state") == b"queued" and job.get("gen") == generation:
                    ids.append(job_id.decode())
            if ids:
                ready[name] = ids
        return ready

    def _output(self) -> Iterator[tuple[str, tuple[int, dict[int, bytes]]]]:
        for job_id, entries in self._named("output"):
            if job_id not in self._jobs:
                self.problems.append(f"there is output of {job_id!r}, which is no job")
            numbers = [tuple(map(int, entry[0].split(b"-"))) for entry in entries]
            if len({epoch for epoch, _ in numbers}) != 1:
                self.problems.append(f"the output of {job_id!r} is {numbers}")
            pieces = {
                number[1]: entry[1][1] for number, entry in zip(numbers, entries, strict=True)
            }
            yield job_id, (numbers[-1][0], pieces)

    def _job(self, job_id: str, job: dict[str, bytes]) -> Dump:
        if extra := set(job) - FIELDS:
            self.problems.append(f"{job_id!r} has the fields {extra}")
        dies = self._deaths.of(f"{self._root}:job:{job_id}")
        payload = self._beside(job_id, "payload", job)
        result = self._beside(job_id, "result", job)
        result_dies = self._deaths.of(f"{self._root}:result:{job_id}")
        for kind in ("payload", "errors"):
            key = f"{self._root}:{kind}:{job_id}"
            if key in self._keys and self._deaths.of(key) != dies:
                self.problems.append(f"{key} dies at {self._deaths.of(key)}, its job at {dies}")

        def number(field: str, default: int = 0) -> int:
            return int(job.get(field) or default)

        due = self._delayed().get(job_id)
        epoch, _, said = job.get("progress", b"").partition(b"\t")
        fraction, _, text = said.partition(b"\t") if epoch == job.get("epoch") else (b"", b"", b"")
        return {
            "task": job["task"].decode(),
            "payload": payload,
            "tier": number("tier", 5),
            "lane": job.get("lane", b"default").decode(),
            "created": number("created"),
            "at": number("at", number("created")),
            "state": JobState(job["state"].decode()),
            "expires": number("expires_at_ms"),
            "max_stalls": number("max_stalls", DEFAULT_MAX_STALLS),
            "keep": int(job.get("keep_ms", DEFAULT_KEEP_MS)),
            "options": job.get("options", b""),
            "due": None if due is None else int(due),
            "channels": sorted(job.get("channels", b"").decode().split()),
            "epoch": number("epoch"),
            "nonce": job.get("claim", b"").decode(),
            "failures": number("failures"),
            "stalls": number("stalls"),
            "cancel": "cancel" in job,
            "joined": "joined" in job,
            "progress": float(fraction) if fraction else None,
            "progress_text": text.decode(),
            "put_back": _put_back(job.get("put_back")),
            "run": number("run"),
            "reason": job.get("reason", b"").decode(),
            "error": job.get("error", b"").decode(),
            "result": result,
            "dies": dies,
            "result_dies": None if result_dies == dies else result_dies,
            "on_failed": job["on_failed"].decode() if "on_failed" in job else None,
            "gates": job.get("gates", b"").decode(),
            "parked": job.get("parked", b"").decode(),
            "slots": int(job.get("slots", 1)),
            "errors": [read_error(entry) for entry in self._one(f"errors:{job_id}", [])],
        }

    def _successors(self) -> Iterator[tuple[str, Dump]]:
        """Return what is blocked; `tests.support.leaks` holds it against the records."""
        found = {
            name: {f.decode(): word for f, word in one.items()} for name, one in self._named("next")
        }
        places = {member.decode(): int(at) for member, at in self._one("blocked", [])}
        for job_id, fields in found.items():
            if places[job_id] != int(fields["created_ms"]):
                self.problems.append(f"{job_id!r} is blocked since {places[job_id]}")
            yield (
                job_id,
                {
                    "task": fields["task"].decode(),
                    "payload": fields["payload"],
                    "tier": int(fields.get("tier", 5)),
                    "lane": fields.get("lane", b"default").decode(),
                    "keep": int(fields.get("keep_ms", DEFAULT_KEEP_MS)),
                    "on_failed": fields["on_failed"].decode() if "on_failed" in fields else None,
                    "gates": fields.get("gates", b"").decode(),
                    "slots": int(fields.get("slots", 1)),
                    "options": fields.get("options", b""),
                    "max_stalls": int(fields.get("max_stalls", DEFAULT_MAX_STALLS)),
                    "expires": int(fields.get("expires_at_ms", 0)),
                    "due": int(fields["due_ms"]) if "due_ms" in fields else None,
                    "joined": "joined" in fields,
                    "created": int(fields["created_ms"]),
                    "channels": sorted(fields.get("channels", b"").decode().split()),
                    "update": fields["update"].decode(),
                },
            )

    def _beside(self, job_id: str, kind: str, job: dict[str, bytes]) -> Any:
        """Return a value from the record or from the key beside it."""
        beside = self._one(f"{kind}:{job_id}", None)
        if kind in job and beside is not None:
            self.problems.append(f"{job_id!r} has two {kind}s")
        return job.get(kind, beside)

    def _worker(self, name: str, beat: bytes) -> Dump:
        count, lease_ms, at = map(int, beat.split())
        kept = {f.decode(): word for f, word in self._one(f"worker:{name}", {}).items()}
        return {
            "lease_ms": lease_ms,
            "since": int(kept.get("registered_ms", 0)),
            "at": at,
            "info": kept.get("info", b""),
            "count": count,
            "claim": int(kept.get("claim_number", 0)),
            "settle": int(kept.get("settle_number", 0)),
            "settled": [word != b"stale" for word in kept.get("settled", b"").split()],
        }

    def _fired(self) -> dict[str, int]:
        """Return the last instants; those of several periods are kept beside each other."""
        marks: dict[str, int] = {}
        for _, known in self._named("fired"):
            for name, instant in known.items():
                marks[name.decode()] = max(int(instant), marks.get(name.decode(), 0))
        return marks

    def _calls(self) -> dict[str, dict[int, tuple[int, list[Verdict]]]]:
        calls: dict[str, dict[int, tuple[int, list[Verdict]]]] = {}
        for name, value in self._named("calls"):
            client, _, slot = name.rpartition(":")
            number, _, words = value.partition(b" ")
            calls.setdefault(client, {})[int(slot)] = (int(number), read_verdicts(words))
        return calls
