"""Spark's Python daemons begin with all that the workers need which they fork.

Python imports a module of this name before anything else. Otherwise each worker imports it all by
itself, which takes most of a second, and looks through it for garbage after each task.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

if "pyspark.daemon" in sys.orig_argv:
    workers = sys.orig_argv[-1]
    import_module(workers)
    if workers == "pyspark.worker":
        import_module("pandas")
    for module in ("event_readers", "record_readers", "source", "writers"):
        import_module(f"headrace.spark.{module}")
    gc.collect()
    gc.freeze()
