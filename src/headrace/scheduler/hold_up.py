"""A storage that has no room for what schedules bring, told once each time."""

from __future__ import annotations

from headrace.errors import StorageError
from headrace.events import Emit, SchedulesHeldUp


class HoldUp:
    """What one loop is held up by.

    Args:
        emit: told when it begins.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._is_told = False

    def begins(self, error: StorageError) -> None:
        """Note that there is no room; told if there was some before."""
        if not self._is_told:
            self._is_told = True
            self._emit(SchedulesHeldUp(error=str(error)))

    def ends(self) -> None:
        """Note that there is room."""
        self._is_told = False
