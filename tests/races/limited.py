"""Hands that race for jobs with limits, and what their ledger must show.

A job's id begins with its kind and key, so that who reads the ledger knows which limits it met. The
limits are counted by what hands held, and nothing that a storage says of its gates. Of keys that
take turns it shows that the jobs of each keep their order, and that all of them end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from headrace.fairness import FAIR_LIMIT
from headrace.job import ClaimedJob
from headrace.limit import Gate, Terms, gates_text
from headrace.outcome import Cancelled, Completed, Outcome
from headrace.request import JobRequest
from headrace.storage.base import Storage
from tests.races.hands import KEPT_MS, OUTCOMES, QUEUE, Hand, Hold

KEYS = ("x", "y")
CROWD = 300
"""Jobs that stand behind all others, more than one call of a repair counts."""
LIMITS = {
    "one": Terms(1),
    "two": Terms(2),
    "slow": Terms(0, 20, 1_000, 3),
    "many": Terms(CROWD),
}
STEERED = "steered"
DECLARED = {**LIMITS, STEERED: Terms(3)}
SET = (None, Terms(1), Terms(5), Terms(0, 1_000, 1_000, 3))
"""What operators set the limit to that they steer; what hands held says nothing of it."""
KINDS: dict[str, Sequence[str]] = {
    "one": ("one",),
    "two": ("two",),
    "both": ("one", "two"),
    "turned": ("two", "one"),
    "slow": ("slow",),
    "slow-two": ("slow", "two"),
    "steered": (STEERED, "two"),
    "fair": (FAIR_LIMIT,),
    "fair-two": (FAIR_LIMIT, "two"),
    "free": (),
    "crowd": ("many",),
}
"""The limits that a job meets, by its kind."""
WINDOW = 200
"""Most starts of one key that are held against its rate together."""


class LimitedHand(Hand):
    """Enqueues jobs of all kinds, each under an id of its own, and sets a limit now and then."""

    def __init__(self, storage: Storage, name: str, seed: str) -> None:
        super().__init__(storage, name, seed)
        self._ids: list[str] = ["none"]

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Such as leave a record, by which is seen how each job has ended."""
        return [one for one in OUTCOMES if not _is_forgotten(one)]

    async def run(self, steps: int) -> None:
        """Bring a part of the crowd in first."""
        await self.enqueue([self._new_job("crowd", priority=1) for _ in range(CROWD // 6)])
        await super().run(steps)

    def new_jobs(self) -> list[JobRequest]:
        return [self._new_job() for _ in range(self.random.choice((1, 1, 2)))]

    def _new_job(self, kind: str = "", *, priority: int = 0) -> JobRequest:
        kind, key = kind or self.random.choice(list(KINDS)), self.random.choice(KEYS)
        delay_ms = 0 if priority else self.random.choice((0, 0, 0, 1, 3))
        priority = priority or self.random.choice((5, 5, 9))
        gates = [Gate(name, key, DECLARED.get(name)) for name in KINDS[kind]]
        when = "late" if delay_ms else "now"
        self._ids.append(f"{kind}:{key}:{priority}:{when}:{self.name}:{len(self._ids)}")
        return JobRequest(
            id=self._ids[-1],
            queue=QUEUE,
            task="send",
            payload=b"{}",
            priority=priority,
            delay_ms=delay_ms,
            keep_ms=KEPT_MS,
            max_stalls=self.random.choice((2, 9)),
            gates=gates_text(gates),
        )

    def some_id(self) -> str:
        return self.random.choice([*self._ids[-20:], *self.held_ids()])

    async def operate(self) -> None:
        """Purge a job, set the limit that is steered, or look for what has to be mended."""
        what = self.random.choice(("purge", "set", "repair"))
        if what == "purge":
            await super().operate()
        elif what == "set":
            await self.storage.set_limit(QUEUE, STEERED, self.random.choice(SET))
        else:
            await self._repair()
        self.did[what] += 1

    async def _repair(self) -> None:
        """Repair to the end, beside what all others do meanwhile."""
        done = await self.storage.repair(QUEUE, is_full=True)
        mended, calls = done.mended, 1
        while done.cursor:
            done = await self.storage.repair(QUEUE, cursor=done.cursor)
            mended, calls = mended + done.mended, calls + 1
        self.problems += [f"{mended} mended"] * bool(mended)
        self.did["repair over several calls"] += calls > 1


def _is_forgotten(outcome: Outcome) -> bool:
    return isinstance(outcome, Completed | Cancelled) and outcome.keep_ms == 0


def gates_of(job_id: str) -> Iterator[tuple[str, str]]:
    """Return the limits and keys that a job met."""
    kind, key, *_ = job_id.split(":")
    for name in KINDS[kind]:
        yield name, key


def passed(holds: Iterable[Hold]) -> list[str]:
    """Return where more were held of a key than its limit says, at once or in a time."""
    of_gates: defaultdict[tuple[str, str], list[Hold]] = defaultdict(list)
    for hold in holds:
        for gate in gates_of(hold.job_id):
            of_gates[gate].append(hold)
    found: list[str] = []
    for (name, key), held in of_gates.items():
        terms = LIMITS.get(name, Terms())
        if terms.concurrency:
            found += _crowds(f"{name}/{key}", held, terms.concurrency)
        if terms.rate:
            found += _bursts(f"{name}/{key}", held, terms)
    return found


def _crowds(gate: str, held: Iterable[Hold], limit: int) -> Iterator[str]:
    # What ends at the very moment at which another begins was given up before that.
    marks = sorted(
        [(hold.since, 1, hold.job_id) for hold in held]
        + [(hold.until, -1, hold.job_id) for hold in held]
    )
    now: Counter[str] = Counter()
    for at, change, job_id in marks:
        now[job_id] += change
        if (count := now.total()) > limit:
            yield f"{count} of {gate} at {at}: {sorted(now.elements())}"


def _bursts(gate: str, held: Iterable[Hold], terms: Terms) -> Iterator[str]:
    """Hold starts against a rate: each was made between the question and its answer."""
    starts = sorted(held, key=lambda hold: hold.since)
    for first in range(len(starts)):
        asked = starts[first].asked
        for count, hold in enumerate(starts[first : first + WINDOW], 1):
            asked = min(asked, hold.asked)
            # A millisecond more, since a storage counts whole ones.
            ms = (hold.since - asked) / 1e6 + 1
            if count > terms.burst + ms * terms.rate / terms.rate_ms + 1:
                yield f"{count} of {gate} started in {ms:.0f} ms, up to {hold}"


def out_of_order(jobs: Iterable[ClaimedJob]) -> list[str]:
    """Return what started before an earlier job of its hand, limits, key and tier.

    Of jobs that one slot has started: those that had never started before, and not been delayed.
    """
    last: dict[tuple[str, ...], int] = {}
    found = []
    for job in jobs:
        *line, number = job.id.split(":")
        if job.claim.epoch > 1 or "late" in line:
            continue
        if int(number) < last.get(tuple(line), 0):
            found.append(f"{job.id} came after {last[tuple(line)]}")
        last[tuple(line)] = int(number)
    return found
