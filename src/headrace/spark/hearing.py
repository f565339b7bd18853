"""What partitions have staged, as the driver hears of it while their job goes on.

The rows that a job returns come at its end, and none of one that fails. An accumulator of Spark
tells of each partition that has ended well by then.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from headrace.spark.progress import is_remote
from headrace.storage.values import StageInfo

if TYPE_CHECKING:  # the client of Spark Connect has none
    from pyspark import SparkContext

ByWrite = dict[str, list[StageInfo]]


class StagesDone:
    """The stages of the partitions that have ended well, in a block on the driver.

    Spark Connect has no accumulators, so nothing is heard there.

    Args:
        spark: the session that runs the job.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._name = secrets.token_hex(8)
        self._done = None if is_remote(spark) else _accumulator(spark.sparkContext)

    def add(self, stage: StageInfo) -> None:
        """Tell the driver of a stage, once this attempt has ended and if it counts."""
        if self._done is not None:
            self._done.add({self._name: [stage]})

    def stages(self) -> Sequence[StageInfo]:
        """Return on the driver what it has heard of."""
        return () if self._done is None else tuple(self._done.value.get(self._name, ()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._done is not None:
            self._done.value.pop(self._name, None)


class _Joined(AccumulatorParam[ByWrite]):
    def zero(self, value: ByWrite) -> ByWrite:
        return {}

    def addInPlace(self, value1: ByWrite, value2: ByWrite) -> ByWrite:
        for name, stages in value2.items():
            value1.setdefault(name, []).extend(stages)
        return value1


@lru_cache(maxsize=1)
def _accumulator(context: SparkContext) -> Accumulator[ByWrite]:
    # One for all writes: a process never forgets an accumulator.
    return context.accumulator({}, _Joined())
