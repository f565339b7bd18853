"""The rules of a queue that takes no more jobs: whoever brings some in."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis.stateful import rule

from tests.model import asks, schedule_asks
from tests.model.bulk_rules import BulkRules
from tests.model.schedule_rules import ScheduleRules

FULL = "four wait"
kinds = st.lists(st.sampled_from(sorted(asks.JOB_KINDS)), max_size=1)
ids = st.sampled_from(("", *asks.IDS))
jobs = st.lists(st.tuples(ids, kinds), min_size=1, max_size=4)


class LengthRules(ScheduleRules, BulkRules):
    """The rules of what brings jobs into a queue that is full, or will be."""

    @rule(
        calls=st.lists(jobs, min_size=1, max_size=3),
        fired=st.lists(st.sampled_from(schedule_asks.IDS), min_size=1, max_size=3),
        written=jobs,
    )
    def fill(
        self,
        calls: list[list[tuple[str, list[str]]]],
        fired: list[str],
        written: list[tuple[str, list[str]]],
    ) -> None:
        """Enqueue, fire and publish into a queue that takes four; then it takes more."""
        self._hit("fill")
        self._driver.call("configure", **asks.SETTINGS[FULL])
        for drawn in calls:
            call = self._next_call("enqueue", asks.CLIENTS[0])
            self._numbered("enqueue", self._new_jobs(drawn), call=call)
        later = schedule_asks.LATER_MS[-1]
        self._fire([self._occurrence(schedule_id, later, [], "") for schedule_id in fired])
        self.write_in_bulk("w2", [written], 1, is_repeated=False, is_discarded=False)
        self._driver.call("configure", **asks.SETTINGS["default"])
