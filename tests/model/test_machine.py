"""Redis, memory:// and file:// do what the model does, step by step; and the machine would see it.

`make test-slow` makes 300 examples of 50 steps on each storage, always the same ones, and has the
machine find storages out that are wrong; `make test` makes the first 30. `make soak-model` draws
new ones.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable

import pytest

from headrace.events import JobEventKind
from headrace.job import FailReason
from headrace.queue_jobs import PURGEABLE
from headrace.storage.sqlite.storage import SqliteStorage
from tests.model import asks, schedule_asks
from tests.model.bulk_mutants import BULK_MUTANTS
from tests.model.cancel_mutants import CANCEL_MUTANTS
from tests.model.fail_job_mutants import FAIL_JOB_MUTANTS
from tests.model.gate_mutants import GATE_MUTANTS
from tests.model.idempotency_mutants import IDEMPOTENCY_MUTANTS
from tests.model.length_mutants import LENGTH_MUTANTS
from tests.model.mutants import MUTANTS
from tests.model.reader_rules import WHAT
from tests.model.run import run_machine
from tests.model.schedule_mutants import SCHEDULE_MUTANTS
from tests.model.schedule_rules import EDGES
from tests.model.slot_mutants import SLOT_MUTANTS
from tests.model.soak import run_round
from tests.model.strike_mutants import STRIKE_MUTANTS
from tests.model.subjects import ModelSubject, SqliteSubject
from tests.model.turn_mutants import TURN_MUTANTS
from tests.model.update_mutants import UPDATE_MUTANTS
from tests.model.update_rules import ENDS
from tests.model.why_mutants import WHY_MUTANTS

EVERY_MUTANT = (
    *MUTANTS,
    *FAIL_JOB_MUTANTS,
    *IDEMPOTENCY_MUTANTS,
    *SCHEDULE_MUTANTS,
    *BULK_MUTANTS,
    *UPDATE_MUTANTS,
    *GATE_MUTANTS,
    *TURN_MUTANTS,
    *SLOT_MUTANTS,
    *LENGTH_MUTANTS,
    *CANCEL_MUTANTS,
    *WHY_MUTANTS,
    *STRIKE_MUTANTS,
)

# fmt: off
VERBS = (
    "enqueue", "cancel", "watch", "register", "claim", "settle", "put_back", "beat", "held",
    "retire", "report", "output", "beats", "reap", "forget", "prune", "repair", "get", "why",
    "outcomes", "export", "list_jobs", "stats", "workers", "pause", "resume", "configure",
    "redrive", "purge", "delete_queue", "read_schedules", "list_schedules", "schedule_history",
    "write_schedules", "take_schedules", "fire", "join_release", "leave_release", "stage", "commit",
    "publish", "discard", "read_write", "acknowledge", "forget_reader", "readers",
    "event_lines", "event_span", "event_place", "set_limit", "limits", "gate", "strike", "lift",
    "strikes",
)
DISTURBANCES = (
    "advance", "advance to where a job due", "advance to where a job dies",
    "advance to where a job expires", "step back 1 ms", "step back 1 h", "lose the token", "wait",
    "reopen", "claim reply lost", "claim perhaps gone", "reap, beat moved", "repeat enqueue",
    "repeat claim", "repeat settle", "enqueue alike", "enqueue late", "claim late", "settle late",
    "settle as a stranger", "repeat write_schedules", "repeat take_schedules", "repeat fire",
    "too many schedules", "schedulers are told", "a release is the newest", "a release is older",
    "roll back", "roll back as one leaves", "take over", "work as a scheduler",
    "work as a scheduler dies", "work as a scheduler another one writes",
    "stage", "stage, off by 1", "stage, off by -1", "a commit: committed", "a commit: known",
    "a commit: lost", "advance to where a stage dies", "advance to where a write dies",
    *(f"advance to an edge of schedules: {edge}" for edge in EDGES), "crowd", "fill",
    *(f"advance to an edge of schedules: {edge}" for edge in EDGES), "crowd", "strike some",
)
# fmt: on
REASONS = (FailReason.EXHAUSTED, FailReason.STALLED, FailReason.UNDECODABLE, FailReason.EXPIRED)


FEW = 30
MUTANT_EXAMPLES = 3_000
"""A run ends at the first that shows the fault; most faults show within a hundred."""


def expected_hits() -> set[str]:
    """Return all that a run must have done."""
    detailed = {"failed", "retrying", "stalled", "purged", "progress", "left"}
    transitions = {kind for kind in JobEventKind if kind not in detailed}
    return {
        *(f"verb {verb}" for verb in VERBS),
        *DISTURBANCES,
        *(f"settle: {outcome}" for outcome in asks.OUTCOMES),
        *(f"settle with {how or 'the'} claim" for how in asks.TAMPERING),
        *(f"enqueue: {kind}" for kind in (*asks.JOB_KINDS, *asks.UPDATES)),
        *(f"acknowledge {what}" for what in WHAT),
        "wait for silent readers",
        *(f"write {which} of a schedule" for which in schedule_asks.EXPECTED),
        *(f"a schedule {due}" for due in schedule_asks.DUE_IN_MS),
        *(f"an occurrence {outcome}" for outcome in ("queued", "scheduled", "duplicate", "late")),
        *(f"a job {kind}" for kind in transitions),
        *(f"a job queued {why}" for why in ("due", "redriven")),
        "a fail job",
        *(f"a job left {why}" for why in ("retired", "reaped")),
        *(f"a job put_back {reason}" for reason in asks.PUT_BACK_REASONS),
        *(f"a job purged {state}" for state in PURGEABLE),
        *(f"a job failed {reason}" for reason in REASONS),
        f"a job retrying {asks.ERROR.type}",
        *(f"a job stalled {error.type}" for error in (asks.DEATH, asks.KILLED)),
        *(
            f"a job progress {fraction:g} {text}".rstrip()
            for fraction, text in asks.SAID
            if fraction
        ),
        *(f"report with {how or 'the'} claim" for how in asks.TAMPERING),
        "repeat report",
        *(f"a job {what}" for what in ("queued next", "scheduled next", "cancelled next")),
        *(f"end an attempt of an updated job: {how}" for how in ("settle", *ENDS)),
        "update",
        "a job cancelled could_not_stop",
        *(f"{verb} of a full queue" for verb in ("enqueue", "fire", "publish")),
    }


def test_a_storage_does_what_the_model_does(make_subject: Callable[[], ModelSubject]) -> None:
    run_machine(make_subject, Counter(), examples=FEW)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_storage_does_so_whatever_it_is_asked_for(
    make_subject: Callable[[], ModelSubject],
) -> None:
    hits: Counter[str] = Counter()
    run_machine(make_subject, hits)
    assert {what for what in expected_hits() if hits[what] < 10} == set()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_server_that_is_killed_has_lost_nothing() -> None:
    # G4: what was answered is in its append-only file.
    hits: Counter[str] = Counter()
    run_round("restarted", 1, hits, examples=300, steps=30)
    assert hits["reopen"] > 0


def test_every_mutant_is_a_storage() -> None:
    # For the slow test, which finds out what is wrong of each, is not always run.
    assert [mutant for mutant in EVERY_MUTANT if inspect.isabstract(mutant)] == []


@pytest.mark.slow
@pytest.mark.timeout(1800)  # it is the number of examples that ends a search
@pytest.mark.parametrize("mutant", EVERY_MUTANT, ids=lambda mutant: mutant.__name__)
def test_a_storage_that_is_wrong_in_one_way_is_found_out(mutant: type[SqliteStorage]) -> None:
    make = functools.partial(SqliteSubject, "memory", mutant)
    with pytest.raises(AssertionError, match="differs from the model"):
        run_machine(make, Counter(), examples=MUTANT_EXAMPLES, is_shrunk=False)
