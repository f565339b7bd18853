"""One storage a process for each URL and tenant; Spark's Python processes are used again.

Nothing of it is ever pickled: what goes to executors is the URL, or "" for the one that the
environment of each process says.
"""

from __future__ import annotations

from functools import cache

from headrace.app import App
from headrace.spark.options import WriteOptions
from headrace.spark.urls import check_shared
from headrace.storage.blocking import BlockingStorage
from headrace.storage.connect import open_blocking
from headrace.sync.asking import BlockingAsker

CHECK_S = 2.0
"""How long a storage may be away when a write or a query begins; later it may be for `retryFor`."""


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


def asker_of(options: WriteOptions) -> BlockingAsker:
    """Return what asks the storage of a write, for as long as its options say.

    Raises:
        InvalidOption: as `storage_of`.
    """
    storage = storage_of(options.url, options.tenant)
    return BlockingAsker(storage, retry_for_s=options.retry_for_ms / 1000)


@cache
def _opened(url: str, tenant: str) -> BlockingStorage:
    return open_blocking(url, tenant=tenant)
