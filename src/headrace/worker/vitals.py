"""What probes and service managers ask: of one worker, or of all those of a supervisor."""

from __future__ import annotations

from typing import Protocol


class Vitals(Protocol):
    """How the workers of a process are; a `Worker` has it of itself. Read from any thread."""

    @property
    def is_alive(self) -> bool:
        """Whether every event loop turns."""

    @property
    def is_ready(self) -> bool:
        """Whether all of them consume, and none is stopping."""

    @property
    def active(self) -> int:
        """How many attempts run."""

    @property
    def stuck(self) -> int:
        """How many handlers go on although they were stopped and given up."""

    @property
    def loop_lag(self) -> float:
        """How late the latest event loop was when it was last asked, in seconds."""

    @property
    def concurrency(self) -> int:
        """How many attempts run at once, at most."""
