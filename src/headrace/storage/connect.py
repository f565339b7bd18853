"""From a URL to a storage."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import Any, cast

from headrace.errors import InvalidOption, StorageRefused
from headrace.job import DEFAULT_TENANT, check_name
from headrace.plain import shown
from headrace.storage.base import Storage
from headrace.storage.blocking import BlockingStorage
from headrace.storage.opener import Opener
from headrace.storage.redis.location import location_of
from headrace.storage.sqlite.engine.location import place_of

REDIS = "headrace.storage.redis.storage:RedisStorage"
SQLITE = "headrace.storage.sqlite.storage:SqliteStorage"
SCHEMES = {"redis": REDIS, "rediss": REDIS, "unix": REDIS, "memory": SQLITE, "file": SQLITE}
"""Where the storage of each scheme is. It is imported when it is opened: redis-py takes as long to
import as all else together. Nobody else's storage is looked for under one of these.
"""
_BLOCKING = {
    REDIS: "headrace.storage.redis.storage:BlockingRedisStorage",
    SQLITE: "headrace.storage.sqlite.storage:BlockingSqliteStorage",
}
"""The blocking one of each."""
PORTAL = "headrace.storage.portal:PortalStorage"
"""What makes one of any other."""


def check_url(url: str) -> str:
    """Return ``url`` if a storage can be opened with it; nothing connects.

    Raises:
        InvalidOption: the scheme is not known, the URL can't be read, one of its options is not
            known or not valid, or an installed storage can't be loaded.
    """
    scheme = _scheme_of(url)
    if scheme not in SCHEMES:
        _opener_of(url)
        return url
    if SCHEMES[scheme] is SQLITE:
        place_of(url)
        return url
    location_of(url)
    return url


def open_storage(
    url: str, *, tenant: str = DEFAULT_TENANT, allow_eviction: bool = False
) -> Storage:
    """Return the storage for ``url``; it connects on first use, and `Storage.aclose` closes it.

    Args:
        url: ``redis://``, ``rediss://``, ``unix://``, ``file:///directory``, ``memory://``, or a
            scheme that an installed distribution brings.
        tenant: whose queues, default ``default``.
        allow_eviction: use a Redis server whose ``maxmemory-policy`` may throw jobs away.

    Raises:
        InvalidOption: the URL or the tenant is not valid, or an installed storage can't be loaded.
    """
    tenant = check_name(tenant, what="tenant")
    opener = _opener_of(check_url(url))
    return opener(url, allow_eviction=allow_eviction).for_tenant(tenant)


def open_blocking(
    url: str, *, tenant: str = DEFAULT_TENANT, allow_eviction: bool = False
) -> BlockingStorage:
    """Return the storage for ``url`` for code without an event loop, and for many threads.

    It connects on first use, and `BlockingStorage.close` closes it. The verbs of a storage that
    another distribution brings are run by an event loop in a thread of their own.

    Args:
        url: as `open_storage`.
        tenant: whose queues, default ``default``.
        allow_eviction: as `open_storage`.

    Raises:
        InvalidOption: the URL or the tenant is not valid, or an installed storage can't be loaded.
    """
    tenant = check_name(tenant, what="tenant")
    scheme = _scheme_of(check_url(url))
    if scheme in SCHEMES:
        blocking = _loaded(_BLOCKING[SCHEMES[scheme]])
        ours: BlockingStorage = blocking(url, allow_eviction=allow_eviction).for_tenant(tenant)
        return ours
    opener = partial(_opener_of(url), url, allow_eviction=allow_eviction)
    another: BlockingStorage = _loaded(PORTAL)(opener, tenant)
    return another


def check_exists(url: str) -> None:
    """See that there is something to look at, for who only reads: to open a place makes it.

    A server is there or not, which its first call tells.

    Raises:
        StorageRefused: the directory that ``url`` names holds no storage.
    """
    if SCHEMES.get(_scheme_of(url)) is not SQLITE:
        return
    place = place_of(url)
    try:
        if place.is_file:
            place.path.stat()
    except FileNotFoundError:
        raise StorageRefused(
            f"there is no storage in {place}: the first job or worker makes it; is it another "
            "directory that you mean?"
        ) from None
    except OSError:
        return  # to open it says what is wrong


def _scheme_of(url: object) -> str:
    """Return what is before ``://``, "" without it."""
    scheme, separator, _ = url.partition("://") if isinstance(url, str) else ("", "", "")
    return scheme if separator else ""


def _opener_of(url: str) -> Opener:
    scheme = _scheme_of(url)
    if scheme in SCHEMES:
        return cast(Opener, _loaded(SCHEMES[scheme]))
    # Not at the top: importlib.metadata takes 12 ms to import, for what few need.
    from headrace.storage.installed import find_opener, installed_schemes

    opener = find_opener(scheme) if scheme else None
    if opener is None:
        brought = [name for name in installed_schemes() if name not in SCHEMES]
        raise InvalidOption(
            f"the storage URL {shown(redacted(str(url)))} is not valid: use one of "
            f"{_listed(SCHEMES)}, as in redis://localhost:6379/0"
            + (f"; installed besides: {_listed(brought)}" if brought else "")
        )
    return opener


def _loaded(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _listed(schemes: Iterable[str]) -> str:
    return ", ".join(f"{scheme}://" for scheme in schemes)


def redacted(url: str) -> str:
    """Return a URL that can be shown: without user and password."""
    # Not by urlsplit: a password with / or # in it would be taken for a part of the path.
    scheme, separator, rest = url.partition("://")
    shown = (rest if separator else scheme).rpartition("@")[2]
    for mark in "?#":
        shown = shown.partition(mark)[0]
    return f"{scheme}{separator}{shown}" if separator else shown
