"""When a schedule is due: cron expressions, intervals and single instants; no I/O and no clock.

Instants are milliseconds since the epoch. Each timing names the same ones in every process.
"""
