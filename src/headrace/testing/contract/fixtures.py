"""What every part of the contract is built on: the fixtures, and the check after each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

import pytest
import pytest_asyncio

from headrace.storage import Storage
from headrace.testing.contract.steps import ContractClient, ContractIncarnation
from headrace.testing.contract.subject import Subject


class Advance(Protocol):
    """Moves the storage's clock on and returns its time; 0 only tells the time."""

    async def __call__(self, ms: int) -> int: ...


class Dump(Protocol):
    """Returns all that is stored, to compare."""

    async def __call__(self, *, with_calls: bool = True) -> Mapping[str, Any]: ...


# The loop is said here, since a project's own default may be another one than its fixtures get.
@pytest.mark.asyncio(loop_scope="function")
class Contract:
    """Tests of a storage: every test gets an empty one, and leaves it in order.

    The fixtures are `storage`; `advance` and `dump`, as `Subject` describes them; `client`, which
    enqueues; `worker` and `other`, two registered incarnations.
    """

    @pytest.fixture
    def subject(self) -> Subject:
        """Return the storage under test, empty; each class of tests writes its own."""
        pytest.fail(f"{type(self).__name__} needs a fixture `subject` that returns a Subject")

    @pytest_asyncio.fixture(loop_scope="function")
    async def in_order(self, subject: Subject) -> AsyncIterator[Subject]:
        """Close the subject at the end, and see that what it stored is in order."""
        try:
            yield subject
            assert await subject.problems() == []
        finally:
            await subject.aclose()

    @pytest.fixture
    def storage(self, in_order: Subject) -> Storage:
        """Return the storage."""
        return in_order.storage

    @pytest.fixture
    def advance(self, in_order: Subject) -> Advance:
        """Return what moves its clock."""
        return in_order.advance

    @pytest.fixture
    def dump(self, in_order: Subject) -> Dump:
        """Return what tells all that is stored."""
        return in_order.dump

    @pytest.fixture
    def client(self, storage: Storage) -> ContractClient:
        """Return a client that enqueues."""
        return ContractClient(storage)

    @pytest_asyncio.fixture(loop_scope="function")
    async def worker(self, storage: Storage) -> ContractIncarnation:
        """Return a registered incarnation."""
        return await ContractIncarnation(storage, "w1").register()

    @pytest_asyncio.fixture(loop_scope="function")
    async def other(self, storage: Storage) -> ContractIncarnation:
        """Return a second registered incarnation."""
        return await ContractIncarnation(storage, "w2").register()
