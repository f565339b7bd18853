"""What must hold after a run, whatever broke: the rules about jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from headrace import FailReason, JobEventKind, JobState, JobSummary
from headrace.job import DEFAULT_MAX_STALLS
from tests.chaos.archive_rules import ARCHIVE_RULES
from tests.chaos.evidence import Evidence
from tests.chaos.excuses import excused_overlap, is_explained, overlapping
from tests.chaos.line import Line, line
from tests.chaos.machine_rules import MACHINE_RULES
from tests.chaos.plan import TO_BE_CANCELLED, Kind, kind_of, plan_of
from tests.chaos.write_rules import WRITE_RULES

EARLY_S = 0.05
"""How far the clocks of the storage and of the notes may go apart in a run."""

LATE_S = 1.0
"""How long after a request to stop a job may still complete: it was about to."""

Rule = Callable[[Evidence], Line]


def nothing_lost(e: Evidence) -> Line:
    def cases() -> Iterator[str]:
        for job_id in e.accepted:
            is_kept = job_id in e.rows or kind_of(e.labels[job_id]) is Kind.BRIEF
            if not is_kept or job_id not in e.stored:
                yield f"{job_id} {e.labels[job_id]}"

    return line("accepted jobs lost", cases(), f"of {len(e.accepted):,}")


def nothing_refused_is_stored(e: Evidence) -> Line:
    refused = {job_id for job_id, words in e.answers.items() if words == {"no"}}
    return line("refused jobs that are stored", refused & e.stored, f"of {len(refused):,}")


def nothing_unexpected(e: Evidence) -> Line:
    known = e.stored | {run.job_id for run in e.runs}
    return line("jobs that nobody sent", known - e.labels.keys())


def nothing_stuck(e: Evidence) -> Line:
    broken = [
        f"{r.id} {r.state} {r.incarnation}" for r in e.rows.values() if not r.state.is_terminal
    ]
    if not e.machine.is_drained:
        broken.append("the queues were not drained in time")
    return line("jobs stuck", broken, f"(drained after {e.machine.drained_s:.1f} s)")


def one_outcome(e: Evidence) -> Line:
    counts = {job_id: len(e.ends(job_id)) for job_id in e.stored}
    broken = (f"{job_id} has {n}" for job_id, n in counts.items() if n != 1)
    return line("jobs without exactly one outcome", broken, f"of {len(counts):,}")


def one_claim(e: Evidence) -> Line:
    starts = Counter((r.job_id, r.epoch, r.nonce) for r in e.runs if r.word == "start")
    nonces: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for job_id, epoch, nonce in starts:
        nonces[job_id, epoch].add(nonce)
    broken = [f"{claim} started {n} times" for claim, n in starts.items() if n > 1]
    broken += [f"{claim} has {found}" for claim, found in nonces.items() if len(found) > 1]
    return line("claims given twice", broken, f"of {len(starts):,}")


def epochs_rise(e: Evidence) -> Line:
    def cases() -> Iterator[str]:
        for job_id, story in e.stories.items():
            epochs = [event.start for event in story if event.kind is JobEventKind.ACTIVE]
            if epochs != list(range(1, len(epochs) + 1)):
                yield f"{job_id} {epochs}"
        for run in e.runs:
            if run.job_id in e.rows and run.epoch > e.rows[run.job_id].starts:
                yield f"{run.job_id} ran with epoch {run.epoch}, which was never given"

    return line("epochs that do not rise by one", cases())


def outcomes_are_of_the_last_claim(e: Evidence) -> Line:
    def cases() -> Iterator[str]:
        for job_id, story in e.stories.items():
            claims = [event for event in story if event.kind is JobEventKind.ACTIVE]
            for end in e.ends(job_id):
                last = claims[-1] if claims else end
                if (end.start, end.incarnation) != (last.start, last.incarnation):
                    yield (
                        f"{job_id} {end.kind} by {end.incarnation}, claimed by {last.incarnation}"
                    )

    return line("outcomes of another than the last claim", cases())


def dead_letters_as_planned(e: Evidence) -> Line:
    reasons = Counter(row.reason for row in e.rows.values() if row.state is JobState.FAILED)

    def cases() -> Iterator[str]:
        for row in e.rows.values():
            plan = plan_of(e.labels[row.id]) if row.id in e.labels else None
            if plan is None or not row.state.is_terminal:
                continue
            found, planned = (row.state, row.reason or ""), (plan.state, plan.reason)
            is_failed = JobState.FAILED in (row.state, plan.state)
            if is_failed and found != planned and not was_killed_too_often(e, row):
                yield f"{row.id} is {found}, planned {planned}: {row.error}"

    figure = f"({', '.join(f'{n} {reason}' for reason, n in sorted(reasons.items()))})"
    return line("dead letters other than planned", cases(), figure)


def was_killed_too_often(e: Evidence, row: JobSummary) -> bool:
    """Whether a job without a plan for it ended since faults killed its workers, each time."""
    stalls = [event for event in e.stories[row.id] if event.kind is JobEventKind.STALLED]
    is_dead = row.state is JobState.FAILED and row.reason == FailReason.STALLED
    is_spent = len(stalls) == row.stalls == DEFAULT_MAX_STALLS
    return is_dead and is_spent and all(is_explained(e, event) for event in stalls)


def counts_as_planned(e: Evidence) -> Line:
    def cases() -> Iterator[str]:
        for row in e.rows.values():
            plan = plan_of(e.labels[row.id]) if row.id in e.labels else None
            if plan is None or row.state is not plan.state:
                continue
            kinds = Counter(event.kind for event in e.stories[row.id])
            found = (row.failures, row.stalls, row.starts)
            stalls = kinds[JobEventKind.STALLED] if plan.stalls is None else plan.stalls
            if found != (plan.failures, stalls, kinds[JobEventKind.ACTIVE]):
                yield (
                    f"{row.id} {e.labels[row.id]} has failures, stalls, starts {found}, "
                    f"planned {plan.failures}, {stalls}, {kinds[JobEventKind.ACTIVE]}"
                )

    return line("counts other than planned", cases())


def stalls_explained(e: Evidence) -> Line:
    stalls = [event for event in e.events if event.kind is JobEventKind.STALLED]
    broken = (
        f"{event.job_id} of {event.incarnation}, {event.detail}"
        for event in stalls
        if not is_explained(e, event)
    )
    return line("stalls that no death explains", broken, f"of {len(stalls):,}")


def cancelled_never_start(e: Evidence) -> Line:
    told = {s.job_id: s.at for s in e.sent if (s.word, s.what) == ("cancelled", "cancelled")}
    broken = [
        f"{run.job_id} started {run.at - told[run.job_id]:.3f} s later"
        for run in e.runs
        if run.word == "start" and run.at > told.get(run.job_id, run.at)
    ]
    broken += [
        f"{i} is {e.rows[i].state}"
        for i in told
        if i in e.rows and e.rows[i].state is not JobState.CANCELLED
    ]
    return line("cancelled jobs that went on", broken, f"of {len(told):,}")


def asked_stop(e: Evidence) -> Line:
    asked = {s.job_id: s.at for s in e.sent if (s.word, s.what) == ("cancelled", "requested")}

    def cases() -> Iterator[str]:
        for job_id, at in asked.items():
            for end in e.ends(job_id):
                if end.kind is not JobEventKind.CANCELLED and e.at(end) > at + LATE_S:
                    yield f"{job_id} {end.kind} {e.at(end) - at:.1f} s later"

    return line("jobs that did not stop when asked", cases(), f"of {len(asked):,}")


def nothing_early(e: Evidence) -> Line:
    wanted: dict[str, float] = {}
    for said in e.sent:
        if said.word == "want":
            wanted.setdefault(said.job_id, said.at)
    earliest = {i: at + plan_of(e.labels[i]).options.get("delay", 0.0) for i, at in wanted.items()}
    broken = (
        f"{run.job_id} started {earliest[run.job_id] - run.at:.3f} s early"
        for run in e.runs
        if run.word == "start" and run.at < earliest.get(run.job_id, run.at) - EARLY_S
    )
    return line("jobs started early", broken)


def waits_are_right(e: Evidence) -> Line:
    def cases() -> Iterator[str]:
        for said in e.sent:
            if said.word != "got" or said.what == "error":
                continue
            plan = plan_of(e.labels[said.job_id])
            planned = {
                JobState.COMPLETED: "right",
                JobState.CANCELLED: "cancelled",
                JobState.FAILED: plan.reason,
            }
            is_planned = said.what == planned[plan.state]
            # One that nobody came to cancel completes.
            is_uncancelled = kind_of(e.labels[said.job_id]) in TO_BE_CANCELLED
            row = e.rows.get(said.job_id)
            is_dead = row is not None and was_killed_too_often(e, row)
            if not (is_planned or is_dead or (is_uncancelled and said.what == "right")):
                yield f"{said.job_id} {said.what}"

    heard = sum(said.word == "got" for said in e.sent)
    return line("waits that ended wrongly", cases(), f"of {heard:,}")


def waits_end(e: Evidence) -> Line:
    return line("waits that hang", (said.job_id for said in e.sent if said.word == "hung"))


def errors_are_ours(e: Evidence) -> Line:
    broken = (f"{said.what} of {said.job_id}" for said in e.sent if said.word == "odd")
    return line("errors that are not ours", broken)


def runs_do_not_overlap(e: Evidence) -> Line:
    pairs = list(overlapping(e))
    broken = (
        f"{second.job_id}: {first.worker} still ran when {second.worker} began"
        for first, second in pairs
        if not excused_overlap(e, first, second)
    )
    return line("overlapping runs without excuse", broken, f"(and {len(pairs):,} excused)")


JOB_RULES: tuple[Rule, ...] = (
    nothing_lost,
    nothing_refused_is_stored,
    nothing_unexpected,
    nothing_stuck,
    one_outcome,
    one_claim,
    epochs_rise,
    outcomes_are_of_the_last_claim,
    dead_letters_as_planned,
    counts_as_planned,
    stalls_explained,
    cancelled_never_start,
    asked_stop,
    nothing_early,
    waits_are_right,
    waits_end,
    errors_are_ours,
    runs_do_not_overlap,
)


def judge(evidence: Evidence) -> list[Line]:
    """Return a line for every rule."""
    return [rule(evidence) for rule in (*JOB_RULES, *WRITE_RULES, *ARCHIVE_RULES, *MACHINE_RULES)]
