"""Runs a verb on a storage and on the model, and compares the replies and all that is stored."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec

from headrace.errors import QueueFull, StageLost, StaleCall, TooManySchedules
from headrace.events import EventRecord
from headrace.job import JobRecord, JobState
from headrace.request import JobRequest
from headrace.storage.base import BulkReader, Channel, Scheduler
from headrace.storage.incarnations import ClaimReply
from headrace.storage.queues import QueueCounts
from headrace.storage.schedules import StoredSchedule, TakenSchedules
from headrace.storage.values import CallId, End, Settlement, StageInfo
from headrace.storage.verbs import verbs_of
from tests.model import schedule_asks
from tests.model.asks import OUTCOMES, WORKERS, make_job, worker_of
from tests.model.model import Model
from tests.model.places import Event
from tests.model.schedule_asks import make_occurrence, make_write
from tests.model.schedules import SCHEDULES_LIMIT, WORD
from tests.model.subjects import NEIGHBOUR, QUEUE, START_MS, ModelSubject

T = TypeVar("T")
INBOX_SECONDS = 10
OF_NO_QUEUE = tuple(verb for verb in verbs_of(Scheduler) if verb != "fire")
LOOKED_AT = 4
"""How many of the last entries of events are read in bulk."""
FAR_MS = 10 * START_MS
"""An instant whose mark no run of the machine sees end."""
REFUSALS = (StaleCall, TooManySchedules, StageLost, QueueFull)
COUNTS = (
    "queued",
    "scheduled",
    "retrying",
    "active",
    "blocked",
    "history",
    "dead",
    "workers",
    "oldest_ms",
)


class Full(NamedTuple):
    """What a queue says that is full."""

    queue: str
    limit: int
    waiting: int


def said_of(refusal: Exception) -> Full | type[Exception]:
    """Return what a refusal says that has to be the same of the storage and of the model."""
    if isinstance(refusal, QueueFull):
        return Full(refusal.queue, refusal.limit, refusal.waiting)
    return type(refusal)


class Driver:
    """A storage and the model beside it, in one event loop.

    Args:
        make: opens the storage, which must be empty.
        hits: counts the verbs that were called and the transitions that jobs made.
    """

    def __init__(self, make: Callable[[], ModelSubject], hits: Counter[str]) -> None:
        self._hits = hits
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self.subject: ModelSubject = self.run(_made(make))
        self.model: Model = Model(self.subject.now)
        self.has_stepped_back: bool = False
        self._seen_event = "0"
        self._lengths: dict[tuple[str, str], list[int]] = {}
        self._channel: Channel = self.subject.storage.open_channel()
        self.run(self._channel.receive())
        self.run(self._populate())
        self._others = self.run(self.subject.look()).others

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self._loop.run_until_complete(work)

    @property
    def channel(self) -> str:
        """The channel whose messages are compared."""
        return self._channel.name

    async def _populate(self) -> None:
        """Give another tenant and another queue jobs of the same names; they must stay as is."""
        neighbour = self.subject.open(NEIGHBOUR)
        for storage, queue in ((neighbour, QUEUE), (self.subject.storage, "sms")):
            jobs = [make_job(i, [], now=self.subject.now, channel="") for i in "abcd"]
            await storage.enqueue(queue, jobs, call=CallId("c1", 1))
            await storage.register(queue, worker_of(WORKERS[0]))
            call = CallId(WORKERS[0], 1)
            reply = await storage.claim(queue, call=call, nonce="w1/0", slots={"default": 3})
            settlements = [
                Settlement(job.id, job.claim, 5, outcome)
                for job, outcome in zip(
                    reply.jobs, (OUTCOMES["completed"], OUTCOMES["failed"]), strict=False
                )
            ]
            await storage.settle(queue, settlements, call=CallId(WORKERS[0], 1))
            fired = [
                make_occurrence(i, FAR_MS, [], now=self.subject.now, channel="")
                for i in schedule_asks.IDS
            ]
            await storage.fire(queue, fired, until_ms=FAR_MS)
        ids = schedule_asks.IDS[:SCHEDULES_LIMIT]
        await neighbour.write_schedules([make_write(i, 0, START_MS, {}) for i in ids], wakes=False)
        await neighbour.aclose()

    def call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """Call a verb of both, compare all there is to compare, and return the storage's reply."""
        if verb not in OF_NO_QUEUE:
            args = (QUEUE, *args)
        real = self.run(self._ask(verb, *args, **kwargs))
        return self._compare(verb, real, lambda: getattr(self.model, verb)(*args, **kwargs))

    async def _ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return await getattr(self.subject.storage, verb)(*args, **kwargs)
        except REFUSALS as refusal:
            return said_of(refusal)

    def _compare(self, what: str, real: Any, model: Callable[[], Any]) -> Any:
        self._hits[f"verb {what}"] += 1
        look = self.run(self.subject.look())
        self.model.hint = {**look.queue, "numbers": look.numbers}
        if isinstance(real, TakenSchedules):
            self.model.taken_hint = [schedule.id for schedule in real.schedules]
        try:
            expected = model()
            self.model.close_gates(self.model.queue(QUEUE))
        except REFUSALS as refusal:
            expected = said_of(refusal)
        self.model.hint, self.model.taken_hint = None, []
        same(f"the reply to {what}", real, expected)
        if isinstance(real, Full):
            self._hits[f"{what} of a full queue"] += 1
        self._compare_told()
        self._compare_events()
        modelled = self.model.dump(QUEUE)
        for job_id in self._outworn():
            look.queue["output"].pop(job_id, None)
            modelled["output"].pop(job_id, None)
        for schedule_id in self.model.outworn_marks(QUEUE):
            look.queue["fired"].pop(schedule_id, None)
            modelled["fired"].pop(schedule_id)
        if self.model.has_stepped_back:
            # Whether one that was full is known yet is the storage's own affair.
            for dump in (look.queue, modelled):
                dump["gates"] = {
                    name: gate for name, gate in dump["gates"].items() if any(gate[:2])
                }
        same("what is stored", look.queue, modelled)
        same("what is stored of schedules", look.schedules, self.model.dump_schedules())
        same("what is of others", look.others, self._others)
        same("what is wrong", look.problems, [])
        return real

    def remembers(self, call: CallId) -> bool:
        """Whether an enqueue of that number would be answered from memory."""
        known = self.model.queue(QUEUE).calls.get(call.client, {}).get(call.number % 2)
        return known is not None and known.number >= call.number

    def check(self) -> None:
        """Compare all that is stored, after something that is not a verb."""
        self._compare("check", None, lambda: None)

    def _compare_told(self) -> None:
        told, self.model.told = self.model.told, []
        expected = [end for channel, end in told if channel == self.channel]
        real = list(filter(None, [self.run(self._receive()) for _ in expected]))
        self._hits["schedulers are told"] += expected.count(WORD)
        same("what waiters are told", sorted(real, key=_text), sorted(expected, key=_text))

    async def _receive(self) -> End | None:
        """Return the next word to waiters, None if there is none."""
        with suppress(TimeoutError):
            async with asyncio.timeout(INBOX_SECONDS):
                return await self._channel.receive()
        return None

    def _compare_events(self) -> None:
        expected, self.model.events = self.model.events, []
        after = self._seen_event
        page = self.run(self.subject.storage.events(QUEUE, after=after, limit=1000))
        self._seen_event = page.last_id or after
        self._compare_numbers(page.events)
        real: list[Event] = [
            (
                e.kind.value,
                e.job_id,
                e.task,
                e.start,
                e.incarnation,
                e.wait_ms,
                e.run_ms,
                e.detail,
                "\t".join((e.error, e.message, e.frame)),
                e.due_ms,
                e.created_ms,
                "\t".join((e.worker, e.host, e.version, e.app_version)).strip("\t"),
            )
            for e in page.events
        ]
        same("the events", sorted(real), sorted(expected))
        self._hits.update(f"a job {event[0]} {event[7]}".rstrip() for event in expected)
        self._hits["a fail job"] += sum(e[7].startswith("on_failed ") for e in expected)

    def _compare_numbers(self, events: Sequence[EventRecord]) -> None:
        entries = self.model.queue(QUEUE).entries
        last = max(entries.values(), default=0)
        real = [event.number for event in events]
        same("the numbers of events", real, list(range(last + 1, last + 1 + len(real))))
        entries.update((event.stream_id, event.number) for event in events)

    # What is no verb, or is called in a way of its own

    def advance(self, ms: int) -> None:
        """Move both clocks."""
        self.run(self.subject.advance(ms))
        self.model.advance(ms)
        self.has_stepped_back = self.has_stepped_back or ms < 0
        self.check()

    def beat(self, incarnation: str) -> None:
        """Beat, from the side of the beat thread."""
        beater = self.subject.storage.open_beater(timeout_s=INBOX_SECONDS)
        try:
            reply = beater.beat(QUEUE, incarnation)
        finally:
            beater.close()
        real = msgspec.structs.replace(reply, cancel_ids=sorted(reply.cancel_ids))
        self._compare("beat", real, lambda: self.model.beat(QUEUE, incarnation))

    def claim_again(self, **kwargs: Any) -> Any:
        """Repeat a claim; the order of what it still owns is not promised."""
        reply = self.run(self._ask("claim", QUEUE, **kwargs))
        real = reply if reply is StaleCall else _sorted(reply)
        self._compare("claim", real, lambda: _sorted(self.model.claim(QUEUE, **kwargs)))
        return reply

    def stage(
        self, write_id: str, token: str, jobs: Sequence[JobRequest], *, before: int, ttl_ms: int
    ) -> None:
        """Stage jobs; the model counts calls, and a storage what it likes."""
        lengths = self._lengths_of(write_id, token)
        args = (QUEUE, write_id, token, jobs)
        length = _real_length(lengths, before)
        real = self.run(self._ask("stage", *args, before=length, ttl_ms=ttl_ms))
        if isinstance(real, int):
            if real > lengths[-1]:
                lengths.append(real)
            real = lengths.index(real)
        self._compare("stage", real, lambda: self.model.stage(*args, before=before, ttl_ms=ttl_ms))

    def commit(
        self, write_id: str, stages: Sequence[StageInfo], *, batch: int, keep_ms: int
    ) -> Any:
        """Commit stages whose lengths are the model's."""
        said = [
            StageInfo(
                info.token,
                _real_length(self._lengths_of(write_id, info.token), info.length),
                info.jobs,
            )
            for info in stages
        ]
        options = {"batch": batch, "keep_ms": keep_ms}
        real = self.run(self._ask("commit", QUEUE, write_id, said, **options))
        return self._compare(
            "commit", real, lambda: self.model.commit(QUEUE, write_id, stages, **options)
        )

    def _lengths_of(self, write_id: str, token: str) -> list[int]:
        """Return what a storage calls the lengths of a stage, one after each call."""
        name = (token, write_id)
        if name not in self.model.queue(QUEUE).stages:
            self._lengths.pop(name, None)
        return self._lengths.setdefault(name, [0])

    def held(self, incarnation: str) -> None:
        """Compare what an incarnation has, in any order."""
        real = self.run(self.subject.storage.held(QUEUE, incarnation))
        real.sort(key=lambda pair: pair[0])
        self._hits["verb held"] += 1
        same(f"held by {incarnation}", real, self.model.held(QUEUE, incarnation))

    def prune(self) -> None:
        """Prune to the end."""
        self.run(self._prune())
        self._compare("prune", None, self._prune_model)

    def _prune_model(self) -> None:
        self.model.prune(QUEUE)
        self.model.prune_readers(QUEUE)

    async def _prune(self) -> None:
        cursor = await self.subject.storage.prune(QUEUE)
        while cursor:
            cursor = await self.subject.storage.prune(QUEUE, cursor=cursor)

    def readers(self) -> None:
        """Compare how far readers have come; ids of entries within one differ by the storage."""
        known = self.run(self.subject.storage.readers(QUEUE))
        real = [msgspec.structs.replace(reader, stream_id="") for reader in known]
        self._hits["verb readers"] += 1
        same("the readers", real, self.model.readers(QUEUE))

    def read_in_bulk(self, limit: int) -> None:
        """Compare entries of events as they are kept, and where they are."""
        self._hits.update(f"verb {verb}" for verb in verbs_of(BulkReader))
        storage, model = self.subject.storage, self.model
        span = self.run(storage.event_span(QUEUE))
        same("the span of events", span, model.event_span(QUEUE))
        last = [("0", 0), *model.queue(QUEUE).entries.items()][-LOOKED_AT:]
        for (after, _), (until, _) in zip(last, last[limit:], strict=False):
            for asked in ({"after": after, "until": ""}, {"after": after, "until": until}):
                page = self.run(storage.event_lines(QUEUE, **asked, limit=limit))
                real = [entry.place for entry in page]
                same("the lines of events", real, model.event_lines(QUEUE, **asked, limit=limit))
        for stream_id, _ in last:
            for at_ms in (int(stream_id.partition("-")[0]) + more for more in (-1, 0)):
                place = self.run(storage.event_place(QUEUE, at_ms))
                right = model.event_place(QUEUE, at_ms)
                same(f"the place of {at_ms}", place, place if place in right else right)

    def repair(self) -> None:
        """Repair to the end, thoroughly: in a queue in order there is nothing to do."""
        mended = self.run(self._repair())
        self._compare("repair", mended, lambda: self.model.repair(QUEUE))

    async def _repair(self) -> int:
        done = await self.subject.storage.repair(QUEUE, is_full=True)
        mended = done.mended
        while done.cursor:
            done = await self.subject.storage.repair(QUEUE, cursor=done.cursor)
            mended += done.mended
        return mended

    def why(self, job_id: str) -> None:
        """Compare how a job stands, those that have places in any order."""
        real = self.run(self.subject.storage.why(QUEUE, job_id))
        self._hits["verb why"] += 1
        for gate in real.gates if real else ():
            gate.holders.sort()
        same(f"why {job_id} does not run", real, self.model.why(QUEUE, job_id))

    def list_jobs(self, state: JobState, limit: int) -> None:
        """Compare the rows of all pages; those of queued jobs in their order too."""
        rows = self.run(self._pages(state, limit))
        if state is not JobState.QUEUED:
            rows.sort(key=lambda row: row.id)
        self._hits["verb list_jobs"] += 1
        same(f"the {state} jobs", rows, self.model.list_jobs(QUEUE, state))

    def export(self, state: JobState, limit: int) -> None:
        """Compare the records of all pages, in their order."""
        records = self.run(self._exported(state, limit))
        self._hits["verb export"] += 1
        same(f"the export of {state} jobs", records, self.model.export(QUEUE, state))

    async def _exported(self, state: JobState, limit: int) -> list[JobRecord]:
        storage = self.subject.storage
        page = await storage.export(QUEUE, state, limit=limit)
        records = list(page.records)
        while page.has_more:
            page = await storage.export(QUEUE, state, cursor=page.cursor, limit=limit)
            assert len(page.records) <= limit
            records += page.records
        return records

    def output(self, job_id: str, limit: int) -> None:
        """Compare the pieces of all pages, while they must be kept."""
        real = self.run(self._pieces(job_id, limit))
        self._hits["verb output"] += 1
        if job_id not in self._outworn():
            same(f"the output of {job_id}", real, self.model.output(QUEUE, job_id))

    async def _pieces(self, job_id: str, limit: int) -> list[bytes]:
        found: list[bytes] = []
        cursor = ""
        while chunks := (
            page := await self.subject.storage.output(QUEUE, job_id, after=cursor, limit=limit)
        ).chunks:
            found += chunks
            cursor = page.cursor
        return found

    def _outworn(self) -> set[str]:
        """Return the jobs whose output may be gone."""
        outputs = self.model.queue(QUEUE).outputs
        return {job_id for job_id, output in outputs.items() if output.is_outworn}

    async def _pages(self, state: JobState, limit: int) -> list[Any]:
        storage = self.subject.storage
        page = await storage.list_jobs(QUEUE, state, limit=limit)
        rows = list(page.rows)
        while page.cursor:
            page = await storage.list_jobs(QUEUE, state, cursor=page.cursor, limit=limit)
            rows += page.rows
        return rows

    def list_schedules(self, app: str | None, limit: int) -> None:
        """Compare the schedules of all pages."""
        found = self.run(self._schedules(app, limit))
        self._hits["verb list_schedules"] += 1
        same(f"the schedules of {app}", found, self.model.list_schedules(app))

    async def _schedules(self, app: str | None, limit: int) -> list[StoredSchedule]:
        found: list[StoredSchedule] = []
        cursor = ""
        while True:
            page = await self.subject.storage.list_schedules(app=app, cursor=cursor, limit=limit)
            found += page.schedules
            cursor = page.cursor
            if not cursor:
                return found

    def stats(self) -> None:
        """Compare counts and rates; rates only of a clock that has never gone back."""
        real = self.run(self.subject.storage.stats(QUEUE))
        expected = self.model.stats(QUEUE)
        self._hits["verb stats"] += 1
        if self.has_stepped_back:
            same("the counts", _counts(real), _counts(expected))
        else:
            same("the stats", real, expected)

    def wait(self, incarnation: str, lane: str) -> None:
        """Take a lane's wake-up token, which must be there if the model says so."""
        waiter = self.subject.storage.open_waiter(QUEUE, incarnation, lane)
        tokens = self.model.queue(QUEUE).tokens
        is_taken = self.run(_wait(waiter, 2 if lane in tokens else 0))
        if lane in tokens:
            same(f"a wake-up token of {lane} is there", is_taken, expected=True)
        tokens.discard(lane)

    def lose_token(self) -> None:
        """Take the wake-up tokens away; nothing else may depend on them."""
        self.run(self.subject.lose_token())
        self.model.queue(QUEUE).tokens.clear()
        self.check()

    def reopen(self) -> None:
        """Close the storage and open it anew, with a new channel."""
        self.run(self._channel.aclose())
        self.run(self.subject.reopen())
        self._channel = self.subject.storage.open_channel()
        self.run(self._channel.receive())
        self.model.queue(QUEUE).tokens.clear()
        self.check()

    def close(self) -> None:
        """Close everything."""
        try:
            self.run(self._channel.aclose())
            self.run(self.subject.aclose())
        finally:
            self._runner.close()


async def _made(make: Callable[[], ModelSubject]) -> ModelSubject:
    return make()


async def _wait(waiter: Any, seconds: float) -> bool:
    try:
        return bool(await waiter.wait(seconds))
    finally:
        await waiter.aclose()


def _sorted(reply: ClaimReply) -> ClaimReply:
    return msgspec.structs.replace(reply, jobs=sorted(reply.jobs, key=lambda job: job.id))


def _text(end: End | None) -> str:
    return repr(end)


def _real_length(lengths: list[int], length: int) -> int:
    """Return what a storage calls a length; one that no stage has is far off."""
    return lengths[length] if 0 <= length < len(lengths) else lengths[-1] + 1_000


def _counts(stats: QueueCounts) -> dict[str, int]:
    return {name: getattr(stats, name) for name in COUNTS}


def same(what: str, real: Any, expected: Any) -> None:
    """Fail with the smallest parts that differ.

    Raises:
        AssertionError: the two are not equal.
    """
    if real != expected:
        found = "\n".join(_differences(real, expected, ""))
        raise AssertionError(f"{what} differs from the model:\n{found}")


def _differences(real: Any, expected: Any, path: str) -> list[str]:
    if isinstance(real, msgspec.Struct) and type(real) is type(expected):
        real, expected = msgspec.structs.asdict(real), msgspec.structs.asdict(expected)
    if not (isinstance(real, dict) and isinstance(expected, dict)):
        return [f"  {path or 'it'}: storage {real!r}\n  {' ' * len(path)}  model   {expected!r}"]
    return [
        line
        for key in dict.fromkeys([*real, *expected])
        if real.get(key) != expected.get(key)
        for line in _differences(real.get(key), expected.get(key), f"{path}[{key!r}]")
    ]
