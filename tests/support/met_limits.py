"""Which limits a job meets."""

from __future__ import annotations

from typing import Any

from headrace import Job
from headrace.limit import read_gates


def met(job: Job[Any]) -> list[tuple[str, str]]:
    """Return the limits and keys that a job meets."""
    return [(gate.name, gate.key) for gate in read_gates(job.gates)]
