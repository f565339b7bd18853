"""The addresses of storages that Spark's processes can share."""

from __future__ import annotations

from headrace.errors import InvalidOption
from headrace.storage.connect import check_url


def check_shared(url: str) -> str:
    """Return a URL, once it is known that the processes of Spark can share what it names.

    Raises:
        InvalidOption: it is not valid, or its storage is in the memory of one process.
    """
    if check_url(url).startswith("memory://"):
        raise InvalidOption(
            f"{url} is in the memory of one process, and Spark's Python processes are others: "
            "use redis:// or file://"
        )
    return url
