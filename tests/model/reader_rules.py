"""The rules of readers of events: they acknowledge what they have seen, in part, again or never."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis.stateful import rule

from tests.model import asks
from tests.model.memory import MachineMemory
from tests.model.readers import AHEAD, NOTHING
from tests.model.subjects import QUEUE

NONE, ALL_THERE_IS = "nothing", "more than there is"
WHAT = (NONE, ALL_THERE_IS, "an entry", "a part of an entry")


class ReaderRules(MachineMemory):
    """The rules of the verbs of readers."""

    @rule(
        reader=st.sampled_from(asks.READERS),
        what=st.sampled_from((*WHAT, *WHAT[2:])),
        back=st.integers(0, 3),
        left_out=st.integers(1, 2),
    )
    def acknowledge(self, reader: str, what: str, back: int, left_out: int) -> None:
        """Acknowledge one of the last entries, or the first events of it."""
        entries = [("", 0), *self._driver.model.queue(QUEUE).entries.items()][-2 - back :]
        if what == NONE or len(entries) < 2:
            self._driver.call("acknowledge", reader, NOTHING)
        elif what == ALL_THERE_IS:
            self._driver.call("acknowledge", reader, AHEAD)
        else:
            (_, before), (stream_id, last) = entries[:2]
            number = max(before + 1, last - left_out) if what == WHAT[3] else 0
            self._driver.call("acknowledge", reader, stream_id, number=number)
        self._hit(f"acknowledge {what}")

    @rule(reader=st.sampled_from(asks.READERS), is_silent=st.booleans())
    def end_a_reader(self, reader: str, *, is_silent: bool) -> None:
        """Forget a reader, or let a week go by in which nobody acknowledges anything."""
        if is_silent:
            self._hit("wait for silent readers")
            self._driver.advance(asks.WEEK_MS)
            self._driver.prune()
        else:
            self._driver.call("forget_reader", reader)
