"""How limits hold a job up: the reasons of its gates that have no room for it."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.clock import datetime_of
from headrace.fairness import FAIR_LIMIT, is_window
from headrace.job import JobState
from headrace.limit import Terms
from headrace.storage.situation import GateStanding, Situation
from headrace.views.reason import Reason, ReasonKind
from headrace.views.wording import command, in_line, instant_words

IDS_IN_WORDS = 3
"""Most ids in a sentence."""


def held_up(situation: Situation) -> Iterator[Reason]:
    """Tell of every gate that has no room for the job, and of that in whose line it waits."""
    for gate in situation.gates:
        if is_window(gate.name):
            yield from _not_its_turn(situation, gate)
            continue
        found = [*_full(situation, gate), *_too_fast(situation, gate)]
        if not found and gate.before is not None:
            found = [_in_line(situation, gate)]
        yield from found


def _full(situation: Situation, gate: GateStanding) -> Iterator[Reason]:
    terms = gate.terms or Terms()
    # One that is ready has a place: what it lacks is that fewer of the others run.
    taken = gate.active + (0 if _is_ready(situation) else gate.ready)
    if 0 < terms.concurrency <= taken:
        yield _reason(
            gate,
            ReasonKind.LIMIT,
            text=f"Limit {gate.name} allows {terms.concurrency:,} at once{_of_key(gate)}, and "
            f"{_holders(gate)}{in_line(gate.before)}.",
            advice="It goes on as they end. To allow more: "
            + _raised(situation, gate, "--concurrency", "N"),
        )


def _too_fast(situation: Situation, gate: GateStanding) -> Iterator[Reason]:
    terms = gate.terms or Terms()
    if not terms.rate or gate.tokens > (0 if _is_ready(situation) else gate.ready):
        return
    until_ms = None
    if gate.token_in_ms is None:
        why = f", and {_holders(gate)}: those that are ready start first{in_line(gate.before)}."
    else:
        ahead = gate.before.n if gate.before else 0
        until_ms = situation.now_ms + gate.token_in_ms + ahead * terms.rate_ms // terms.rate
        why = f", and as many have{in_line(gate.before)}. At this rate it starts no earlier than "
        why += f"{instant_words(until_ms, situation.now_ms)}."
    yield _reason(
        gate,
        ReasonKind.RATE,
        text=f"Limit {gate.name} lets {terms.rate_text} start{_of_key(gate)}{why}",
        advice="Wait; or allow more: " + _raised(situation, gate, "--rate", "N/PERIOD"),
        until_ms=until_ms,
    )


def _not_its_turn(situation: Situation, gate: GateStanding) -> Iterator[Reason]:
    """Tell of a key that has its turn, in a queue whose keys take turns."""
    if _is_ready(situation) or not (gate.ready or gate.before):
        return
    whose = _of_key(gate) or " of those without a key"
    yield _reason(
        gate,
        ReasonKind.TURN,
        text=f"Keys take turns, and {_holders(gate)}{whose}{in_line(gate.before)}.",
        advice="Its turn comes as those of its key before it are claimed. More workers or slots "
        "bring all turns sooner.",
    )


def _in_line(situation: Situation, gate: GateStanding) -> Reason:
    queue = situation.record.queue
    return _reason(
        gate,
        ReasonKind.LINE,
        text=f"Limit {gate.name} has room again{_of_key(gate)}{in_line(gate.before)}.",
        advice=f"The next claim of a worker of queue {queue} lets those in line go on.",
    )


def _reason(
    gate: GateStanding, kind: ReasonKind, *, text: str, advice: str, until_ms: int | None = None
) -> Reason:
    return Reason(
        kind=kind,
        text=text,
        advice=advice,
        until=None if until_ms is None else datetime_of(until_ms),
        limit=FAIR_LIMIT if is_window(gate.name) else gate.name,
        key=gate.key,
        jobs=tuple(gate.holders),
        before=gate.before.n if gate.before else None,
        is_least=gate.before is not None and gate.before.is_least,
    )


def _is_ready(situation: Situation) -> bool:
    return situation.record.state is JobState.QUEUED


def _of_key(gate: GateStanding) -> str:
    return f" of key {gate.key}" if gate.key else ""


def _holders(gate: GateStanding) -> str:
    """Return how many have places, and the ids of some: "2 run and 1 is ready (a, b, c)"."""
    counts = []
    if gate.active:
        counts.append(f"{gate.active:,} run{'s' if gate.active == 1 else ''}")
    if gate.ready:
        counts.append(f"{gate.ready:,} {'is' if gate.ready == 1 else 'are'} ready")
    ids = gate.holders[:IDS_IN_WORDS]
    more = ["…"] if gate.active + gate.ready > len(ids) else []
    counts = counts or ["none is ready"]
    return " and ".join(counts) + (f" ({', '.join([*ids, *more])})" if ids else "")


def _raised(situation: Situation, gate: GateStanding, option: str, value: str) -> str:
    """Return the command that allows more, with what else the limit says: it would be lost."""
    terms = gate.terms or Terms()
    said = {}
    if terms.concurrency:
        said["--concurrency"] = f"{terms.concurrency}"
    if terms.rate:
        said["--rate"] = terms.rate_text
    said[option] = value
    words = [word for pair in said.items() for word in pair]
    return command("queue", "limit", situation.record.queue, gate.name, *words)
