"""What every verb of the port is, and that all who act on it agree."""

from __future__ import annotations

import inspect

from headrace.storage import VERBS, Verb
from headrace.storage.base import (
    Admin,
    Beater,
    BulkReader,
    BulkWriter,
    Consumer,
    Doctor,
    Inspector,
    Limiter,
    Maintenance,
    Producer,
    Scheduler,
    Striker,
)
from headrace.storage.redis.calls.call import command, nothing
from headrace.storage.verbs import reads, verbs_of, writes


def test_every_verb_says_what_it_is() -> None:
    jobs = (Producer, Consumer, Maintenance, Inspector, BulkWriter, BulkReader)
    roles = (*jobs, Admin, Limiter, Striker, Scheduler, Doctor)
    verbs = {
        name
        for role in roles
        for name, method in vars(role).items()
        if name[0] != "_" and inspect.iscoroutinefunction(method)
    }
    assert set(VERBS) == {*verbs, "beat"}
    assert callable(Beater.beat)


def test_what_reads_neither_grows_nor_must_last() -> None:
    reading = {name: verb for name, verb in VERBS.items() if verb.reads}
    assert "get" in reading
    assert set(reading.values()) == {Verb(reads=True, repeats=True)}


def test_what_a_method_says_is_found_by_its_name() -> None:
    class Role:
        @reads
        def look(self) -> None: ...

        @writes(grows=True)
        def add(self) -> None: ...

        def open(self) -> None: ...

    assert verbs_of(Role) == {
        "look": Verb(reads=True, repeats=True),
        "add": Verb(grows=True, is_durable=True),
    }


def test_a_call_is_repeated_where_its_verb_says_so() -> None:
    known = {name: command(name, "", "X", read=nothing).repeats for name in VERBS}
    assert known == {name: verb.repeats for name, verb in VERBS.items()}
    assert not command("load", "", "X", read=nothing).repeats
