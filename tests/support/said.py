"""What a program has said on its standard error, but for what a busy machine has it say."""

from __future__ import annotations

import re

# In development mode asyncio tells of each step of a loop that took over 100 ms, as any does that
# waits for a processor.
SLOW_STEP = re.compile(r"^Executing <.*> took \d+\.\d+ seconds\n", re.MULTILINE)


def said(stderr: str) -> str:
    """Return the words of a program that ran with ``-X dev``, without those slow steps."""
    return SLOW_STEP.sub("", stderr)
