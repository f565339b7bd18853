"""From a URL to a storage."""

from __future__ import annotations

from importlib import import_module
from urllib.parse import urlsplit

from headrace.errors import InvalidOption
from headrace.storage.base import Storage
from headrace.storage.sqlite.location import place_of

REDIS = "headrace.storage.redis.storage:RedisStorage"
SQLITE = "headrace.storage.sqlite.storage:SqliteStorage"
SCHEMES = {"redis": REDIS, "rediss": REDIS, "unix": REDIS, "memory": SQLITE, "file": SQLITE}
"""Where the storage of each scheme is. It is imported when it is opened: redis-py takes as long to
import as all else together.
"""


def check_url(url: str) -> str:
    """Return ``url`` if a storage can be opened with it; nothing connects.

    Raises:
        InvalidOption: the scheme is not known, host and port can't be read, or a directory or its
            options are not valid.
    """
    if not isinstance(url, str) or "://" not in url or url.partition("://")[0] not in SCHEMES:
        raise InvalidOption(
            f"the storage URL {redacted(str(url))!r} is not valid: use one of "
            f"{', '.join(f'{name}://' for name in SCHEMES)}, as in redis://localhost:6379/0"
        )
    if SCHEMES[url.partition("://")[0]] is SQLITE:
        place_of(url)
        return url
    try:
        _ = urlsplit(url).port
    except ValueError:
        # The error's own words may hold a part of the password.
        raise InvalidOption(
            f"the host and port of the storage URL {redacted(url)!r} can't be read: "
            "percent-encode special characters in user and password"
        ) from None
    return url


def open_storage(url: str, *, tenant: str, allow_eviction: bool = False) -> Storage:
    """Return the storage for ``url``; it connects on first use.

    Raises:
        InvalidOption: the URL is not valid.
    """
    module, _, name = SCHEMES[check_url(url).partition("://")[0]].partition(":")
    storage: Storage = getattr(import_module(module), name)(
        url, tenant=tenant, allow_eviction=allow_eviction
    )
    return storage


def redacted(url: str) -> str:
    """Return a URL that can be shown: without user and password."""
    # Not by urlsplit: a password with / or # in it would be taken for a part of the path.
    scheme, separator, rest = url.partition("://")
    shown = (rest if separator else scheme).rpartition("@")[2]
    for mark in "?#":
        shown = shown.partition(mark)[0]
    return f"{scheme}{separator}{shown}" if separator else shown
