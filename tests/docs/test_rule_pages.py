"""docs/rules is generated from the rules: the text of a rule appears unchanged, and its code is formatted as code."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES

GENERATOR = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "rule_pages.py"))
COMMAND, pages, write_pages = GENERATOR["COMMAND"], GENERATOR["pages"], GENERATOR["write_pages"]
FOLDER = Path(__file__).parents[2] / "docs" / "rules"
SPAN = re.compile(r"`[^`]+`")
CODE = re.compile(
    r"\b\w+\.(?:\w+\.)*\w+\(|\b(?:self|ctx|os|sys|config|result)\.\w+|\b[a-z]\w*_\w+\b|\b\w+\(\)|\b__\w+__\b|[=!<>]=|\[\.\.\.\]"
)
"""Words that are always code: attributes, calls, names with an underscore, operators."""


def folded(text: str) -> str:
    """Return a text with its lines joined."""
    return " ".join(text.split())


def test_the_pages_are_up_to_date():
    """Every rule has a page, every page has a rule, and all pages are equal to the generator's output."""
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    written = dict(pages())
    stale = sorted(name for name in {*kept, *written} if kept.get(name) != written.get(name))

    assert not stale, f"docs/rules differs from the rules in {', '.join(stale)}: run `{COMMAND}`"


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.id)
def test_a_page_copies_the_docstring_of_its_rule(rule):
    """The text is neither capitalised nor reworded: the test reads the parts from the docstring, not through the generator."""
    page = folded((FOLDER / f"{rule.id}.md").read_text(encoding="utf-8"))
    head, *parts = re.split(r"^(?:What|Why|Fix|Source): ", rule.doc, flags=re.MULTILINE)
    texts = [folded(head.split("\n", 1)[1]), *map(folded, parts)]

    assert len(texts) == 5
    assert [text for text in texts if text not in page] == []


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.id)
def test_sentences_begin_in_upper_case_and_code_is_set_as_code(rule):
    """A part begins with a capital letter, or with code in its own case; code in a sentence is always in backticks."""
    head, *parts = re.split(r"^(?:What|Why|Fix|Source): ", rule.doc, flags=re.MULTILINE)
    texts = [folded(head.split("\n", 1)[1]), *map(folded, parts)]
    named = ("atroposlib", "hermes", "run-api")  # proper names that are written in lower case

    assert [text for text in texts if not (text[0].isupper() or text[0] == "`" or text.startswith(named))] == []
    assert {text: found for text in texts if (found := CODE.findall(SPAN.sub("", text)))} == {}


def test_pages_without_a_rule_are_reported(tmp_path):
    """A page without a rule is reported, but not removed."""
    (tmp_path / "HE999.md").touch()

    assert write_pages(str(tmp_path)) == [
        f"{tmp_path}: {len(dict(pages()))} pages",
        f"{tmp_path}/HE999.md belongs to no rule: remove it",
    ]


def test_the_page_of_severities_has_each_rule_with_its_own():
    """One sentence says what a violation does: that of the rule's page."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "severities.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| HE")]

    assert [row[:2] for row in rows] == [[rule.id, rule.severity.value] for rule in ALL_RULES]
    assert all(len(row) == 3 and row[2] for row in rows)
    assert GENERATOR["severities_text"]() == text


def test_a_new_rule_gets_a_page_with_places_for_what_is_written_by_hand():
    """That is what a violation does, and the examples."""
    page = GENERATOR["page_text"](ALL_RULES[0], does="", examples=GENERATOR["_NEW_EXAMPLES"])

    assert "\n\n**What a violation does:**\n\n## What\n" in page
    assert "## Examples\n\nBad.\n\n```python\n```\n\nGood.\n\n```python\n```\n" in page
