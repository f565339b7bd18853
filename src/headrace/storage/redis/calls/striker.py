"""The arguments and replies of what keeps jobs from being run."""

from __future__ import annotations

from headrace.storage.redis.calls.call import Call, nothing, text
from headrace.storage.values import StrikeList
from headrace.strike import Strike, StrikeAction

STRIKE_WIDTH = 5


def strike(root: str, strike: Strike) -> Call[None]:
    """Build ``strike``."""
    words = [strike.id, strike.action.value, strike.task, strike.where]
    return Call("strike", root, words, nothing)


def lift(root: str, strike_id: str) -> Call[bool]:
    """Build ``lift``."""
    return Call("lift", root, [strike_id], bool)


def strikes(root: str) -> Call[StrikeList]:
    """Build ``strikes``."""

    def read(reply: list[bytes]) -> StrikeList:
        return StrikeList(int(reply[0]), read_strikes(reply[1:]))

    return Call("strikes", root, [], read)


def read_strikes(words: list[bytes]) -> list[Strike]:
    """Read what ``strikes.words`` in Lua returns."""
    rows = (words[at : at + STRIKE_WIDTH] for at in range(0, len(words), STRIKE_WIDTH))
    return [_strike(*map(text, row)) for row in rows]


def _strike(strike_id: str, since_ms: str, action: str, task: str, where: str) -> Strike:
    return Strike(
        id=strike_id,
        task=task,
        where=where,
        action=StrikeAction(action),
        since_ms=int(since_ms),
    )
