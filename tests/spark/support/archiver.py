"""An archiver in a process of its own, which can be made to stop for good at one of its steps.

Run as ``python -m tests.spark.support.archiver ROOT URL SCRATCH [STEP]``. It writes a line for each
step that it has come to.
"""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path

from headrace.spark.pipeline import archive
from tests.spark.support.sessions import session


class Steps(logging.Handler):
    """Tells of each step, and goes no further than one of them."""

    def __init__(self, last: str) -> None:
        super().__init__(logging.INFO)
        self._last = last

    def emit(self, record: logging.LogRecord) -> None:
        """Say which step it is."""
        step = record.getMessage().split()[0]
        print(step, flush=True)  # noqa: T201 (the test reads it)
        if step == self._last:
            signal.pause()


def main(root: str, url: str, scratch: str, last: str = "") -> None:
    """Archive what is new, up to a step."""
    logger = logging.getLogger("headrace")
    logger.setLevel(logging.INFO)
    logger.addHandler(Steps(last))
    spark = session("local[2,3]", scratch=Path(scratch))
    archive(spark, root, queues=["orders"], url=url)


if __name__ == "__main__":
    main(*sys.argv[1:])
