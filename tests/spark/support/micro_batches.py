"""Micro-batches of a reader of a stream, asked for as the installed Spark asks for them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader

SPARK_SAYS_LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None
"""Whether Spark tells a reader where a micro-batch begins and how much it may be: from 4.2 on."""


def next_end(reader: DataSourceStreamReader, begin: dict[str, Any]) -> dict[str, Any]:
    """Return where the micro-batch ends that begins behind an offset."""
    words = (begin, reader.getDefaultReadLimit()) if SPARK_SAYS_LIMITS else ()
    end: dict[str, Any] = reader.latestOffset(*words)
    return end
