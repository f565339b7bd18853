"""The app of the tests of logs: handlers of each kind that log, and that fail.

``APP_LOGGING`` says which logging it sets up itself when it is imported.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import Any

import structlog

from headrace import App, RetryLater, add_job_fields

app = App()
QUEUE = "work"
FAILURES = {"ValueError": ValueError, "RetryLater": RetryLater}

match os.environ.get("APP_LOGGING"):
    case "basic":
        logging.basicConfig(level="INFO", format="BASIC %(levelname)s %(name)s %(message)s")
    case "structlog":
        structlog.configure(
            processors=[
                add_job_fields,
                structlog.processors.KeyValueRenderer(key_order=["event"]),
            ],
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )

standard = logging.getLogger("shop.mail")
structured = structlog.get_logger("shop.bill")


def say(number: int) -> None:
    """Log in each of the usual ways."""
    standard.debug("standard debug")
    warnings.warn(f"careful with {number}", stacklevel=1)
    standard.info("standard info %d", number, extra={"customer": "c-7"})
    structured.info("structured info", number=number)
    try:
        int("no number")
    except ValueError:
        standard.exception("standard exception", extra={"event": "signup"})
        structured.bind(level="of its own").exception("structured 100 %", name="Ann")


def fail(secret: str) -> None:
    """Fail with a message of two lines."""
    raise ValueError(f"bad thing with {len(secret)}\nand more")


@app.task(name="say_in_loop", queue=QUEUE)
async def say_in_loop(number: int) -> str:
    """Log in the loop."""
    say(number)
    return "a result"


@app.task(name="say_in_thread", queue=QUEUE)
def say_in_thread(number: int) -> str:
    """Log in a thread."""
    say(number)
    return "a result"


@app.task(name="say_in_process", queue=QUEUE, executor="process")
def say_in_process(number: int) -> str:
    """Log in a process."""
    say(number)
    return "a result"


@app.task(name="fail_in_loop", queue=QUEUE, max_attempts=1)
async def fail_in_loop(secret: str) -> None:
    """Fail in the loop."""
    fail(secret)


@app.task(name="fail_in_thread", queue=QUEUE, max_attempts=1)
def fail_in_thread(secret: str) -> None:
    """Fail in a thread."""
    fail(secret)


@app.task(name="fail_in_process", queue=QUEUE, max_attempts=1, executor="process")
def fail_in_process(secret: str) -> None:
    """Fail in a process."""
    fail(secret)


@app.task(name="retry", queue=QUEUE, max_attempts=2)
async def retry(secret: str) -> None:
    """Fail, to be run again in an hour."""
    raise RetryLater(3600) from ValueError(f"not yet, {len(secret)}")


@app.task(name="unstorable", queue=QUEUE)
async def unstorable() -> Any:
    """Return what can't be stored."""
    return object()


@app.middleware
async def around(_context: Any, call_next: Any) -> Any:
    """Have a frame of middleware in each traceback."""
    return await call_next()
