"""One line of a verdict."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

SHOWN = 5


class Line(msgspec.Struct, frozen=True):
    """A rule, what breaks it, and a figure.

    Attributes:
        rule: what must hold.
        broken: each case in which it does not.
        figure: what was counted.
    """

    rule: str
    broken: list[str]
    figure: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether it holds."""
        return not self.broken

    def __str__(self) -> str:
        first = f"{'ok ' if self.is_ok else 'BAD'}  {self.rule:<44} {self.figure}"
        if self.is_ok:
            return first.rstrip()
        shown = [f"       {case[:300]}" for case in self.broken[:SHOWN]]
        more = [f"       and {len(self.broken) - SHOWN} more"] * (len(self.broken) > SHOWN)
        return "\n".join([first.rstrip(), *shown, *more])


def line(rule: str, broken: Iterable[str], figure: str = "") -> Line:
    """Return a line whose figure begins with the number of cases."""
    cases = list(broken)
    return Line(rule, cases, f"{len(cases):,} {figure}".rstrip())
