"""What clients asked and were answered about jobs, and how it is shown when it is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from tests.linearizability.checker import Operation, Verdict, check
from tests.linearizability.spec import Call, JobSpecification, Reply, State

JobVerdict: TypeAlias = Verdict[State, Call, Reply]


class Line(msgspec.Struct, frozen=True, tag=True):
    """One call as far as it is about one job id; ``returned`` None: its outcome is unknown."""

    job_id: str
    client: str
    call: Call
    invoked: int
    returned: int | None
    reply: Reply | None

    @property
    def operation(self) -> Operation[Call, Reply]:
        """What the checker needs of it."""
        return Operation(self.call, self.invoked, self.returned, self.reply)


def check_job(lines: Iterable[Line]) -> JobVerdict:
    """Search an order that explains what happened to one job id."""
    return check(JobSpecification(), [line.operation for line in lines])


def problems_of_jobs(lines: Iterable[Line]) -> list[str]:
    """Return a text for each job id whose calls no order explains."""
    by_job = defaultdict(list)
    for line in lines:
        by_job[line.job_id].append(line)
    found = []
    for job_id, own in by_job.items():
        verdict = check_job(own)
        if not verdict.is_linearizable:
            found.append(f"no order explains what happened to job {job_id}\n{shown(own, verdict)}")
    return found


class Recorded(Protocol):
    """A call that was recorded, of whatever object."""

    @property
    def client(self) -> str: ...
    @property
    def call(self) -> object: ...
    @property
    def invoked(self) -> int: ...
    @property
    def returned(self) -> int | None: ...
    @property
    def reply(self) -> object: ...
    @property
    def operation(self) -> Operation[Any, Any]: ...


def shown(lines: Sequence[Recorded], verdict: Verdict[Any, Any, Any]) -> str:
    """Return the calls by the time of their start, in µs, numbered as the longest try has them."""
    numbers = {operation: n for n, operation in enumerate(verdict.order, start=1)}
    ordered = sorted(lines, key=lambda line: line.invoked)
    start = ordered[0].invoked
    rows = [f"{'order':>5} {'from':>8} {'to':>8}  client"]
    for line in ordered:
        number = numbers.get(line.operation, "")
        end = "" if line.returned is None else (line.returned - start) // 1000
        reply = "unknown" if line.returned is None else line.reply
        begin = (line.invoked - start) // 1000
        rows.append(f"{number:>5} {begin:>8} {end:>8}  {line.client} {line.call} -> {reply}")
    return "\n".join([*rows, f"The longest try leaves {verdict.state}"])
