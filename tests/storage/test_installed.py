"""Storages that other distributions bring: found by their scheme, used as ours are, or refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace import App, InvalidOption
from headrace.storage import open_storage
from headrace.storage.sqlite.storage import SqliteStorage
from tests.support.processes import ROOT
from tests.support.until import patience

CANARY = "S3CR3T"
MODULE = '''
"""A storage of somebody else's: it keeps its jobs where the path of the URL says."""

from urllib.parse import urlsplit

from headrace.storage import Storage, open_storage


def open_acme(url: str, *, allow_eviction: bool) -> Storage:
    return open_storage(f"file://{urlsplit(url).path}")


def open_old(url: str, *, allow_eviction: bool) -> Storage:
    from tests.storage.foreign import OldStorage

    return OldStorage(open_acme(url, allow_eviction=allow_eviction))


text = "no callable"
'''

Install = Callable[..., None]


def headrace(site: Path, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command for a storage of a distribution that is at ``site``."""
    clean = {name: value for name, value in os.environ.items() if "HEADRACE" not in name}
    return subprocess.run(
        [sys.executable, "-m", "headrace", *words, "--url", url],
        cwd=ROOT,
        env={**clean, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(60),
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


@pytest.fixture
def install(site: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return what puts a distribution on the path, with one entry point."""
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def install(name: str, scheme: str, value: str) -> None:
        metadata = site / f"{name.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[headrace.storages]\n{scheme} = {value}\n")
        module = value.partition(":")[0]
        if not module.startswith("missing"):
            (site / f"{module}.py").write_text(MODULE)
            monkeypatch.delitem(sys.modules, module, raising=False)

    return install


async def test_an_installed_scheme_opens_its_storage(install: Install, tmp_path: Path) -> None:
    install("acme-storage", "acme", "acme_one:open_acme")
    app = App(f"acme://host{tmp_path}/data", tenant="t1")

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    async with app:
        job = await add.enqueue(1, 2)
        assert (await job.status()).task == add.name
    storage = open_storage(f"file://{tmp_path}/data", tenant="t1")
    assert await storage.get("default", job.id) is not None
    await storage.aclose()


async def test_the_command_line_takes_an_installed_scheme(
    install: Install, site: Path, tmp_path: Path
) -> None:
    install("acme-storage", "acme", "acme_two:open_acme")
    url = f"acme://user:{CANARY}@host{tmp_path}/data"

    def run(*words: str) -> str:
        ran = headrace(site, url, *words)
        assert ran.returncode == 0
        assert CANARY not in ran.stdout + ran.stderr
        return ran.stdout

    run("enqueue", "add", "-q", "sums")
    assert "sums" in run("queue", "list")


@pytest.mark.parametrize(
    "words",
    [
        ("add", "one", "report", "-q", "reports", "--every", "30s"),
        ("list",),
        ("show", "one"),
        ("edit", "one", "--every", "60s"),
        ("delete", "one", "--yes"),
    ],
    ids=lambda words: words[0],
)
def test_the_command_line_says_of_a_storage_that_it_keeps_no_schedules(
    install: Install, site: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    install("old-storage", "old", "old_one:open_old")
    ran = headrace(site, f"old://host{tmp_path}/data", "schedule", *words)
    assert ran.returncode == 3
    assert "OldStorage keeps no schedules" in ran.stderr
    assert not (tmp_path / "data").exists()


async def test_the_password_of_an_installed_scheme_is_not_shown(
    install: Install, tmp_path: Path
) -> None:
    install("acme-storage", "acme", "acme_three:open_acme")
    app = App(f"acme://user:{CANARY}@host{tmp_path}/data")
    assert repr(app).startswith("<App at acme://host/")
    with pytest.raises(InvalidOption) as raised:
        App(f"acne://user:{CANARY}@host")
    for shown in (repr(app), str(raised.value), repr(raised.value)):
        assert CANARY not in shown


async def test_a_scheme_of_ours_stays_ours(install: Install) -> None:
    install("acme-storage", "memory", "missing_module:open_acme")
    storage = open_storage("memory://name")
    assert isinstance(storage, SqliteStorage)
    await storage.aclose()


def test_an_unknown_scheme_is_refused_with_all_that_are_known(install: Install) -> None:
    install("acme-storage", "acme", "acme_four:open_acme")
    install("other-storage", "memory", "acme_four:open_acme")
    with pytest.raises(InvalidOption, match=r"redis://.*, file://.*besides: acme://$"):
        open_storage("acne://host")


def test_no_scheme_is_none_of_an_entry_point(install: Install) -> None:
    with pytest.raises(InvalidOption, match="'host' is not valid"):
        open_storage("host")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("missing_module:open_acme", "ModuleNotFoundError"),
        ("acme_five:missing", "AttributeError"),
        ("acme_five:text", "is no callable"),
    ],
)
def test_a_broken_entry_point_is_refused_and_names_its_distribution(
    install: Install, value: str, why: str
) -> None:
    install("acme-storage", "acme", value)
    with pytest.raises(InvalidOption, match=f"of the distribution acme-storage .*{why}"):
        App("acme://host")


def test_two_distributions_of_one_scheme_are_refused_with_both_names(install: Install) -> None:
    install("acme-storage", "acme", "acme_six:open_acme")
    install("better-storage", "acme", "acme_six:open_acme")
    with pytest.raises(InvalidOption, match="acme-storage, better-storage; uninstall all but one"):
        open_storage("acme://host")


@pytest.mark.parametrize("tenant", ["", "a b", "a:b"])
def test_a_tenant_that_is_no_name_is_refused(tenant: str) -> None:
    with pytest.raises(InvalidOption, match="tenant"):
        open_storage("memory://", tenant=tenant)
