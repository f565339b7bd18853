"""Jobs, queues, workers and events as users see them: plain values, made of what a storage keeps.

Instants are aware datetimes in UTC by the storage's clock, durations are seconds, and what there is
none of is None. Nothing here does I/O. docs/reference.md describes every field.
"""
