"""The formats and their renderers, which the generator of the pinned data uses too."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

DATA = Path(__file__).parents[2] / "data" / "vllm_parsers"


@pytest.fixture(scope="session")
def data() -> Path:
    """Where the pinned answers of vLLM's parsers are."""
    return DATA


@pytest.fixture(scope="session")
def formats() -> SimpleNamespace:
    """``formats.FORMATS`` by name, ``formats.Call``, ``formats.TOOLS``, ``formats.schema``."""
    names = {name: value for name, value in runpy.run_path(str(DATA / "formats.py")).items() if not name.startswith("_")}
    return SimpleNamespace(**{**names, "FORMATS": {form.name: form for form in names["FORMATS"]}})


@pytest.fixture(scope="session")
def read() -> Callable[..., tuple[str | None, list[tuple[str, str]]]]:
    """``read(parser, text, tools=None)`` gives the content, and the calls as (name, arguments)."""
    from environments.tool_call_parsers import get_parser

    def parse(name: str, text: str, tools: Any = None) -> tuple[str | None, list[tuple[str, str]]]:
        content, calls = get_parser(name).parse(text, tools)
        return content, [(call.function.name, call.function.arguments) for call in calls or []]

    return parse
