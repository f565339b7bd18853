"""DataFrames become jobs, and what happened to jobs becomes DataFrames: headrace and Spark.

Needs ``headrace[spark]`` and Java 17 or newer; on a cluster that brings its own pyspark,
``headrace[spark-cluster]``. A public name is imported when it is first used, and that is when
`MissingRequirement` says what is not there.
"""

from __future__ import annotations

from headrace.spark.public import on_first_use

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

on_first_use(__name__, _MODULES)
