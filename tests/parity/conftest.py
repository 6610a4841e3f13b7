"""The outcomes of hermes itself, with which every other sandbox is compared."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .cases import CASES, Case
from .worlds import hermes, outcomes


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], list[Any]]:
    """``real(case)``: the outcomes of plain hermes-agent, computed once per session."""

    @functools.cache
    def ask(name: str) -> list[Any]:
        (case,) = [one for one in CASES if one.name == name]
        return outcomes(case, hermes, Path(tmp_path_factory.mktemp("hermes")))

    return lambda case: ask(case.name)
