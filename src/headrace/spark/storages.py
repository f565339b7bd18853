"""One storage a process for each URL and tenant; Spark's Python processes are used again.

Nothing of it is ever pickled: what goes to executors is the URL, or "" for the one that the
environment of each process says.
"""

from __future__ import annotations

from functools import cache

from headrace.app import App
from headrace.spark.urls import check_shared
from headrace.storage.blocking import BlockingStorage
from headrace.storage.connect import open_blocking


def storage_of(url: str, tenant: str) -> BlockingStorage:
    """Return this process's storage; it connects on first use, and anew after a fork.

    Args:
        url: where it is; "": as the environment of this process says, see `App`.
        tenant: whose queues.

    Raises:
        InvalidOption: what the environment says is not valid, or it is in the memory of one
            process.
    """
    return _opened(check_shared(url or App().url), tenant)


@cache
def _opened(url: str, tenant: str) -> BlockingStorage:
    return open_blocking(url, tenant=tenant)
