"""DataFrames become jobs, and what happened to jobs becomes DataFrames: headrace and Spark.

Needs ``headrace[spark]`` and Java 17 or newer; on a cluster that brings its own pyspark,
``headrace[spark-cluster]``. A public name is imported when it is first used, and that is when
`MissingRequirement` says what is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.spark.public import on_first_use as _on_first_use

if TYPE_CHECKING:  # for who reads types: a running program imports a module when it is used
    from headrace.spark.batches import enqueue_batch as enqueue_batch
    from headrace.spark.batches import enqueue_partition as enqueue_partition
    from headrace.spark.frames import FrameReport as FrameReport
    from headrace.spark.frames import enqueue_dataframe as enqueue_dataframe
    from headrace.spark.prepare import prepare as prepare
    from headrace.spark.results import failures_by_error as failures_by_error
    from headrace.spark.results import results as results
    from headrace.spark.source import HeadraceDataSource as HeadraceDataSource
    from headrace.spark.source import register as register

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

_on_first_use(__name__, _MODULES)
