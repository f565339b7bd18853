"""Runs the machine on one storage, a given number of times or of a given seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import StorageMachine
from tests.model.subjects import ModelSubject

EXAMPLES = 300
STEPS = 50
SHRINKS = 3
"""How often a failing example is shrunk on: each time ends after 500 successes or five minutes."""


def run_machine(
    make: Callable[[], ModelSubject],
    hits: Counter[str],
    *,
    examples: int = EXAMPLES,
    steps: int = STEPS,
    seed: int | None = None,
    is_shrunk: bool = True,
) -> None:
    """Drive storages of one kind, a new one for each example.

    Args:
        make: opens an empty storage.
        hits: counts what was done.
        examples: how many.
        steps: most rules in one.
        seed: of the draws; None: the same draws at every run of these sources.
        is_shrunk: whether a failing example is made as short as it gets.

    Raises:
        AssertionError: the storage and the model differ; the steps to there were printed.
    """

    def machine() -> StorageMachine:
        return StorageMachine(make, hits)

    factory = machine if seed is None else hypothesis.seed(seed)(machine)
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        derandomize=seed is None,
        database=None if seed is None else InMemoryExampleDatabase(),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        phases=[Phase.reuse, Phase.generate, *[Phase.shrink] * is_shrunk],
    )
    for left in reversed(range(SHRINKS if is_shrunk and seed is not None else 1)):
        try:
            # Its documentation takes any callable.
            run_state_machine_as_test(factory, settings=profile)  # type: ignore[arg-type]
        except Exception:
            if not left:
                raise
        else:
            return
