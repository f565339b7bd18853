"""When a schedule is due: cron expressions, intervals and single instants; no I/O and no clock.

Instants are milliseconds since the epoch. Each timing names the same ones in every process.
"""

from headrace.timing.at import At
from headrace.timing.cron import Cron
from headrace.timing.every import Every

Timing = Cron | Every | At
"""What a schedule can be timed by; msgspec encodes and decodes it by its tag."""

__all__ = ["At", "Cron", "Every", "Timing"]
