"""The catalogue itself: every rule has its file, its name and its four parts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pytest_hermes_env.contract import rules
from pytest_hermes_env.contract.rules import ALL_RULES

FOLDER = Path(rules.__file__).parent
RULES_MAY_IMPORT = {
    "pytest_hermes_env.contract.broad_handlers",
    "pytest_hermes_env.contract.item_keys",
    "pytest_hermes_env.contract.message_parts",
    "pytest_hermes_env.contract.evidence",
    "pytest_hermes_env.contract.process_dependence",
    "pytest_hermes_env.contract.replaced_methods",
    "pytest_hermes_env.contract.rule",
    "pytest_hermes_env.contract.same_item",
    "pytest_hermes_env.contract.scored_data",
    "pytest_hermes_env.contract.verdict",
    "pytest_hermes_env.redaction.key_shapes",
    "pytest_hermes_env.play.buffers",
    "pytest_hermes_env.play.cases.values",
    "pytest_hermes_env.play.class_record",
    "pytest_hermes_env.play.codec",
    "pytest_hermes_env.play.journal",
    "pytest_hermes_env.play.probing.record",
    "pytest_hermes_env.play.scenario",
    "pytest_hermes_env.play.unavailable",
    "pytest_hermes_env.source",
    "pytest_hermes_env.source.finding",
}
"""Import-linter holds what these modules import in turn; no engine is among it."""


def test_every_file_is_in_the_catalogue_in_the_order_of_ids():
    files = sorted(path.stem for path in FOLDER.glob("he*.py"))

    assert [f"{rule.id.lower()}_{rule.name.replace('-', '_')}" for rule in ALL_RULES] == files


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.label)
def test_a_rule_is_documented_under_its_own_name(rule):
    assert rule.doc.splitlines()[0] == f"{rule.id} {rule.name}"
    assert all(len(rule.section(title)) > 20 for title in ("What", "Why", "Fix", "Source"))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("he*.py")), ids=lambda path: path.stem)
def test_a_rule_imports_only_what_a_rule_may_see(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}

    assert {name for name in modules if name.startswith("pytest_hermes_env")} <= RULES_MAY_IMPORT
