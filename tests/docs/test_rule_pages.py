"""docs/rules is written from the rules and says what they say."""

from __future__ import annotations

from pathlib import Path

from pytest_hermes_env.contract.rule_pages import COMMAND, main, pages

FOLDER = Path(__file__).parents[2] / "docs" / "rules"


def test_the_pages_say_what_the_rules_say():
    """Every rule has its page, no page is without its rule, and all are as they would be written today."""
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    written = dict(pages())
    stale = sorted(name for name in {*kept, *written} if kept.get(name) != written.get(name))

    assert not stale, f"docs/rules differs from the rules in {', '.join(stale)}: run `{COMMAND}`"


def test_writing_tells_of_pages_without_a_rule(tmp_path, capsys):
    """A page that no rule has is named, and left to its owner."""
    (tmp_path / "HE999.md").touch()

    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        f"{tmp_path}: {len(dict(pages()))} pages\n{tmp_path}/HE999.md belongs to no rule: remove it\n"
    )
