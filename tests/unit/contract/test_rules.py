"""The catalogue itself: every rule has its file, its name and its four parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.contract import rules
from pytest_hermes_env.contract.rules import ALL_RULES

FOLDER = Path(rules.__file__).parent


def test_every_file_is_in_the_catalogue_in_the_order_of_ids():
    files = sorted(path.stem for path in FOLDER.glob("he*.py"))

    assert [f"{rule.id.lower()}_{rule.name.replace('-', '_')}" for rule in ALL_RULES] == files


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.label)
def test_a_rule_is_documented_under_its_own_name(rule):
    assert rule.doc.splitlines()[0] == f"{rule.id} {rule.name}"
    assert all(len(rule.section(title)) > 20 for title in ("What", "Why", "Fix", "Source"))
