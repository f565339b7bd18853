"""Short runs of the soak on storages that are wrong on purpose: each breaks the rule named here."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from headrace.storage import Storage
from headrace.storage.redis.library import library
from tests.chaos.mutants import IGNORES_CLAIMS, MUTANTS, Mutant, library_that_ignores_claims
from tests.chaos.short import LIMIT_S, soak

PLAIN = ("--one-in", "odd=0", "poison=0", "crash=0", "hang=0", "slow=0")
"""Without the kinds that take their time: few mutants are found by them."""

BUSY = ("--one-in", "odd=0", "poison=0", "crash=0", "hang=0", "slow=2")

SMALL = ("--jobs", "450", "--seconds", "3", "--drain", "15")
FOUND_BY = {
    "IgnoresCancel": ("cancelled jobs that went on", "file"),
    "CountsNoStall": ("jobs stuck", "file"),
    "CountsNoAttempt": ("counts other than planned", "file"),
    "MixesResults": ("waits that ended wrongly", "file"),
    "LosesClaims": ("jobs stuck", "file"),
    "EnqueuesAgain": ("jobs without exactly one outcome", "redis"),
    "CondemnsTheLiving": ("stalls that no death explains", "file"),
    "StartsEarly": ("jobs started early", "file"),
    "StagesTooFew": ("writes that are not stored whole and once", "redis"),
    "CommitsTheDiscarded": ("failed writes that brought jobs", "file"),
    "ExportsTooFew": ("ended jobs not archived just once", "redis"),
    "TellsTooFew": ("events missed or mixed up by their reader", "redis"),
    IGNORES_CLAIMS: ("outcomes of another than the last claim", "redis"),
}
"""By mutant: the rule that it breaks, and on which storage it is tried."""

MORE = {
    "CountsNoStall": ("--faults", "0"),
    "CondemnsTheLiving": ("--faults", "0", "--seconds", "8", *BUSY),
    IGNORES_CLAIMS: (
        "--jobs",
        "600",
        "--faults",
        "12",
        "--only",
        "half-open",
        "--seconds",
        "20",
        *BUSY,
    ),
}


@pytest.mark.mutants
@pytest.mark.timeout(LIMIT_S + 10)
@pytest.mark.parametrize("mutant", FOUND_BY)
def test_a_storage_that_is_wrong_is_found_out(mutant: str, tmp_path: Path) -> None:
    rule, storage = FOUND_BY[mutant]
    more = MORE.get(mutant, ("--faults", "0", *PLAIN))
    code, said = soak(tmp_path, "--storage", storage, "--mutant", mutant, *SMALL, *more)
    assert code == 1, said
    assert f"BAD  {rule} " in said


def test_every_wrong_storage_is_tried() -> None:
    assert FOUND_BY.keys() == {IGNORES_CLAIMS, *MUTANTS}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_storage_is_called_like_any_other(mutant: type[Mutant]) -> None:
    own = {name: verb for name, verb in vars(mutant).items() if not name.startswith("_")}
    assert own
    for name, verb in own.items():
        right = inspect.signature(getattr(Storage, name)).parameters
        assert inspect.signature(verb).parameters == right


def test_the_library_that_ignores_claims_is_made_of_the_present_one() -> None:
    assert library_that_ignores_claims().source != library().source
