"""The archive of events and dead letters, and what is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.spark.public import on_first_use as _on_first_use

if TYPE_CHECKING:  # for who reads types: a running program imports a module when it is used
    from headrace.spark.pipeline.archive import archive as archive
    from headrace.spark.pipeline.archive import follow as follow
    from headrace.spark.pipeline.baseline import baseline as baseline
    from headrace.spark.pipeline.failures import failures as failures
    from headrace.spark.pipeline.layout import dead_letters as dead_letters
    from headrace.spark.pipeline.layout import events as events
    from headrace.spark.pipeline.layout import rollups as rollups
    from headrace.spark.pipeline.plots import plot as plot
    from headrace.spark.pipeline.replay import replay as replay
    from headrace.spark.pipeline.rollup import rollup as rollup
    from headrace.spark.pipeline.upkeep import compact as compact
    from headrace.spark.pipeline.upkeep import retain as retain

_MODULES = {
    "archive": "archive",
    "baseline": "baseline",
    "compact": "upkeep",
    "dead_letters": "layout",
    "events": "layout",
    "failures": "failures",
    "follow": "archive",
    "plot": "plots",
    "replay": "replay",
    "retain": "upkeep",
    "rollup": "rollup",
    "rollups": "layout",
}
"""The module of each public name."""

__all__ = sorted(_MODULES)

_on_first_use(__name__, _MODULES)
