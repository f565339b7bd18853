"""The model of a queue that takes a number of waiting jobs, and no more."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import QueueFull
from tests.model.places import WAITING
from tests.model.state import State


class LengthModel(State):
    """A call that would bring in more than its queue takes changes nothing at all."""

    @contextmanager
    def within_length(self, queue: str, *, may_pass: bool = False) -> Iterator[None]:
        """Undo what is done inside if it brings in too many.

        Args:
            queue: into which queue.
            may_pass: whether all is let in while there is room for any.

        Raises:
            QueueFull: it does.
        """
        limit, before = self.queue(queue).settings.max_length, self._waiting(queue)
        if may_pass and before < limit:
            limit = 0
        kept = copy.deepcopy(vars(self)) if limit else {}
        yield
        if limit and self._waiting(queue) > max(limit, before):
            vars(self).update(kept)
            raise QueueFull(queue, limit=limit, waiting=before)

    def _waiting(self, queue: str) -> int:
        q = self.queue(queue)
        return len(q.successors) + sum(job.state in WAITING for job in q.jobs.values())
