"""A fresh in-memory machine, and a way to read its answers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_hermes_env.sandbox.confinement import UNCONFINED, Confinement
from pytest_hermes_env.sandbox.fake import FakeSandbox
from pytest_hermes_env.sandbox.local import LocalSandbox


@pytest.fixture
def sandbox() -> FakeSandbox:
    """An empty machine without real tools."""
    return FakeSandbox(real_tools="never")


@pytest.fixture
def machine(namespaces: None) -> Iterator[FakeSandbox]:
    """An empty machine with real bash."""
    sandbox = FakeSandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture(params=["confined", "unconfined"])
def confined_or_not(request: pytest.FixtureRequest) -> Iterator[LocalSandbox]:
    """An active local sandbox, with and without confinement."""
    if request.param == "confined":
        request.getfixturevalue("namespaces")
    with LocalSandbox(confinement=UNCONFINED if request.param == "unconfined" else None) as active:
        yield active


@pytest.fixture
def ask() -> Callable[..., dict[str, Any]]:
    """``ask(machine, name, **arguments)`` is one tool call's result as a dict."""

    def call(machine: FakeSandbox, name: str, **arguments: Any) -> dict[str, Any]:
        result = json.loads(machine.call(name, arguments))
        assert isinstance(result, dict)
        return result

    return call


def _runs(*words: str) -> bool:
    try:
        return subprocess.run(words, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skip a test where the machine gives its own programs no namespaces; where it does, confinement has to work."""
    if not _runs(
        "unshare", "--user", "--map-root-user", "--mount", "--net", "--ipc", "--pid", "--fork", "--mount-proc", "true"
    ):
        pytest.skip("this machine gives no namespaces")


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Skip a test where bubblewrap is not installed, or not allowed to work."""
    if not _runs("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"):
        pytest.skip("bubblewrap does not work here")


@pytest.fixture(params=["unshare", "bubblewrap"])
def confinement(request: pytest.FixtureRequest) -> Confinement:
    """Both ways to confine; one that this machine refuses to its own programs is skipped."""
    request.getfixturevalue("namespaces" if request.param == "unshare" else "bubblewrap")
    return Confinement(kind=request.param)
