"""What the machine does with bulk writes: the rules of their part."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis.stateful import rule

from headrace.storage.values import StageInfo
from tests.model import asks
from tests.model.memory import MachineMemory
from tests.model.subjects import QUEUE

WRITES = ("w:1", "w2")
TOKENS = ("t1", "t2", "t3")
TTLS_MS = (10_000, asks.HOUR_MS)
writes = st.sampled_from(WRITES)
tokens = st.sampled_from(TOKENS)
job_kinds = st.lists(st.sampled_from(sorted(asks.JOB_KINDS)), max_size=1)
jobs = st.lists(st.tuples(st.sampled_from((*asks.IDS, "")), job_kinds), max_size=3)
off_by = st.sampled_from((0, 0, 0, 0, 1, -1))
"""How much shorter, or longer, a stage is said to be."""
ttls = st.sampled_from(TTLS_MS)


class BulkRules(MachineMemory):
    """The rules of the verbs of the role `BulkWriter`."""

    def _length(self, write_id: str, token: str) -> int:
        stage = self._driver.model.queue(QUEUE).stages.get((token, write_id))
        return 0 if stage is None else len(stage.calls)

    @rule(write_id=writes, token=tokens, drawn=jobs, off=off_by, ttl_ms=ttls, is_late=st.booleans())
    def stage(
        self,
        write_id: str,
        token: str,
        drawn: list[tuple[str, list[str]]],
        off: int,
        ttl_ms: int,
        *,
        is_late: bool,
    ) -> None:
        """Stage at the right length, or as a repeated or lost call would; on demand once more."""
        made = self._new_jobs(drawn)
        before = max(0, self._length(write_id, token) - off)
        for _ in range(1 + is_late):
            self._hit("stage" if not off else f"stage, off by {off}")
            self._driver.stage(write_id, token, made, before=before, ttl_ms=ttl_ms)

    @rule(
        write_id=writes,
        named=st.lists(tokens, max_size=3),
        batch=st.integers(-2, 1),
        off=off_by,
        ttl_ms=ttls,
    )
    def commit(self, write_id: str, named: list[str], batch: int, off: int, ttl_ms: int) -> None:
        """Commit some stages as the next batch, or an earlier one, or with a wrong length.

        A wrong length is said of stages that are there, else it was not that which was refused.
        """
        number = max(0, self._next_batch(write_id) + batch)
        if off:
            free = [token for token in TOKENS if not self._is_committed(write_id, token)]
            for token in free[:1]:
                self.stage(write_id, token, [("", [])], 0, ttl_ms, is_late=False)
            named = self._staged(write_id)
        self._commit(write_id, named, batch=number, off=off, ttl_ms=ttl_ms)

    def _staged(self, write_id: str) -> list[str]:
        """Return the stages that may be committed."""
        free = [token for token in TOKENS if not self._is_committed(write_id, token)]
        return [token for token in free if self._length(write_id, token)]

    def _commit(
        self, write_id: str, named: Sequence[str], *, batch: int, off: int = 0, ttl_ms: int
    ) -> None:
        stages = self._driver.model.queue(QUEUE).stages
        infos = []
        for token in named:
            stage = stages.get((token, write_id))
            n = sum(map(len, stage.calls)) if stage else 0
            infos.append(StageInfo(token, self._length(write_id, token) + off, n))
        outcome = self._driver.commit(write_id, infos, batch=batch, keep_ms=ttl_ms)
        self._hit(f"a commit: {outcome if isinstance(outcome, str) else 'lost'}")

    @rule(
        write_id=writes,
        drawn=st.lists(jobs, min_size=1, max_size=3),
        n=st.integers(0, 4),
        is_repeated=st.booleans(),
        is_discarded=st.booleans(),
    )
    def write_in_bulk(
        self,
        write_id: str,
        drawn: list[list[tuple[str, list[str]]]],
        n: int,
        *,
        is_repeated: bool,
        is_discarded: bool,
    ) -> None:
        """Stage anew by some writers, commit what they have, and publish some of it.

        To discard a stage that is committed changes nothing.
        """
        free = [t for t in TOKENS if not self._is_committed(write_id, t)]
        self._driver.call("discard", write_id, free)
        for token, chunk in zip(free, drawn, strict=False):
            self.stage(write_id, token, chunk, 0, TTLS_MS[1], is_late=False)
            self.stage(write_id, token, chunk, 0, TTLS_MS[1], is_late=True)
        staged = self._staged(write_id)
        batch = self._next_batch(write_id)
        for _ in range(1 + is_repeated):
            self._commit(write_id, staged, batch=batch, ttl_ms=TTLS_MS[1])
        if is_discarded:
            self._driver.call("discard", write_id, staged)
        self._publish(n)

    def _next_batch(self, write_id: str) -> int:
        known = self._driver.model.queue(QUEUE).writes.get(write_id)
        return known.batch + 1 if known else 0

    def _is_committed(self, write_id: str, token: str) -> bool:
        return (token, write_id) in self._driver.model.queue(QUEUE).to_publish

    def _publish(self, n: int) -> None:
        for _ in range(n):
            self._driver.call("publish")

    @rule(write_id=writes, named=st.lists(tokens, max_size=3), n=st.integers(0, 4))
    def publish_or_discard(self, write_id: str, named: list[str], n: int) -> None:
        self._publish(n)
        if n < 2:
            self._driver.call("discard", write_id, named)
        self._driver.call("read_write", write_id)

    @rule(what=st.sampled_from(("stage", "write")), short=st.integers(0, 1))
    def advance_to_the_end_of_one(self, what: str, short: int) -> None:
        """Move the clock to where a stage or a write reaches its age, or a millisecond before."""
        if what == "stage":
            self.stage(WRITES[1], TOKENS[2], [("", [])], 0, TTLS_MS[0], is_late=False)
        else:
            self._commit(WRITES[1], [], batch=self._next_batch(WRITES[1]), ttl_ms=TTLS_MS[0])
        q, now = self._driver.model.queue(QUEUE), self._driver.model.now
        known = q.stages.values() if what == "stage" else q.writes.values()
        ahead = [one.dies - short - now for one in known if one.dies is not None]
        if wait_ms := min((ms for ms in ahead if ms > 0), default=0):
            self._hit(f"advance to where a {what} dies")
            self._driver.advance(wait_ms)
