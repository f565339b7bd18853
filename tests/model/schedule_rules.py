"""What the machine does with schedules: the rules of their part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import rule

from headrace.errors import TooManySchedules
from headrace.storage.schedules import Occurrence, StoredSchedule, TakenSchedules
from tests.model import asks
from tests.model import schedule_asks as ask
from tests.model.driver import Full
from tests.model.memory import MachineMemory
from tests.model.schedules import FIRED_TTL_MS, LEFT_MS, RELEASES_TTL_MS
from tests.model.subjects import QUEUE

EDGES = ("look", "mark", "memory")
"""Where something begins or ends: a schedule's turn, a mark, the memory of a release."""
LATER_KINDS = ("in 1 ms", "in an hour", "at a time", "watched, in a minute")
"""Drawn three times as often as others."""
ids = st.sampled_from(ask.IDS)
changes = st.tuples(
    ids,
    st.sampled_from([*["the version"] * 6, *ask.EXPECTED]),
    st.sampled_from([*ask.DUE_IN_MS, "deleted"]),
    st.sampled_from(sorted(ask.CHANGES)),
)
occurrences = st.tuples(
    ids,
    st.sampled_from(ask.LATER_MS),
    st.lists(st.sampled_from((*sorted(asks.JOB_KINDS), *LATER_KINDS * 2)), max_size=1),
    st.sampled_from(("", "", "", *asks.IDS)),
)
digests = st.sampled_from(ask.DIGESTS)
alive = st.sampled_from((*ask.ALIVE_MS, *ask.ALIVE_MS, 0))
channels = st.sampled_from(("", asks.OURS, asks.OURS, asks.ELSEWHERE))


class ScheduleRules(MachineMemory):
    """The rules of the verbs of the role `Scheduler`."""

    @rule(
        drawn=st.lists(changes, min_size=1, max_size=4, unique_by=lambda change: change[0]),
        wakes=st.booleans(),
        is_repeated=st.booleans(),
    )
    def write_schedules(
        self, drawn: list[tuple[str, str, str, str]], *, wakes: bool, is_repeated: bool = False
    ) -> None:
        """Make, change and delete schedules, some of which are not what is expected."""
        model = self._driver.model
        writes = []
        for schedule_id, expected, due, change in drawn:
            self._hit(f"write {expected} of a schedule")
            self._hit(f"a schedule {due}")
            version = max(0, model.version(schedule_id) + ask.EXPECTED[expected])
            due_ms = None if due == "deleted" else model.now + ask.DUE_IN_MS[due]
            writes.append(ask.make_write(schedule_id, version, due_ms, ask.CHANGES[change]))
        answers = self._ask("write_schedules", writes, wakes=wakes, is_repeated=is_repeated)
        if answers is TooManySchedules:
            self._hit("too many schedules")

    def _ask(self, verb: str, *args: Any, is_repeated: bool = False, **kwargs: Any) -> Any:
        """Make a call, on demand once more in the very same words."""
        answer = self._driver.call(verb, *args, **kwargs)
        if is_repeated:
            self._hit(f"repeat {verb}")
            self._driver.call(verb, *args, **kwargs)
        return answer

    @rule(
        limit=st.sampled_from(ask.LIMITS),
        hold_ms=st.sampled_from(ask.HOLDS_MS),
        where=channels,
        is_repeated=st.booleans(),
    )
    def take_schedules(self, limit: int, hold_ms: int, where: str, *, is_repeated: bool) -> None:
        self._take(limit, hold_ms, where, is_repeated=is_repeated)

    def _take(
        self, limit: int, hold_ms: int, where: str, *, is_repeated: bool = False
    ) -> list[StoredSchedule]:
        channel = self._driver.channel if where == asks.OURS else where
        taken: TakenSchedules = self._ask(
            "take_schedules",
            limit=limit,
            hold_ms=hold_ms,
            channel=channel,
            is_repeated=is_repeated,
        )
        self._hits["a schedule is taken"] += len(taken.schedules)
        return taken.schedules

    @rule(limit=st.sampled_from(ask.LIMITS), hold_ms=st.sampled_from(ask.HOLDS_MS), change=changes)
    def take_over(self, limit: int, hold_ms: int, change: tuple[str, str, str, str]) -> None:
        """Take, change one, and take again what nobody moved on in time."""
        self._hit("take over")
        self._take(limit, hold_ms, "")
        self.write_schedules([change], wakes=True)
        self._driver.advance(hold_ms)
        self._take(ask.LIMITS[-1], ask.HOLDS_MS[1], asks.OURS)

    @rule(
        drawn=st.lists(occurrences, min_size=1, max_size=3),
        when=st.sampled_from(("in time", *ask.UNTIL_MS)),
        is_repeated=st.booleans(),
    )
    def fire(
        self, drawn: list[tuple[str, int, list[str], str]], when: str, *, is_repeated: bool
    ) -> None:
        """Fire occurrences before, at and after the last ones, on demand twice."""
        made = [self._occurrence(*each) for each in drawn]
        self._hit(f"fire {when}")
        self._fire(made, when, is_repeated=is_repeated)

    def _occurrence(
        self, schedule_id: str, later_ms: int, kinds: list[str], job_id: str
    ) -> Occurrence:
        model = self._driver.model
        mark = model.queue(QUEUE).fired.get(schedule_id)
        last = model.now if mark is None else mark.instant
        now, channel = self._driver.subject.now, self._driver.channel
        return ask.make_occurrence(
            schedule_id, last + later_ms, kinds, now=now, channel=channel, job_id=job_id
        )

    def _fire(
        self, made: Sequence[Occurrence], when: str = "in time", *, is_repeated: bool = False
    ) -> None:
        """Fire what the storage has to know whether it is fired for the first time."""
        until_ms = self._driver.model.now + ask.UNTIL_MS[when]
        known = [each for each in made if self._driver.model.knows_the_last(QUEUE, each)]
        if known:
            outcomes = self._ask("fire", known, until_ms=until_ms, is_repeated=is_repeated)
            if not isinstance(outcomes, Full):
                self._hits.update(f"an occurrence {outcome}" for outcome in outcomes or ["late"])

    @rule(how=st.sampled_from(("", "", "dies", "another one writes")), wakes=st.booleans())
    def work_as_a_scheduler(self, how: str, *, wakes: bool) -> None:
        """Take what is due, fire it, and move it on by an hour, unless something comes between."""
        taken = self._take(ask.LIMITS[-1], ask.HOLDS_MS[1], asks.OURS)
        self._hit(f"work as a scheduler {how}".rstrip())
        now, channel = self._driver.subject.now, self._driver.channel
        self._fire(
            [
                ask.make_occurrence(each.id, each.due_ms, [], now=now, channel=channel)
                for each in taken
            ]
        )
        if how == "dies" or not taken:
            return
        if how == "another one writes":
            self.write_schedules([(taken[0].id, "the version", "due", "declared")], wakes=wakes)
        writes = [
            ask.make_write(
                each.id, each.version, each.due_ms + asks.HOUR_MS, ask.CHANGES["with history"]
            )
            for each in taken
        ]
        self._ask("write_schedules", writes, wakes=False)

    @rule(
        app=st.sampled_from(ask.APPS),
        drawn=st.lists(st.tuples(digests, alive), min_size=1, max_size=4),
    )
    def join_or_leave(self, app: str, drawn: list[tuple[str, int]]) -> None:
        """Join with one of two notions of what is alive, or leave."""
        for digest, alive_ms in drawn:
            if not alive_ms:
                self._ask("leave_release", app, digest)
                continue
            standing = self._ask("join_release", app, digest, alive_ms=alive_ms)
            self._hit(f"a release is {'the newest' if standing.is_newest else 'older'}")

    @rule(
        app=st.sampled_from(ask.APPS),
        drawn=st.permutations(ask.DIGESTS),
        alive_ms=st.sampled_from(ask.ALIVE_MS),
        has_left=st.booleans(),
        past=st.integers(-1, 1),
    )
    def roll_back(
        self, app: str, drawn: list[str], alive_ms: int, *, has_left: bool, past: int
    ) -> None:
        """Join with a release and a newer one, and with the first again when that may be dead."""
        old, new, _ = drawn
        self._hit(f"roll back{' as one leaves' if has_left else ''}")
        self.join_or_leave(app, [(old, alive_ms), (new, alive_ms), *[(new, 0)] * has_left])
        self._driver.advance((min(alive_ms, LEFT_MS) if has_left else alive_ms) + past)
        self.join_or_leave(app, [(old, alive_ms), (new, alive_ms)])

    @rule(
        some=st.lists(st.sampled_from((*ask.IDS, ask.UNKNOWN_ID)), unique=True),
        app=st.sampled_from((None, *ask.APPS)),
        limit=st.sampled_from(ask.LIMITS),
    )
    def read_schedules(self, some: list[str], app: str | None, limit: int) -> None:
        """Ask for all that can be asked of schedules."""
        self._driver.call("read_schedules", some)
        self._driver.list_schedules(app, limit)
        for schedule_id in some:
            self._driver.call("schedule_history", schedule_id)

    @rule(edge=st.sampled_from(EDGES), past=st.integers(-1, 1))
    def advance_to_an_edge_of_schedules(self, edge: str, past: int) -> None:
        """Move the clock to where something begins or ends, or a millisecond before or after."""
        if edge == "look":
            self.write_schedules(
                [(ask.IDS[0], "the version", "in a minute", "declared")], wakes=True
            )
        elif edge == "mark":
            self._fire([self._occurrence(ask.IDS[0], ask.LATER_MS[-1], [], "")])
        else:
            self.join_or_leave(ask.APPS[0], [(ask.DIGESTS[0], ask.ALIVE_MS[0])])
        model = self._driver.model
        releases = [each for known in model.releases.values() for each in known.values()]
        instants = {
            "look": [known.look for known in model.schedules.values()],
            "mark": [mark.at + FIRED_TTL_MS for mark in model.queue(QUEUE).fired.values()],
            "memory": [each.seen + RELEASES_TTL_MS for each in releases],
        }[edge]
        ahead = [at + past - model.now for at in instants]
        if wait_ms := min((ms for ms in ahead if ms > 0), default=0):
            self._hit(f"advance to an edge of schedules: {edge}")
            self._driver.advance(wait_ms)

    def forget_releases(self) -> None:
        """Let the storage forget those that have reached their age, before the clock is set back.

        It does so when one joins.
        """
        for app in sorted(self._driver.model.forgetting):
            self.join_or_leave(app, [(ask.DIGESTS[0], ask.ALIVE_MS[0])])

    def name_our_channel(self) -> None:
        """Name it again, once the clock was set back: the storage may have forgotten it before."""
        self._take(ask.LIMITS[0], ask.HOLDS_MS[0], asks.OURS)
