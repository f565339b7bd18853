"""Hands that race for a few ids, the jobs of which they change all the time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from headrace.request import JobRequest
from headrace.update import Update, UpdateRunAt
from tests.races.hands import KEPT_MS, QUEUE, Hand, Hold

JOB_IDS = ("a", "b", "c", "d", "e", "f")


class UpdatingHand(Hand):
    """Enqueues for a past time, for now and for a future one, and mostly updates by that."""

    def new_jobs(self) -> list[JobRequest]:
        now_ms = time.time_ns() // 1_000_000
        return [
            JobRequest(
                id=job_id,
                queue=QUEUE,
                task="send",
                payload=b"." * self.random.choice((2, 300)),
                priority=self.random.choice((1, 5, 9)),
                delay_ms=self.random.choice((0, 0, 1, 3)),
                run_at_ms=self.random.choice((0, 0, now_ms - KEPT_MS, now_ms + 2)),
                keep_ms=self.random.choice((0, KEPT_MS)),
                max_stalls=self.random.choice((1, 2, 9)),
                update=self._update(),
            )
            for job_id in self.random.choices(JOB_IDS, k=self.random.randint(1, 3))
        ]

    def some_id(self) -> str:
        return self.random.choice(JOB_IDS)

    def _update(self) -> Update | None:
        if self.random.random() < 0.2:
            return None
        return Update(
            self.random.random() < 0.8,
            self.random.choice(list(UpdateRunAt)),
            self.random.random() < 0.5,
            self.random.random() < 0.2,
        )


def overlaps(holds: Sequence[Hold]) -> list[str]:
    """Return what two hands held at a time, and what was claimed twice by one claim."""
    found = []
    last: dict[str, Hold] = {}
    for hold in sorted(holds, key=lambda hold: hold.since):
        before = last.get(hold.job_id)
        if before is not None and before.until > hold.since:
            found.append(f"{before} and {hold} are two active jobs of an id")
        last[hold.job_id] = hold
    claims = Counter((hold.job_id, hold.epoch, hold.nonce) for hold in holds)
    return [*found, *(f"{claim} was answered {n} times" for claim, n in claims.items() if n > 1)]
