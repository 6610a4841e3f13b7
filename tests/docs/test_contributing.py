"""CONTRIBUTING.md and the recipe of a rule: each file and folder that they name exists."""

from __future__ import annotations

import re

import pytest

from .pages import ROOT

PAGES = ("CONTRIBUTING.md", "docs/how-to/write-a-rule.md")
BELOW = ("", "pytest_hermes_env", "docs", "tests", "pytest_hermes_env/sandbox/fake_tools")
"""Where a path begins: at the top, or in one of these."""
PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)+[\w.-]*|(?<![\w/.-])[\w-]+\.(?:py|md|yml|toml)(?!\w)")
MADE = re.compile(r"<|\*|NNN|_env\.py|^site/$")
"""What a recipe makes: its names have a placeholder."""


def named(page: str) -> list[str]:
    """The paths in the code and in the commands of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    spans = [span for span in re.findall(r"`([^`\n]+)`", text) if not MADE.search(span)]
    return sorted({path for span in spans if "..." not in span for path in PATH.findall(span)})


@pytest.mark.parametrize("page", PAGES)
def test_every_path_exists(page: str) -> None:
    """A path below a folder of BELOW, or the bare name of a file that a sentence has placed already."""
    files = {path.name for folder in ("tests", "pytest_hermes_env") for path in (ROOT / folder).rglob("*.*")}
    missing = [
        path
        for path in named(page)
        if not any((ROOT / folder / path).exists() for folder in BELOW) and not ("/" not in path and path in files)
    ]

    assert len(named(page)) > 3
    assert missing == []
