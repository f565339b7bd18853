"""Contract of ``join_release`` and ``leave_release``: which release of an app is the newest."""

from __future__ import annotations

from headrace.storage import RELEASE_LEFT_MS, RELEASES_TTL_MS, ReleaseStanding, Storage
from headrace.testing.contract.fixtures import Advance, Contract, Dump
from headrace.testing.contract.schedule_steps import NEIGHBOUR

APP = "shop"
ALIVE_MS = 15_000


async def join(storage: Storage, digest: str, app: str = APP) -> tuple[bool, str]:
    """Join, and return whether the release is the newest, and all that are alive."""
    standing = await storage.join_release(app, digest, alive_ms=ALIVE_MS)
    return standing.is_newest, " ".join(standing.alive)


class JoinReleaseContract(Contract):
    """Tests of ``join_release`` and ``leave_release``."""

    async def test_a_release_that_comes_first_is_the_newest(self, storage: Storage) -> None:
        assert await storage.join_release(APP, "v1", alive_ms=ALIVE_MS) == ReleaseStanding(
            is_newest=True, alive=["v1"], is_new=True
        )
        assert await join(storage, "v1") == (True, "v1")

    async def test_one_that_comes_later_is_newer(self, storage: Storage) -> None:
        await join(storage, "v1")
        assert await join(storage, "v0") == (True, "v0 v1")
        assert await join(storage, "v1") == (False, "v0 v1")
        assert await join(storage, "v2") == (True, "v0 v1 v2")
        assert await join(storage, "v0") == (False, "v0 v1 v2")

    async def test_joining_again_changes_no_order(self, storage: Storage, dump: Dump) -> None:
        await join(storage, "v1")
        await join(storage, "v2")
        before = await dump()
        for _ in range(3):
            assert await join(storage, "v1") == (False, "v1 v2")
            assert await join(storage, "v2") == (True, "v1 v2")
        assert await dump() == before

    async def test_a_release_is_alive_for_a_while_after_it_has_joined_last(
        self, storage: Storage, advance: Advance
    ) -> None:
        await join(storage, "v1")
        await join(storage, "v2")
        await advance(ALIVE_MS)
        assert await join(storage, "v1") == (False, "v1 v2")
        await advance(1)
        assert await join(storage, "v1") == (True, "v1")
        # By what the caller says.
        standing = await storage.join_release(APP, "v1", alive_ms=ALIVE_MS + 1)
        assert standing == ReleaseStanding(is_newest=True, alive=["v1", "v2"], is_new=False)

    async def test_after_a_roll_back_the_other_is_the_older(
        self, storage: Storage, advance: Advance
    ) -> None:
        await join(storage, "v1")
        await join(storage, "v2")
        await advance(ALIVE_MS + 1)
        assert await join(storage, "v1") == (True, "v1")
        assert await join(storage, "v2") == (False, "v1 v2")
        assert await join(storage, "v1") == (True, "v1 v2")
        await advance(ALIVE_MS + 1)
        assert await join(storage, "v2") == (True, "v2")

    async def test_a_roll_back_goes_over_all_that_are_not_alive(
        self, storage: Storage, advance: Advance
    ) -> None:
        for digest in ("v1", "v2", "v3"):
            await join(storage, digest)
        await advance(ALIVE_MS + 1)
        assert await join(storage, "v2") == (True, "v2")
        assert await join(storage, "v1") == (False, "v1 v2")
        assert await join(storage, "v3") == (False, "v1 v2 v3")
        assert await join(storage, "v4") == (True, "v1 v2 v3 v4")
        await advance(ALIVE_MS + 1)
        assert await join(storage, "v1") == (True, "v1")
        for digest in ("v2", "v3", "v4"):
            is_newest, _ = await join(storage, digest)
            assert not is_newest

    async def test_a_release_that_has_left_is_alive_for_a_moment_more(
        self, storage: Storage, advance: Advance
    ) -> None:
        await join(storage, "v1")
        await join(storage, "v2")
        await storage.leave_release(APP, "v2")
        await storage.leave_release(APP, "v2")
        await advance(RELEASE_LEFT_MS)
        await storage.leave_release(APP, "v2")
        assert await join(storage, "v1") == (False, "v1 v2")
        await advance(1)
        assert await join(storage, "v1") == (True, "v1")
        # A caller may ask for less.
        standing = await storage.join_release(APP, "v3", alive_ms=1)
        assert standing == ReleaseStanding(is_newest=True, alive=["v1", "v3"], is_new=True)
        await storage.leave_release(APP, "v3")
        await advance(2)
        assert (await storage.join_release(APP, "v1", alive_ms=1)).is_newest

    async def test_others_of_a_release_that_has_left_join_again_as_what_it_was(
        self, storage: Storage, advance: Advance
    ) -> None:
        await join(storage, "v1")
        await join(storage, "v2")
        await storage.leave_release(APP, "v2")
        assert await join(storage, "v2") == (True, "v1 v2")
        await storage.leave_release(APP, "v1")
        await advance(RELEASE_LEFT_MS + 1)
        assert await join(storage, "v1") == (False, "v1 v2")
        await storage.leave_release(APP, "v1")
        await advance(RELEASE_LEFT_MS + 1)
        assert await join(storage, "v2") == (True, "v2")
        assert await join(storage, "v1") == (False, "v1 v2")

    async def test_who_leaves_without_having_joined_leaves_no_trace(
        self, storage: Storage, dump: Dump
    ) -> None:
        before = await dump()
        await storage.leave_release(APP, "v1")
        assert await dump() == before
        await join(storage, "v2")
        assert await join(storage, "v1") == (True, "v1 v2")

    async def test_a_release_is_remembered_for_long_after_it_was_heard_of_last(
        self, storage: Storage, advance: Advance
    ) -> None:
        await join(storage, "v1")
        await storage.leave_release(APP, "v1")
        await advance(1)
        await join(storage, "v2")
        await advance(RELEASES_TTL_MS - 2)
        assert await join(storage, "v2") == (True, "v2")
        assert await join(storage, "v1") == (False, "v1 v2")
        await advance(RELEASES_TTL_MS)
        await join(storage, "v3")
        # Forgotten, so it comes for the first time.
        assert await join(storage, "v1") == (True, "v1 v3")

    async def test_a_release_is_new_until_it_has_joined(
        self, storage: Storage, advance: Advance
    ) -> None:
        async def is_new(app: str = APP) -> bool:
            return (await storage.join_release(app, "v1", alive_ms=ALIVE_MS)).is_new

        await storage.leave_release(APP, "v1")
        assert await is_new()
        assert await is_new("shop.eu")
        assert not await is_new()
        await storage.leave_release(APP, "v1")
        await advance(ALIVE_MS + 1)
        assert not await is_new()
        await advance(RELEASES_TTL_MS)
        assert await is_new()

    async def test_apps_have_releases_of_their_own(self, storage: Storage) -> None:
        await join(storage, "v1")
        assert await join(storage, "v2", "shop.eu") == (True, "v2")
        assert await join(storage, "v1", "shop.eu") == (True, "v1 v2")
        await storage.leave_release("shop.eu", "v1")
        assert await join(storage, "v1") == (True, "v1")

    async def test_tenants_have_releases_of_their_own(self, storage: Storage) -> None:
        await join(storage, "v1")
        neighbour = storage.for_tenant(NEIGHBOUR)
        assert await join(neighbour, "v2") == (True, "v2")
        assert await join(neighbour, "v1") == (True, "v1 v2")
        await neighbour.leave_release(APP, "v1")
        assert await join(storage, "v1") == (True, "v1")
        await neighbour.aclose()
