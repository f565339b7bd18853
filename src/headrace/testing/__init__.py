"""What tests of programs on headrace use, and the contract that every storage must keep.

Needs pytest and pytest-asyncio, as the extra ``testing`` has them.
"""

from importlib.util import find_spec

if find_spec("pytest") is None or find_spec("pytest_asyncio") is None:
    raise ModuleNotFoundError(
        "headrace.testing needs pytest and pytest-asyncio: pip install pytest pytest-asyncio"
    )

from headrace.testing.attempts import FinishedAttempt
from headrace.testing.clock import ManualClock
from headrace.testing.contract import StorageContract, Subject
from headrace.testing.enqueued import EnqueuedJob
from headrace.testing.events import EventLog
from headrace.testing.kit import Kit
from headrace.testing.running import running

__all__ = [
    "EnqueuedJob",
    "EventLog",
    "FinishedAttempt",
    "Kit",
    "ManualClock",
    "StorageContract",
    "Subject",
    "running",
]
