"""The machine: draws calls, makes each on a storage and on the model, and looks for a difference.

Where an order is promised nowhere, as of jobs that fall due in the same millisecond, the model
follows the storage.
"""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis.stateful import rule

from headrace.job import JobState
from headrace.queue_jobs import PURGEABLE
from headrace.storage.exports import EXPORTED
from headrace.storage.incarnations import SlotsAsked
from headrace.storage.values import CallId, Report, Settlement
from tests.model import asks
from tests.model.gate_rules import GateRules
from tests.model.length_rules import LengthRules
from tests.model.memory import CLAIMS_KEPT
from tests.model.reader_rules import ReaderRules
from tests.model.strike_rules import StrikeRules
from tests.model.subjects import LANES, QUEUE
from tests.model.update_rules import UpdateRules

STEERED = ("pause", "resume", "prune", "repair")
UNENDED = [state for state in JobState if not state.is_terminal]
RUN_INTO = {
    JobState.RETRYING: "retried in a minute",
    JobState.COMPLETED: "completed",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "cancelled",
}
"""The outcome that brings a job there."""
job_ids = st.sampled_from((*asks.IDS, *asks.IDS, asks.UNKNOWN_ID))
some_ids = st.lists(job_ids, min_size=1, max_size=3)
new_or_known = st.sampled_from((*asks.IDS, ""))
job_kinds = st.lists(st.sampled_from((*sorted(asks.JOB_KINDS), *sorted(asks.UPDATES))), max_size=2)
jobs = st.lists(st.tuples(new_or_known, job_kinds), min_size=1, max_size=3)
outcomes = st.sampled_from((*sorted(asks.OUTCOMES), "could not be stopped"))
runs = st.lists(st.tuples(new_or_known, job_kinds, outcomes), min_size=1, max_size=5)
moves = st.sampled_from(("register", "register", "retire", "forget"))
steered = st.sampled_from((*STEERED, *sorted(asks.SETTINGS)))
slots = st.sampled_from(asks.SLOTS)
few_slots = st.sampled_from((asks.SLOTS[2], *asks.SLOTS[3:5]))
heavy = st.lists(st.sampled_from(("", *asks.HEAVY)), min_size=1, max_size=4)
disturbances = st.sampled_from(("lose the token", "reopen", "step back 1 ms", "step back 1 h"))
workers = st.sampled_from(asks.WORKERS)
clients = st.sampled_from(asks.CLIENTS)
recent = st.integers(0, CLAIMS_KEPT - 1)
shown = st.tuples(recent, st.sampled_from(asks.TAMPERING))


class StorageMachine(LengthRules, ReaderRules, UpdateRules, GateRules, StrikeRules):
    """Drives one storage; the arguments are those of `MachineMemory`."""

    # Producer

    @rule(drawn=jobs, client=clients)
    def enqueue(self, drawn: list[tuple[str, list[str]]], client: str) -> None:
        self._hit("enqueue")
        self._numbered("enqueue", self._new_jobs(drawn), call=self._next_call("enqueue", client))

    @rule(job_id=new_or_known, kinds=job_kinds)
    def enqueue_one(self, job_id: str, kinds: list[str]) -> None:
        self.enqueue([(job_id, kinds)], asks.CLIENTS[0])

    @rule(ids=st.lists(new_or_known, min_size=2, max_size=4), kind=st.sampled_from(asks.ALIKE))
    def enqueue_alike(self, ids: list[str], kind: str) -> None:
        """Enqueue plain jobs that differ in nothing but their ids, some of which may be equal."""
        self._hit("enqueue alike")
        self.enqueue([(job_id, [kind] if kind else []) for job_id in ids], asks.CLIENTS[0])

    @rule(ids=some_ids, only_next=st.sampled_from((False, False, True)))
    def cancel(self, ids: list[str], *, only_next: bool) -> None:
        self._hit("cancel")
        self._driver.call("cancel", ids, only_next=only_next)

    @rule(ids=some_ids, states=st.sampled_from(asks.CANCELLED_IN))
    def cancel_in_states(self, ids: list[str], states: tuple[JobState, ...]) -> None:
        """Cancel jobs in some states: those drawn, and one in each state that there is."""
        self._hit("cancel in states")
        there = [job_id for state in UNENDED for job_id in self._one_in(state)]
        self._driver.call("cancel", ids + there, states=states)

    @rule(ids=some_ids, where=st.sampled_from((asks.OURS, asks.OURS, asks.ELSEWHERE)))
    def watch(self, ids: list[str], where: str) -> None:
        self._hit("watch")
        channel = self._driver.channel if where == asks.OURS else where
        self._driver.call("watch", ids, channel=channel)

    # Consumer

    @rule(worker=workers, free=slots, how=st.sampled_from(("", "", "reply lost", "perhaps gone")))
    def claim(self, worker: str, free: dict[str, int], how: str) -> None:
        """Claim; if the reply is lost, claim again with the same number and nonce."""
        if how != "perhaps gone":
            self._revive(worker)
        self._hit(f"claim {how}".rstrip())
        call = self._next_call("claim", worker)
        kwargs = {"call": call, "nonce": self._nonce(call), "slots": free}
        reply = self._numbered("claim", **kwargs)
        if how == "reply lost":
            reply = self._driver.claim_again(**kwargs)
        self._remember(worker, reply.jobs)

    @rule(worker=workers, drawn=runs, said=st.sampled_from(asks.SAID))
    def run_some_jobs(
        self,
        worker: str,
        drawn: list[tuple[str, list[str], str]],
        said: tuple[float | None, str],
    ) -> None:
        """Enqueue, claim, report, and settle as many of the newest attempts."""
        self.enqueue([(job_id, kinds) for job_id, kinds, _ in drawn], asks.CLIENTS[0])
        self.claim_all(worker)
        self.report([((0, ""), said, 1)], 0, is_repeated=False)
        newest = [((2 * n, ""), outcome) for n, (_, _, outcome) in enumerate(drawn)]
        self._settle(newest, self._held(0)[0])

    @rule(worker=workers, kinds=heavy, free=few_slots)
    def claim_heavy_ones(self, worker: str, kinds: list[str], free: SlotsAsked) -> None:
        """Claim with few free slots what needs more of them, and what comes behind it."""
        self.claim_all(worker)
        self.enqueue([("", [kind] if kind else []) for kind in kinds], asks.CLIENTS[0])
        self.claim(worker, free, "")

    @rule(worker=workers, job_id=new_or_known, kinds=job_kinds)
    def die_of_a_job(self, worker: str, job_id: str, kinds: list[str]) -> None:
        """Enqueue, claim, be reaped."""
        self.enqueue_one(job_id, kinds)
        self.claim_all(worker)
        self.reap(worker, 0)

    @rule(worker=workers)
    def claim_all(self, worker: str) -> None:
        """Claim what there is, of a queue that is not paused."""
        if self._driver.model.queue(QUEUE).is_paused:
            self._driver.call("resume")
        self.claim(worker, asks.SLOTS[0], "")

    @rule(back=recent, outcome=outcomes)
    def settle(self, back: int, outcome: str) -> None:
        """Settle an attempt as its owner does."""
        self._settle([((back, ""), outcome)], self._held(back)[0])

    @rule(outcome=outcomes)
    def settle_the_newest(self, outcome: str) -> None:
        self._settle([((0, ""), outcome)], self._held(0)[0])

    @rule(drawn=st.lists(st.tuples(shown, outcomes), min_size=1, max_size=3))
    def settle_some(self, drawn: list[tuple[tuple[int, str], str]]) -> None:
        """Settle good and bad claims in one call, of which some may be another's."""
        self._settle(drawn, self._held(drawn[0][0][0])[0])

    @rule(back=recent, outcome=outcomes, worker=workers)
    def settle_as_a_stranger(self, back: int, outcome: str, worker: str) -> None:
        self._hit("settle as a stranger")
        self._settle([((back, ""), outcome)], worker)

    def _settle(self, drawn: Sequence[tuple[tuple[int, str], str]], worker: str) -> None:
        settlements = []
        for (back, how), outcome in drawn:
            _, job_id, claim = self._held(back)
            self._hit(f"settle with {how or 'the'} claim")
            self._hit(f"settle: {outcome}")
            shown_claim = asks.tampered(job_id, claim, how)
            settlements.append(Settlement(*shown_claim, 120, asks.OUTCOMES[outcome]))
        self._numbered("settle", settlements, call=self._next_call("settle", worker))

    @rule(drawn=st.lists(shown, min_size=1, max_size=3))
    def put_back(self, drawn: list[tuple[int, str]]) -> None:
        """Put back good and bad claims, then all that the first one's owner has."""
        self._hit("put_back")
        given = []
        for back, how in drawn:
            _, job_id, claim = self._held(back)
            given.append(asks.tampered(job_id, claim, how))
        worker = self._held(drawn[0][0])[0]
        given += [(job_id, claim) for name, job_id, claim in self._present() if name == worker]
        self._driver.call("put_back", worker, given)

    @rule(
        drawn=st.lists(st.tuples(shown, st.sampled_from(asks.SAID), st.integers(0, 3)), min_size=1),
        first=st.sampled_from((0, 1, 2, 9)),
        is_repeated=st.booleans(),
    )
    def report(
        self,
        drawn: list[tuple[tuple[int, str], tuple[float | None, str], int]],
        first: int,
        *,
        is_repeated: bool,
    ) -> None:
        """Report progress and pieces of output, some of them again, for good and bad claims."""
        reports = []
        for (back, how), (fraction, text), count in drawn:
            _, job_id, claim = self._held(back)
            self._hit(f"report with {how or 'the'} claim")
            chunks = [b"%d" % (first + n) for n in range(count)]
            shown_claim = asks.tampered(job_id, claim, how)
            reports.append(Report(*shown_claim, fraction, text, chunks, first))
        self._numbered("report", reports)
        if is_repeated:
            self.repeat_the_last_call()

    @rule(name=workers, what=st.sampled_from(("beat", *LANES)))
    def beat_or_wait(self, name: str, what: str) -> None:
        if what == "beat":
            self._hit("beat")
            self._driver.beat(name)
        elif name in self._driver.model.queue(QUEUE).workers:
            self._hit("wait")
            self._driver.wait(name, what)

    # Calls that are repeated, or come late

    @rule()
    def repeat_the_last_call(self) -> None:
        """Call again in the very same words.

        An enqueue of ids that were just drawn is not repeated once its memory has ended.
        """
        verb, args, kwargs = self._last
        if verb == "enqueue" and not self._driver.remembers(kwargs["call"]):
            return
        self._hit(f"repeat {verb}")
        if call := kwargs.get("call"):
            # To an incarnation that came again it is a new number.
            known = self._numbers[verb, call.client]
            self._numbers[verb, call.client] = max(known, call.number)
        if verb == "claim":
            self._driver.claim_again(**kwargs)
        else:
            self._driver.call(verb, *args, **kwargs)

    @rule(
        verbs=st.permutations(("enqueue", "claim", "settle")), back=st.integers(0, 3), name=workers
    )
    def call_late(self, verbs: list[str], back: int, name: str) -> None:
        """Make calls with numbers that were used already, in other words."""
        for verb in verbs:
            self._call_late(verb, back, name)

    def _call_late(self, verb: str, back: int, name: str) -> None:
        client = asks.CLIENTS[0] if verb == "enqueue" else name
        if not (last := self._numbers[verb, client]):
            return
        number = max(1, last - back)
        self._hit(f"{verb} late")
        call = CallId(client, number)
        if verb == "enqueue":
            self._driver.call("enqueue", self._new_jobs([("", [])]), call=call)
        elif verb == "settle":
            _, job_id, claim = self._held(0)
            settlement = Settlement(job_id, claim, 7, asks.OUTCOMES["completed"])
            self._driver.call("settle", [settlement], call=call)
        else:
            self._driver.claim_again(call=call, nonce=self._nonce(call), slots=asks.SLOTS[0])

    # Maintenance

    @rule(name=workers, drawn=st.lists(moves, min_size=1, max_size=3))
    def come_or_go(self, name: str, drawn: list[str]) -> None:
        for what in drawn:
            self._hit(what)
            if what == "register":
                self._register(name)
            else:
                self._driver.call(what, name)
            self._forget_numbers(name)

    @rule(name=workers, behind=st.sampled_from((0, 0, 0, 1, -1)))
    def reap(self, name: str, behind: int) -> None:
        """Condemn an incarnation, on demand with a beat that was not the last."""
        known = self._driver.model.queue(QUEUE).workers.get(name)
        seen = 0 if known is None else known.count
        self._hit("reap, beat moved" if behind else "reap")
        self._driver.call("reap", name, seen=seen - behind, error=asks.DEATH)
        self._forget_numbers(name)

    # Inspector

    @rule(
        ids=some_ids,
        states=st.lists(st.sampled_from(JobState), max_size=3, unique=True),
        is_redriven=st.booleans(),
    )
    def redrive_and_purge(
        self, ids: list[str], states: list[JobState], *, is_redriven: bool
    ) -> None:
        """Redrive, and purge jobs in some states: those drawn, and one that there is."""
        if is_redriven:
            self._hit("redrive")
            self._driver.call("redrive", ids + self._one_in(JobState.FAILED))
        for state in states:
            self._hit("purge")
            self._driver.call("purge", state, ids + self._one_in(state))

    def _one_in(self, state: JobState) -> list[str]:
        """Return one job in a state; if there was none, one was run into it where that can be."""
        if not self._all_in(state) and (outcome := RUN_INTO.get(state)):
            self.run_some_jobs(asks.WORKERS[0], [("", [], outcome)], asks.SAID[0])
        return self._all_in(state)[:1]

    @rule(is_emptied=st.booleans(), is_forced=st.booleans())
    def delete_queue(self, *, is_emptied: bool, is_forced: bool) -> None:
        """Delete the queue, on demand once all that is not active is purged from it."""
        self._hit("delete_queue")
        if is_emptied:
            for state in PURGEABLE:
                self._driver.call("purge", state, self._all_in(state))
            self._driver.prune()
        if self._driver.call("delete_queue", is_forced=is_forced) == 0:
            for name in asks.WORKERS:
                self._forget_numbers(name)

    @rule(steps=st.lists(steered, min_size=1, max_size=3, unique=True))
    def steer(self, steps: list[str]) -> None:
        """Pause, resume, prune, repair, or configure one of the settings."""
        for what in steps:
            self._steer(what)

    def _steer(self, what: str) -> None:
        if what in asks.SETTINGS:
            self._hit("configure")
            self._driver.call("configure", **asks.SETTINGS[what])
        elif what in ("prune", "repair"):
            self._hit(what)
            getattr(self._driver, what)()
        else:
            self._hit(what)
            self._driver.call(what)

    @rule(
        name=workers,
        job_id=job_ids,
        state=st.sampled_from(JobState),
        limit=st.integers(1, 3),
        is_later=st.booleans(),
    )
    def read(self, name: str, job_id: str, state: JobState, limit: int, *, is_later: bool) -> None:
        """Ask for all that can be asked, on demand when what has just ended is exported, too."""
        self._hit("read")
        if is_later:
            self._driver.advance(1)
        self._driver.call("get", job_id)
        self.why([job_id])
        ended = [one for state in EXPORTED for one in self._all_in(state)[-1:]]
        self._driver.call("outcomes", [job_id, asks.UNKNOWN_ID, job_id, *ended])
        self._driver.call("beats")
        self._driver.call("workers")
        self._driver.readers()
        self._driver.held(name)
        self._driver.stats()
        self._driver.list_jobs(state, limit)
        for exported in EXPORTED:
            self._driver.export(exported, limit)
        self._driver.output(job_id, limit)
        self._driver.read_in_bulk(limit)

    @rule(ids=some_ids)
    def why(self, ids: list[str]) -> None:
        """Ask why jobs do not run: those drawn, and one in each state that there is."""
        self._hit("why")
        for job_id in [
            *ids,
            *(job_id for state in JobState for job_id in self._all_in(state)[-1:]),
        ]:
            self._driver.why(job_id)

    # The world

    @rule(ms=st.sampled_from(asks.STEPS_MS))
    def advance(self, ms: int) -> None:
        self._hit("advance")
        self._driver.advance(ms)

    @rule(edge=st.sampled_from(("due", "dies", "expires")), short=st.integers(0, 1))
    def advance_to_an_edge(self, edge: str, short: int) -> None:
        """Move the clock to where something happens to a job, or a millisecond before."""
        if edge == "dies":
            self.run_some_jobs(asks.WORKERS[0], [("", [], "completed")], asks.SAID[0])
        else:
            self.enqueue_one("", ["in an hour" if edge == "due" else "expires in an hour"])
        model = self._driver.model
        instants = [getattr(job, edge) for job in model.queue(QUEUE).jobs.values()]
        ahead = [at - short - model.now for at in instants if at is not None]
        if wait_ms := min((ms for ms in ahead if ms > 0), default=0):
            self._hit(f"advance to where a job {edge}")
            self._driver.advance(wait_ms)

    @rule(drawn=st.lists(disturbances, min_size=1, max_size=2, unique=True))
    def disturb(self, drawn: list[str]) -> None:
        """Do what nobody asked for.

        A clock that is set back makes delays longer, and loses nothing. What has ended by its age
        stays ended on a server; elsewhere that needs it to be pruned. While a rate is
        owed anything, it would be of account which calls have looked at that.
        """
        for what in drawn:
            self._disturb(what)

    def _disturb(self, what: str) -> None:
        if what == "lose the token":
            self._driver.lose_token()
        elif what == "reopen":
            self._driver.reopen()
        elif self._driver.model.has_lost_results() or self._driver.model.owes_tokens(QUEUE):
            return
        else:
            self._driver.prune()
            self.forget_releases()
            self._driver.advance(-1 if what == "step back 1 ms" else -asks.HOUR_MS)
            self.name_our_channel()
        self._hit(what)
