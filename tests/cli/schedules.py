"""What the tests of ``headrace schedule`` share: one that is added, and what is shown of it."""

from __future__ import annotations

from typing import Any

from tests.cli.conftest import Cli

FAR = "2031-01-31T08:00:00Z"


def add(here: Cli, *words: str, schedule_id: str = "mondays") -> None:
    timing = () if {"--every", "--at", "--cron"} & set(words) else ("--cron", "0 9 * * mon")
    ran = here("schedule", "add", schedule_id, "shop.send", "-q", "mail", *timing, *words)
    assert (ran.code, ran.err) == (0, ""), ran


def shown(here: Cli, schedule_id: str = "mondays") -> dict[str, Any]:
    document: dict[str, Any] = here("schedule", "show", schedule_id, "-o", "json").json
    return document


def ids(here: Cli, *words: str) -> list[str]:
    return [one["id"] for one in here("schedule", "list", "-o", "json", *words).json]
