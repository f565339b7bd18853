"""What each run of the archive was to bring in, and whether it has: the state of an archive.

It is a few lines of JSON, written by Spark so that any file system and Spark Connect will do. A
plan and a done marker each have two files that take turns: Spark deletes what it overwrites first,
and then the other one is still there.
"""

from __future__ import annotations

import os
import re

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headrace.errors import InvalidOption
from headrace.plain import shown
from headrace.spark.pipeline import layout
from headrace.spark.places import EventOffset

_TENANT = re.compile(r"/tenant=([^/]+)/[^/]+/[^/]+$")


class Reached(msgspec.Struct, frozen=True):
    """How far the archive of a queue has come.

    Attributes:
        events: behind which event.
        dead: the cursor behind the last dead letter, "" for none.
    """

    events: EventOffset = EventOffset()
    dead: str = ""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a run brings in of a queue: behind ``start``, up to ``end``.

    Attributes:
        queue: which.
        start: where it begins.
        end: where it ends.
    """

    queue: str
    start: Reached
    end: Reached


class RunPlan(msgspec.Struct, frozen=True, kw_only=True, tag="plan"):
    """What a run is to bring in. It stays the same until that is done, whoever has to begin again.

    Attributes:
        run: the number of this try, above those of all before.
        first: that of the first try.
        lost: events that were trimmed before the plan was made.
        parts: what is to come in.
        reached: how far each queue of the archive has come once it is done.
    """

    run: int
    first: int
    lost: int
    parts: list[Part]
    reached: dict[str, Reached]


class RunDone(msgspec.Struct, frozen=True, tag="done"):
    """All of a plan is in the archive."""

    run: int


class Looked(msgspec.Struct, frozen=True, tag="looked"):
    """When queues were asked what is new, and all that was is in the archive.

    Attributes:
        at_ms: by queue, the time of its storage just before.
    """

    at_ms: dict[str, int]


class State(msgspec.Struct, frozen=True):
    """What is known of a tenant's archive.

    Attributes:
        plan: the last that was made, None for none.
        is_done: whether all of it is in the archive.
        looked: when there was nothing more.
    """

    plan: RunPlan | None = None
    is_done: bool = True
    looked: Looked = Looked({})

    @property
    def last_done(self) -> int:
        """The number of a run that is done, as is each below it; 0 for none."""
        if self.plan is None:
            return 0
        return self.plan.run if self.is_done else self.plan.first - 1

    @property
    def until_ms(self) -> dict[str, int]:
        """Of each queue, the instant before which nothing can come any more that is not archived.

        The events of a queue never go back in time. So nothing comes that is before the last that
        was archived, nor before the queue was asked in vain for more.
        """
        if self.plan is None:
            return {}
        reached = dict(self.plan.reached)
        if not self.is_done:
            reached |= {part.queue: part.start for part in self.plan.parts}
        return {
            queue: max(place.events.at_ms, self.looked.at_ms.get(queue, 0))
            for queue, place in reached.items()
        }


def read_state(spark: SparkSession, root: str | os.PathLike[str], tenant: str) -> State:
    """Return what is known of a tenant's archive.

    Raises:
        InvalidOption: what is kept of it can't be read.
    """
    path = layout.path_of(root, layout.RUNS, f"tenant={tenant}")
    reader = spark.read.options(recursiveFileLookup=True, wholetext=True)
    lines = layout.if_there(lambda: reader.text(path))
    found = [] if lines is None else [_read(row["value"], path) for row in lines.collect()]
    plans = [one for one in found if isinstance(one, RunPlan)]
    if not plans:
        return State()
    plan = max(plans, key=lambda one: one.run)
    looked = next((one for one in found if isinstance(one, Looked)), Looked({}))
    return State(plan, is_done=RunDone(plan.run) in found, looked=looked)


def tenants(spark: SparkSession, root: str | os.PathLike[str]) -> list[str]:
    """Return whose queues are archived, in order."""
    path = layout.path_of(root, layout.RUNS)
    reader = spark.read.options(recursiveFileLookup=True)
    lines = layout.if_there(lambda: reader.text(path))
    found = [] if lines is None else [_TENANT.search(file) for file in lines.inputFiles()]
    return sorted({match[1] for match in found if match})


def write(
    spark: SparkSession, root: str | os.PathLike[str], tenant: str, said: RunPlan | RunDone | Looked
) -> None:
    """Keep what is said. A crash leaves the plan and marker that there were, or this.

    When queues were looked at has one file alone, which a crash may lose.
    """
    path = layout.path_of(root, layout.RUNS, f"tenant={tenant}", _turn(said))
    line = spark.range(1, numPartitions=1).select(F.lit(msgspec.json.encode(said).decode()))
    line.write.mode("overwrite").text(path)


def _turn(said: RunPlan | RunDone | Looked) -> str:
    match said:
        case RunPlan(run=run):
            return f"plan={run % 2}"
        case RunDone(run=run):
            return f"done={run % 2}"
        case Looked():
            return "looked=0"


def _read(text: str, path: str) -> RunPlan | RunDone | Looked:
    try:
        return msgspec.json.decode(text, type=RunPlan | RunDone | Looked)
    except msgspec.MsgspecError as error:
        raise InvalidOption(
            f"the state of the archive in {path} can't be read: {error}: {shown(text)}"
        ) from None
