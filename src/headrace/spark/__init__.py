"""DataFrames become jobs, and what happened to jobs becomes DataFrames: headrace and Spark.

Needs ``headrace[spark]`` and Java 17 or newer; on a cluster that brings its own pyspark,
``headrace[spark-cluster]``. A public name is imported when it is first used, and that is when
`MissingRequirement` says what is not there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from headrace.spark.requirements import check_pyspark

_MODULES = {
    "FrameReport": "frames",
    "HeadraceDataSource": "source",
    "enqueue_batch": "batches",
    "enqueue_dataframe": "frames",
    "enqueue_partition": "batches",
    "failures_by_error": "results",
    "prepare": "prepare",
    "register": "source",
    "results": "results",
}
"""The module of each public name."""

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_pyspark()
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
