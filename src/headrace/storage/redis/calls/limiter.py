"""The arguments and replies of what steers limits and shows them."""

from __future__ import annotations

from headrace.limit import Terms, read_terms
from headrace.storage.gates import GateInfo, LimitInfo
from headrace.storage.redis.calls.call import Call, nothing, text


def set_limit(root: str, name: str, terms: Terms | None) -> Call[None]:
    """Build ``set_limit``."""
    return Call("set_limit", root, [name, "" if terms is None else terms.text], nothing)


def limits(root: str) -> Call[list[LimitInfo]]:
    """Build ``limits``."""

    def read(reply: list[bytes]) -> list[LimitInfo]:
        found = []
        for name, said in sorted(zip(reply[::2], reply[1::2], strict=True)):
            declared, _, operator = text(said).partition("\t")
            info = LimitInfo(
                name=text(name), declared=read_terms(declared), set=read_terms(operator)
            )
            found.append(info)
        return found

    return Call("limits", root, [], read)


def gate(root: str, name: str, key: str) -> Call[GateInfo]:
    """Build ``gate``."""

    def read(reply: list[bytes]) -> GateInfo:
        terms, *numbers = reply
        ready, active, blocked, tokens = map(int, numbers)
        return GateInfo(
            name=name,
            key=key,
            terms=read_terms(text(terms)),
            ready=ready,
            active=active,
            blocked=blocked,
            tokens=tokens,
        )

    return Call("gate", root, [f"{name}\t{key}"], read)
