"""Runs that break a rule each: what is done to a run in which all is well."""

from __future__ import annotations

from collections.abc import Callable

from headrace.events import JobEventKind
from headrace.job import JobState
from tests.chaos.notes import Window
from tests.chaos.plan import plan_of
from tests.chaos.spoilt_writes import WRITE_AND_READ_CASES
from tests.chaos.written import CANCEL, DELAYED, FAIL, OTHER, PLAIN, Story


def lost(story: Story) -> None:
    story.accept(OTHER)


def vanished(story: Story) -> None:
    story.job(OTHER)
    del story.rows[OTHER]


def refused_and_stored(story: Story) -> None:
    story.job(OTHER)
    story.sent = [said for said in story.sent if said[:2] != ("ok", OTHER)]
    story.say("no", OTHER, "StorageFull")


def unexpected(story: Story) -> None:
    story.job(OTHER)
    story.sent = [said for said in story.sent if said.job_id != OTHER]


def stuck(story: Story) -> None:
    story.accept(OTHER)
    story.start(OTHER, at=1)
    story.event(JobEventKind.COMPLETED, OTHER, at=2)
    story.row(OTHER, JobState.ACTIVE)


def not_drained(story: Story) -> None:
    story.machine.is_drained = False


def two_outcomes(story: Story) -> None:
    story.event(JobEventKind.COMPLETED, PLAIN, at=3)


def no_outcome(story: Story) -> None:
    story.events = [e for e in story.events if e.kind is not JobEventKind.COMPLETED]


def same_claim_twice(story: Story) -> None:
    story.run("start", PLAIN, at=3)


def same_epoch_twice(story: Story) -> None:
    story.run("start", PLAIN, at=3, worker="alone-1")


def epoch_skipped(story: Story) -> None:
    story.accept(OTHER)
    story.start(OTHER, at=1, epoch=2)
    story.finish(OTHER, at=2, epoch=2)


def epoch_never_given(story: Story) -> None:
    story.run("start", PLAIN, at=3, epoch=2)


def outcome_of_an_old_claim(story: Story) -> None:
    story.windows.append(Window("partition", "mixed:0", 1, 7))
    story.taken_over(OTHER)
    story.events = [e for e in story.events if (e.job_id, e.kind) != (OTHER, "completed")]
    story.event(JobEventKind.COMPLETED, OTHER, at=7, epoch=2, worker="mixed-1")


def unplanned_dead_letter(story: Story) -> None:
    story.job(OTHER)
    story.events = [e for e in story.events if (e.job_id, e.kind) != (OTHER, "completed")]
    story.event(JobEventKind.FAILED, OTHER, at=2)
    story.row(OTHER, JobState.FAILED, reason="exhausted")


def planned_dead_letter_completed(story: Story) -> None:
    story.row(FAIL, JobState.COMPLETED, failures=2)


def other_reason(story: Story) -> None:
    story.row(FAIL, JobState.FAILED, reason="permanent", failures=2)


def attempts_off_by_one(story: Story) -> None:
    story.row(FAIL, JobState.FAILED, reason="exhausted", failures=1)


def stall_not_counted(story: Story) -> None:
    story.windows.append(Window("pause-long", "mixed-1:1", 1, 7))
    story.taken_over(OTHER)
    story.row(OTHER, JobState.COMPLETED, starts=2)


def start_not_counted(story: Story) -> None:
    story.row(PLAIN, JobState.COMPLETED, starts=0)


def living_condemned(story: Story) -> None:
    story.taken_over(OTHER)
    story.run("cut", OTHER, at=1.5)
    story.runs.pop(-2)
    story.job("plain.p1-1.9", at=8)


def slot_death_without_a_kill(story: Story) -> None:
    story.accept(OTHER)
    story.start(OTHER, at=1)
    story.event(JobEventKind.STALLED, OTHER, at=2, detail="ProcessDied")
    story.start(OTHER, at=3, epoch=2)
    story.finish(OTHER, at=4, epoch=2)
    story.row(OTHER, JobState.COMPLETED, stalls=1, starts=2)


def started_after_its_cancel(story: Story) -> None:
    story.accept(CANCEL)
    story.say("cancelled", CANCEL, "cancelled", at=1)
    story.start(CANCEL, at=2)
    story.finish(CANCEL, at=3)


def completed_after_its_cancel(story: Story) -> None:
    story.job(PLAIN)
    story.say("cancelled", PLAIN, "cancelled", at=9)


def went_on_when_asked(story: Story) -> None:
    story.accept(CANCEL)
    story.start(CANCEL, at=1)
    story.say("cancelled", CANCEL, "requested", at=2)
    story.event(JobEventKind.COMPLETED, CANCEL, at=9)
    story.row(CANCEL, JobState.COMPLETED)


def early(story: Story) -> None:
    story.job(DELAYED, at=plan_of(DELAYED).options["delay"] - 0.1)


def wrong_result(story: Story) -> None:
    story.say("got", PLAIN, "wrong")


def unknown_to_its_waiter(story: Story) -> None:
    story.say("got", PLAIN, "JobNotFound")


def hanging_wait(story: Story) -> None:
    story.say("hung", "p1-1")


def foreign_error(story: Story) -> None:
    story.say("odd", PLAIN, "BusyLoadingError")


def overlap(story: Story) -> None:
    story.taken_over(OTHER)
    story.events = [e for e in story.events if e.kind is not JobEventKind.STALLED]
    story.row(OTHER, JobState.COMPLETED, starts=2)


def late_recovery(story: Story) -> None:
    story.windows.append(Window("kill-worker", "mixed-1:1", 2.5, 2.5))
    story.taken_over(OTHER, word="", back_at=12)
    for at in (1, 9):
        story.job(f"plain.p1-1.{20 + at}", at=at, worker="pair-1")


def disagreement(story: Story) -> None:
    story.machine.problems.append("counts 1 queued jobs of 0")


def orphan(story: Story) -> None:
    story.machine.left.append("1 python")


def unasked_end(story: Story) -> None:
    story.machine.unasked.append("mixed-1 exit 1")


def failed_fault(story: Story) -> None:
    story.machine.failed_faults.append("restart")


def growth(story: Story) -> None:
    story.machine.growth_bytes = 1 << 30


CASES: dict[str, list[Callable[[Story], None]]] = {
    "accepted jobs lost": [lost, vanished],
    "refused jobs that are stored": [refused_and_stored],
    "jobs that nobody sent": [unexpected],
    "jobs stuck": [stuck, not_drained],
    "jobs without exactly one outcome": [two_outcomes, no_outcome],
    "claims given twice": [same_claim_twice, same_epoch_twice],
    "epochs that do not rise by one": [epoch_skipped, epoch_never_given],
    "outcomes of another than the last claim": [outcome_of_an_old_claim],
    "dead letters other than planned": [
        unplanned_dead_letter,
        planned_dead_letter_completed,
        other_reason,
    ],
    "counts other than planned": [attempts_off_by_one, stall_not_counted, start_not_counted],
    "stalls that no death explains": [living_condemned, slot_death_without_a_kill],
    "cancelled jobs that went on": [started_after_its_cancel, completed_after_its_cancel],
    "jobs that did not stop when asked": [went_on_when_asked],
    "jobs started early": [early],
    "waits that ended wrongly": [wrong_result, unknown_to_its_waiter],
    "waits that hang": [hanging_wait],
    "errors that are not ours": [foreign_error],
    "overlapping runs without excuse": [overlap],
    "jobs of killed workers back too late": [late_recovery],
    "counts, places and keys that disagree": [disagreement],
    "processes left": [orphan],
    "processes that ended unasked": [unasked_end],
    "faults that did not come about": [failed_fault],
    "room that is not given back": [growth],
    **WRITE_AND_READ_CASES,
}
