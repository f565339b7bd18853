"""What the machine remembers of its own calls: numbers, claims, the last call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from headrace.job import Claim, ClaimedJob, JobState
from headrace.request import JobRequest
from headrace.storage.values import CallId
from tests.model import asks
from tests.model.driver import Driver
from tests.model.subjects import QUEUE, ModelSubject

CLAIMS_KEPT = 12

Held = tuple[str, str, Claim]
"""ContractIncarnation, job id, claim."""


class MachineMemory(RuleBasedStateMachine):
    """The part of the machine that is no rule.

    Args:
        make: opens the storage, which must be empty.
        hits: counts what was done.
    """

    def __init__(self, make: Callable[[], ModelSubject], hits: Counter[str] | None = None) -> None:
        super().__init__()
        self._hits: Counter[str] = Counter() if hits is None else hits
        self._driver = Driver(make, self._hits)
        self._numbers: Counter[tuple[str, str]] = Counter()
        self._drawn = 0
        name = asks.WORKERS[0]
        # Before there is a claim: one that nobody has made.
        self._claims: list[Held] = [(name, asks.IDS[0], Claim(1, f"{name}/1"))]
        self._last: tuple[str, tuple[Any, ...], dict[str, Any]] = (
            "cancel",
            ([asks.UNKNOWN_ID],),
            {},
        )
        for name in asks.WORKERS[:2]:
            self._register(name)

    def teardown(self) -> None:
        self._driver.close()

    def _hit(self, what: str) -> None:
        self._hits[what] += 1

    def _next_call(self, verb: str, client: str) -> CallId:
        self._numbers[verb, client] += 1
        return CallId(client, self._numbers[verb, client])

    def _numbered(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """Make a call that may be repeated."""
        self._last = (verb, args, kwargs)
        return self._driver.call(verb, *args, **kwargs)

    def _new_jobs(self, drawn: Sequence[tuple[str, list[str]]]) -> list[JobRequest]:
        now, channel = self._driver.subject.now, self._driver.channel
        made = []
        for job_id, kinds in drawn:
            self._drawn += 1
            for kind in kinds:
                self._hit(f"enqueue: {kind}")
            new_id = f"new-{self._drawn}"
            made.append(asks.make_job(job_id or new_id, kinds, now=now, channel=channel))
        return made

    def _all_in(self, state: JobState) -> list[str]:
        jobs = self._driver.model.queue(QUEUE).jobs.values()
        return [job.id for job in jobs if job.state is state]

    def _present(self) -> list[Held]:
        """Return the claims that own an attempt still, oldest first."""
        jobs = self._driver.model.queue(QUEUE).jobs
        return [
            held
            for held in self._claims
            if (job := jobs.get(held[1])) is not None
            and job.state is JobState.ACTIVE
            and Claim(job.epoch, job.nonce) == held[2]
        ]

    def _held(self, back: int) -> Held:
        """Return one of the claims that were seen: an even number is a present one's, if any."""
        claims = self._present() if back % 2 == 0 else self._claims
        claims = claims or self._claims
        return claims[-1 - back // 2 % len(claims)]

    def _remember(self, worker: str, jobs: Sequence[ClaimedJob]) -> None:
        """Remember claims, the newest of all."""
        self._claims += [(worker, job.id, job.claim) for job in jobs]
        self._claims = self._claims[-CLAIMS_KEPT:]

    def _nonce(self, call: CallId) -> str:
        self._drawn += 1
        return f"{call.client}/{self._drawn}"

    def _register(self, name: str) -> None:
        """Register an incarnation; one of them hears at once what it is asked to stop."""
        channel = self._driver.channel if name == asks.WORKERS[0] else ""
        self._driver.call("register", asks.worker_of(name, channel))

    def _revive(self, worker: str) -> None:
        """Register an incarnation that is gone, as it does itself."""
        if self._driver.model.queue(QUEUE).live(worker) is None:
            self._register(worker)

    def _forget_numbers(self, name: str) -> None:
        """Number calls anew for an incarnation whose memory has ended."""
        known = self._driver.model.queue(QUEUE).live(name)
        if known is None:
            self._numbers["claim", name] = self._numbers["settle", name] = 0
