"""``join_release`` and ``leave_release``: the order of an app's releases, and which are alive."""

from __future__ import annotations

from headrace.storage.limits import PRUNED_A_CALL, RELEASE_LEFT_MS, RELEASES_TTL_MS
from headrace.storage.schedules import ReleaseStanding
from headrace.storage.sqlite.engine.step import Step

_FORGET = """
DELETE FROM schedule_releases
WHERE key IN (SELECT key FROM schedule_releases WHERE joined_ms <= ? LIMIT ?)
"""
_KNOWN = """
SELECT digest, place, joined_ms >= iif(has_left, ?, ?) FROM schedule_releases
WHERE tenant = ? AND app = ? AND joined_ms > ?
"""
_JOIN = """
INSERT INTO schedule_releases (tenant, app, digest, place, joined_ms) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET place = excluded.place, joined_ms = excluded.joined_ms, has_left = 0
"""
_LEAVE = """
UPDATE schedule_releases SET has_left = 1 WHERE tenant = ? AND app = ? AND digest = ?
"""


def join_release(
    step: Step, tenant: str, app: str, digest: str, *, alive_ms: int
) -> ReleaseStanding:
    """Note that a release runs; behind all others if it is new, or if no newer one is alive."""
    forgotten_ms = step.now_ms - RELEASES_TTL_MS
    step.db.execute(_FORGET, (forgotten_ms, PRUNED_A_CALL))
    since_ms = step.now_ms - alive_ms
    left_since_ms = step.now_ms - min(alive_ms, RELEASE_LEFT_MS)
    asked = (left_since_ms, since_ms, tenant, app, forgotten_ms)
    known = step.db.execute(_KNOWN, asked).fetchall()
    places = {name: place for name, place, _ in known}
    alive = {name for name, _, is_alive in known if is_alive}
    own = places.get(digest)
    is_new = own is None
    is_newest = own is None or all(places[name] <= own for name in alive)
    last = max(places.values(), default=0)
    if own is None or (is_newest and own < last):
        own = last + 1
    step.db.execute(_JOIN, (tenant, app, digest, own, step.now_ms))
    return ReleaseStanding(is_newest, sorted({digest, *alive}), is_new)


def leave_release(step: Step, tenant: str, app: str, digest: str) -> None:
    """Note that a process of a release has ended."""
    step.db.execute(_LEAVE, (tenant, app, digest))
