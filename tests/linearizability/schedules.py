"""One schedule as a register and a mark: what calls do to it in turn, and a client that tells.

`take_schedules` is not here: nothing may rest on what it hides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from headrace.request import JobRequest
from headrace.storage.schedules import Occurrence, ScheduleWrite
from tests.linearizability.caller import Answer, Caller
from tests.linearizability.checker import Operation, check
from tests.linearizability.history import shown

MOST_INSTANTS = 12
NOBODY_STANDS_STILL = 2**50
"""An instant until which anybody may fire."""

REFUSED = "refused"
"""Reply to a write that expected another version."""
DELETED = "deleted"
WRITTEN = "written"


class Write(msgspec.Struct, frozen=True, tag=True):
    """Change the schedule if it has a version, 0: if it is not there; without a body: delete it."""

    expected: int
    body: str | None = None


class Read(msgspec.Struct, frozen=True, tag=True):
    """Read the schedule."""


class Fire(msgspec.Struct, frozen=True, tag=True):
    """Fire an occurrence."""

    instant: int


class Found(msgspec.Struct, frozen=True, tag=True):
    """Reply to a read; version 0: there is none."""

    version: int = 0
    body: str = ""


Call = Write | Read | Fire
Reply = str | Found


class State(NamedTuple):
    """A schedule, and the last instant that was fired; version 0: it is not there."""

    version: int = 0
    body: str = ""
    last: int = -1


class ScheduleSpecification:
    """The specification of one schedule, for `tests.linearizability.checker.check`."""

    def initial(self) -> State:
        """Return the state of an id that nobody has used."""
        return State()

    def apply(self, state: State, call: Call) -> Iterable[tuple[Reply, State]]:
        """Return the one reply that a call gets, with what it leaves."""
        match call:
            case Read():
                return [(Found(state.version, state.body), state)]
            case Fire(instant):
                is_new = instant > state.last
                return [("queued" if is_new else "duplicate", _fired(state, instant))]
            case Write(expected) if expected != state.version:
                return [(REFUSED, state)]
            case Write(body=None):
                return [(DELETED, state._replace(version=0, body=""))]
            case Write(expected, str(body)):
                return [(WRITTEN, state._replace(version=expected + 1, body=body))]
        raise AssertionError(call)


def _fired(state: State, instant: int) -> State:
    return state._replace(last=max(state.last, instant))


class Entry(msgspec.Struct, frozen=True, tag=True):
    """One call as far as it is about one schedule; ``returned`` None: its outcome is unknown."""

    schedule_id: str
    client: str
    call: Call
    invoked: int
    returned: int | None
    reply: Reply | None

    @property
    def operation(self) -> Operation[Call, Reply]:
        """What the checker needs of it."""
        return Operation(self.call, self.invoked, self.returned, self.reply)


def problems(entries: Iterable[Entry]) -> list[str]:
    """Return a text for each schedule whose calls no order explains."""
    by_schedule = defaultdict(list)
    for entry in entries:
        by_schedule[entry.schedule_id].append(entry)
    found = []
    for schedule_id, own in by_schedule.items():
        verdict = check(ScheduleSpecification(), [entry.operation for entry in own])
        if not verdict.is_linearizable:
            found.append(f"no order explains what happened to {schedule_id}\n{shown(own, verdict)}")
    return found


class ScheduleClient:
    """Reads, writes and fires a few schedules at random, mostly by the version that it has seen.

    No call is repeated: of two, each could have its effect.

    Args:
        caller: who calls.
        names: of the schedules that it uses.
    """

    def __init__(self, caller: Caller, *, names: Sequence[str]) -> None:
        self.lines: list[Entry] = []
        self._caller = caller
        self._storage = caller.storage
        self._random = caller.random
        # Schedules are the tenant's, and each history has its own.
        self._ids = [f"{caller.queue} {name}" for name in names]
        self._seen = dict.fromkeys(self._ids, 0)
        self._unique = 0

    async def run(self, calls: int) -> None:
        """Make that many calls."""
        verbs = {self._write: 5, self._fire: 3, self._read: 2}
        for verb in self._random.choices(list(verbs), weights=list(verbs.values()), k=calls):
            await verb(self._some_ids())

    async def look(self) -> None:
        """Read every schedule, see whether it was fired, and delete it."""
        await self._read(self._ids)
        await self._send_fire(dict.fromkeys(self._ids, Fire(0)))
        await self._send_write({each: Write(n) for each, n in self._seen.items() if n})

    def _some_ids(self) -> list[str]:
        return self._random.sample(self._ids, self._random.randint(1, min(2, len(self._ids))))

    def _note(
        self, calls: Mapping[str, Call], answer: Answer[Any], replies: Sequence[Reply]
    ) -> None:
        """Record a call, unless it surely had no effect."""
        if answer.returned is None and not answer.may_have_run:
            return
        is_known = answer.returned is not None
        self.lines += [
            Entry(
                schedule_id,
                self._caller.name,
                call,
                answer.invoked,
                answer.returned,
                replies[n] if is_known else None,
            )
            for n, (schedule_id, call) in enumerate(calls.items())
        ]

    async def _write(self, ids: Sequence[str]) -> None:
        self._unique += 1
        body = f"{self._caller.name}-{self._unique}"
        await self._send_write(
            {
                each: Write(
                    max(0, self._seen[each] + self._random.choice((0, 0, 0, 0, -1, 1))),
                    self._random.choice((body, body, body, None)),
                )
                for each in ids
            }
        )

    async def _send_write(self, calls: Mapping[str, Write]) -> None:
        writes = [
            ScheduleWrite(
                id=each,
                expected=call.expected,
                body=None if call.body is None else call.body.encode(),
                first_version=1,
            )
            for each, call in calls.items()
        ]
        # On a server one that brings no new schedule has another name, which faults go by.
        grows = any(write.expected == 0 and write.body is not None for write in writes)
        answer = await self._caller.ask(
            "write_schedules" if grows else "change_schedules",
            lambda: self._storage.write_schedules(writes, wakes=False),
        )
        versions: list[int | None] = answer.reply or []
        self._note(calls, answer, [_written(version) for version in versions])
        for each, version in zip(calls, versions, strict=False):
            if version is not None:
                self._seen[each] = version

    async def _fire(self, ids: Sequence[str]) -> None:
        await self._send_fire({each: Fire(self._random.randrange(MOST_INSTANTS)) for each in ids})

    async def _send_fire(self, calls: Mapping[str, Fire]) -> None:
        occurrences = [
            Occurrence(each, call.instant, _job(each, call.instant, self._caller.queue))
            for each, call in calls.items()
        ]
        answer = await self._caller.ask(
            "fire",
            lambda: self._storage.fire(
                self._caller.queue, occurrences, until_ms=NOBODY_STANDS_STILL
            ),
        )
        self._note(calls, answer, [str(outcome) for outcome in answer.reply or []])

    async def _read(self, ids: Sequence[str]) -> None:
        answer = await self._caller.ask("read_schedules", lambda: self._storage.read_schedules(ids))
        if answer.reply is None:
            return
        there = {
            each.id: Found(each.version, each.body.decode()) for each in answer.reply.schedules
        }
        found = {each: there.get(each, Found()) for each in ids}
        self._note(dict.fromkeys(ids, Read()), answer, list(found.values()))
        self._seen.update((each, known.version) for each, known in found.items())


def _written(version: int | None) -> str:
    if version is None:
        return REFUSED
    return WRITTEN if version else DELETED


def _job(schedule_id: str, instant: int, queue: str) -> JobRequest:
    return JobRequest(id=f"{schedule_id}:{instant}", queue=queue, task="send", payload=b"[]")
