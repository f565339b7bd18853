"""Errors of headrace that were raised inside Spark, as what they were."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from headrace import errors
from headrace.errors import EventsLost, HeadraceError, StorageError, UsageError

try:
    from py4j.protocol import Py4JError
except ModuleNotFoundError:  # pyspark-client, which has no Java to talk to
    SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException,)
else:
    SPARK_ERRORS = (PySparkException, Py4JError)

_INSIDE = re.compile(
    r"^(?:[\w$]+\.[\w.$]+: )?(?:\[\w+\] )?"  # a class of Java's, and a condition of Spark's
    r"headrace\.errors\.(\w+): (.+?)(?: SQLSTATE: \w+)?$",
    re.MULTILINE,
)
"""The last line of a traceback of a process of Spark's, or what an expression has raised."""


def raised_inside(error: Exception) -> HeadraceError | None:
    """Return the error of ours of which one of Spark's tells, None if it tells of none."""
    inside = _INSIDE.findall(str(error))
    if not inside:
        return None
    name, message = inside[-1]
    kind = getattr(errors, name, HeadraceError)
    takes_text = issubclass(kind, UsageError | StorageError | EventsLost)
    return kind(message) if takes_text else HeadraceError(message)


@contextmanager
def as_raised() -> Iterator[None]:
    """Raise an error of ours that Spark tells of in a block as what it was; Spark's is its cause.

    Raises:
        HeadraceError: one was raised inside.
    """
    try:
        yield
    except SPARK_ERRORS as error:
        inside = raised_inside(error)
        if inside is None:
            raise
        raise inside from error
