"""The verdict finds what is wrong in runs written by hand, and nothing where nothing is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.events import JobEventKind
from headrace.job import JobState
from tests.chaos.line import Line
from tests.chaos.notes import Read, Window
from tests.chaos.spoilt import CASES, late_recovery
from tests.chaos.verdict import judge
from tests.chaos.written import CANCEL, CRASH, DELAYED, FAIL, OTHER, PLAIN, THIRD, Story


def broken(story: Story) -> list[str]:
    return [line.rule for line in judge(story.evidence()) if not line.is_ok]


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        pytest.param(rule, spoil, id=spoil.__name__)
        for rule, spoils in CASES.items()
        for spoil in spoils
    ],
)
def test_a_broken_rule_is_found(rule: str, spoil: Callable[[Story], None]) -> None:
    story = Story()
    story.job(PLAIN)
    story.job(FAIL)
    spoil(story)
    assert rule in broken(story)


def test_every_rule_has_a_run_that_breaks_it() -> None:
    assert CASES.keys() == {line.rule for line in judge(Story().evidence())}


def test_a_run_as_planned_breaks_nothing() -> None:
    story = Story()
    for label in (PLAIN, FAIL, CRASH, CANCEL):
        story.job(label)
    story.job(DELAYED, at=4)
    story.say("got", PLAIN, "right")
    story.say("got", FAIL, "exhausted")
    assert broken(story) == []


def test_workers_that_come_and_go_are_no_jobs() -> None:
    story = Story()
    story.job(PLAIN)
    for kind in (JobEventKind.JOINED, JobEventKind.LEFT):
        story.event(kind, "mixed-1", at=3, epoch=0)
    assert broken(story) == []


def test_a_lost_answer_may_mean_either() -> None:
    story = Story()
    for label in (PLAIN, OTHER):
        story.say("want", label, label)
        story.say("lost", label, "ReplyLost")
    story.start(PLAIN, at=1)
    story.finish(PLAIN, at=2)
    assert broken(story) == []


@pytest.mark.parametrize("stored", [(), (PLAIN, OTHER)], ids=["nothing", "all"])
@pytest.mark.parametrize("end", ["lost", ""])
def test_a_write_whose_commit_is_in_doubt_may_bring_all_or_nothing(
    stored: tuple[str, ...], end: str
) -> None:
    story = Story()
    story.write((end, [PLAIN, OTHER]), stored=stored)
    assert broken(story) == []


def test_a_write_that_is_run_again_brings_the_jobs_of_one_try() -> None:
    story = Story()
    story.write(("", [PLAIN]), ("failed", [OTHER]), ("done", [THIRD]), stored=(PLAIN,))
    assert broken(story) == []


def test_a_write_that_failed_before_its_commit_brings_nothing() -> None:
    story = Story()
    story.write(("failed", [PLAIN, OTHER]))
    assert broken(story) == []


def test_events_may_be_read_again_and_those_of_leaving_workers_not_at_all() -> None:
    story = Story()
    story.job(PLAIN)
    story.event(JobEventKind.LEFT, "mixed-1", at=3, epoch=0)

    def read_again(lines: list[Read]) -> None:
        lines[:] = [lines[0], lines[1], lines[0], lines[1]]

    story.spoil_reads = read_again
    assert broken(story) == []


@pytest.mark.parametrize("fault", ["pause-long", "half-open", "partition"])
def test_a_worker_that_was_cut_off_excuses_a_stall_and_two_runs_at_once(fault: str) -> None:
    story = Story()
    story.taken_over(OTHER)
    assert "overlapping runs without excuse" in broken(story)
    assert "stalls that no death explains" in broken(story)
    story.windows.append(Window(fault, "mixed:0", 1.2, 6.4))
    assert broken(story) == []


def test_another_worker_that_was_cut_off_excuses_nothing() -> None:
    story = Story()
    story.taken_over(OTHER)
    story.windows.append(Window("pause-long", "alone-1:2", 1.2, 6.4))
    assert "overlapping runs without excuse" in broken(story)


def test_a_process_that_was_killed_explains_a_stall_and_its_run_is_over() -> None:
    story = Story()
    story.taken_over(OTHER, word="")
    assert broken(story) == ["stalls that no death explains"]
    story.windows.append(Window("kill-worker", "mixed-1:1", 1.5, 1.5))
    assert broken(story) == []


def test_a_worker_that_was_stopped_charges_nobody_unless_it_could_not_hand_back() -> None:
    story = Story()
    story.taken_over(OTHER, word="")
    story.windows.append(Window("restart-worker", "mixed-1:1", 1.5, 3))
    assert broken(story) == ["stalls that no death explains"]
    story.windows.append(Window("restart", "server", 2, 2.5))
    assert broken(story) == []


def test_a_job_that_kills_its_worker_explains_the_stalls_of_its_neighbours() -> None:
    story = Story()
    story.taken_over(OTHER, word="")
    story.job("poison.p1-1.8", at=1.2)
    story.runs = [run for run in story.runs if (run.word, run.job_id) != ("end", "poison.p1-1.8")]
    assert broken(story) == []


def test_three_deaths_end_a_job_that_was_to_complete() -> None:
    story = Story()
    story.accept(OTHER)
    for epoch, at in ((1, 10), (2, 20), (3, 30)):
        story.start(OTHER, at=at, epoch=epoch, word="cut")
        story.event(JobEventKind.STALLED, OTHER, at=at + 1, epoch=epoch, detail="ProcessDied")
        story.windows.append(Window("kill-slot", "mixed-1:3", at + 0.9, at + 0.9))
    story.event(JobEventKind.FAILED, OTHER, at=31, epoch=3)
    story.row(OTHER, JobState.FAILED, reason="stalled", stalls=3, starts=3)
    assert broken(story) == []
    story.windows.pop()
    assert "dead letters other than planned" in broken(story)


def test_a_recovery_beside_another_fault_is_not_held_against_the_promise() -> None:
    story = Story()
    late_recovery(story)
    story.windows.append(Window("stop-long", "server", 3, 9))
    assert broken(story) == []


def test_a_recovery_without_another_worker_is_not_held_against_the_promise() -> None:
    story = Story()
    story.windows.append(Window("kill-worker", "mixed-1:1", 2.5, 2.5))
    story.taken_over(OTHER, word="", back_at=12)
    assert broken(story) == []


def test_a_line_shows_the_first_cases_and_how_many_there_are() -> None:
    shown = str(Line("jobs lost", [f"job-{n}" for n in range(7)], "7"))
    assert shown.startswith("BAD  jobs lost")
    assert "job-4" in shown
    assert "job-5" not in shown
    assert "and 2 more" in shown
    assert str(Line("jobs lost", [], "0")).startswith("ok   jobs lost")
