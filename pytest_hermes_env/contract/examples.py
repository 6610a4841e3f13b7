"""The examples of a rule, which are written on its page, docs/rules/HEnnn.md, and read from there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_PAGES = (_PACKAGE / "docs" / "rules", _PACKAGE.parent / "docs" / "rules")
"""Where the pages are: in the installed package, or in the checkout."""
_SECTION = re.compile(r"^## Examples\n\n(.*?)\n(?=## )", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^(Bad|Good)\.(.*?)^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Example:
    """One block of code, the words above it, and whether the rule finds a violation in it."""

    rule_id: str
    is_bad: bool
    text: str
    code: str


def examples_text(page: str) -> str:
    """Return what a page has under ``## Examples``; empty if it has no such part."""
    found = _SECTION.search(page)
    return found[1].rstrip() if found else ""


def examples_of(rule_id: str) -> tuple[Example, ...]:
    """Return the examples of a rule, in the order of its page; none when it has no page yet.

    Each is a block of Python below a sentence that begins with ``Bad.`` or ``Good.``: methods of an environment, or a whole file where
    the violation lies outside of methods.
    """
    page = next((path for folder in _PAGES if (path := folder / f"{rule_id}.md").is_file()), None)
    found = _EXAMPLE.findall(examples_text(page.read_text(encoding="utf-8"))) if page is not None else ()
    return tuple(
        Example(rule_id=rule_id, is_bad=word == "Bad", text=" ".join(text.split()), code=code) for word, text, code in found
    )
