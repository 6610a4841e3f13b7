"""The hub is offline while a test is kept from the network, and as before afterwards."""

from __future__ import annotations

import os
import sys
from types import ModuleType

import pytest

from pytest_hermes_env.atropos.dataset_hub import hub_offline

NAMES = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")


class Library(ModuleType):
    """A library that reads the variables at its import, as huggingface_hub and datasets do."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.HF_HUB_OFFLINE = os.environ.get("HF_HUB_OFFLINE") == "1"
        self.HF_DATASETS_OFFLINE = os.environ.get("HF_DATASETS_OFFLINE", os.environ.get("HF_HUB_OFFLINE")) == "1"

    def seen(self) -> tuple[bool, bool]:
        """Return what the library believes."""
        return self.HF_HUB_OFFLINE, self.HF_DATASETS_OFFLINE


def variables() -> list[str | None]:
    """Return the variables."""
    return [os.environ.get(name) for name in NAMES]


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_libraries_are_offline_for_as_long_as_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was loaded before, and one that is loaded meanwhile."""
    early = Library("datasets.config")
    monkeypatch.setitem(sys.modules, "datasets.config", early)
    monkeypatch.delitem(sys.modules, "huggingface_hub.constants", raising=False)
    with hub_offline():
        late = Library("huggingface_hub.constants")
        monkeypatch.setitem(sys.modules, "huggingface_hub.constants", late)
        inside = (variables(), early.seen(), late.seen())

    assert inside == (["1", "1"], (True, True), (True, True))
    assert (variables(), early.seen(), late.HF_HUB_OFFLINE) == ([None, None], (False, False), False)


@pytest.mark.parametrize("value", ["0", "1"])
def test_a_run_that_chose_keeps_its_choice(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Whoever sets one of the variables is left alone."""
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    early = Library("datasets.config")
    monkeypatch.setitem(sys.modules, "datasets.config", early)
    with hub_offline():
        inside = (variables(), early.seen())

    assert inside == ([value, None], (value == "1", value == "1"))
    assert variables() == [value, None]
