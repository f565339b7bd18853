"""Who is told where the instant comes forward at which the first of a tenant's schedules is due."""

from __future__ import annotations

from headrace.storage.limits import CHANNELS_LIMIT, PRUNED_A_CALL, SCHEDULES_HEARD_MS
from headrace.storage.sqlite.engine.step import Step
from headrace.storage.sqlite.wake import notify
from headrace.storage.values import End

_NAME = """
INSERT INTO schedule_listeners (tenant, channel, named_ms) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET named_ms = excluded.named_ms
"""
_NAMED = """
SELECT channel FROM schedule_listeners WHERE tenant = ? AND named_ms >= ?
ORDER BY named_ms DESC LIMIT ?
"""
_FORGET = """
DELETE FROM schedule_listeners
WHERE key IN (SELECT key FROM schedule_listeners WHERE named_ms < ? LIMIT ?)
"""


def name(step: Step, tenant: str, channel: str) -> None:
    """Tell a channel from now on, for a while."""
    step.db.execute(_NAME, (tenant, channel, step.now_ms))


def notify_all(step: Step, tenant: str) -> None:
    """Tell those that were named last."""
    since_ms = step.now_ms - SCHEDULES_HEARD_MS
    for (channel,) in step.db.execute(_NAMED, (tenant, since_ms, CHANNELS_LIMIT)).fetchall():
        notify(step, channel, End("", "", None))


def forget(step: Step) -> None:
    """Forget some of those that were not named for too long, whosever they are."""
    step.db.execute(_FORGET, (step.now_ms - SCHEDULES_HEARD_MS, PRUNED_A_CALL))
