"""The pages of the documentation and their blocks of code, for the tests of this folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "rules"))
"""All pages but those of the rules, which are written from the rules and their examples; both have tests of their own."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of code: the page, its number there, its language and its text."""

    page: str
    number: int
    language: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.page}-{self.number}"


def blocks_of(page: Path) -> list[Block]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [Block(page=page.stem, number=number, language=kind, text=text) for number, (kind, text) in enumerate(found, 1)]


BLOCKS = tuple(block for page in PAGES for block in blocks_of(page))


def in_language(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def on_page(stem: str, language: str) -> list[str]:
    """The texts of one page in one language; the page is named by the end of its path, such as ``how-to/live``."""
    (page,) = [page for page in PAGES if page.with_suffix("").as_posix().endswith(f"/{stem}")]
    return [block.text for block in blocks_of(page) if block.language == language]
