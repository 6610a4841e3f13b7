"""Rules are found by id, by name, and by the names that they had before."""

from __future__ import annotations

import pytest

from pytest_hermes_env.cli import main
from pytest_hermes_env.contract.ledger.settings import settings_for
from pytest_hermes_env.contract.rules import ALL_RULES, find_rule, former_labels, rules_named, select_rules
from pytest_hermes_env.errors import UnknownRule

RENAMED = {
    "rollouts-do-not-meet": "HE603",
    "nothing-is-left": "HE606",
    "takes-no-metrics": "HE802",
    "sampling-is-told": "HE509",
}


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.id)
def test_every_name_of_a_rule_finds_it_and_nothing_else(rule):
    former = [name for name, rule_id in RENAMED.items() if rule_id == rule.id]
    words = [rule.id, rule.id.lower(), rule.name, rule.label, *former, *former_labels(rule)]

    assert [find_rule(word) for word in words] == [rule] * len(words)
    assert [rules_named(word) for word in words] == [(rule,)] * len(words)


@pytest.mark.parametrize(("name", "rule_id"), RENAMED.items())
def test_a_former_name_selects_and_ignores(name, rule_id):
    assert [rule.id for rule in select_rules([name])] == [rule_id]
    assert rule_id not in [rule.id for rule in select_rules(ignore=[name])]


@pytest.mark.parametrize(("name", "rule_id"), RENAMED.items())
def test_a_former_name_holds_in_pyproject_toml(tmp_path, name, rule_id):
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.hermes-env]\nselect = '{name}'\nignore = ['{name}']\n"
        f"[[tool.hermes-env.waivers]]\npaths = ['a.py']\nrules = ['{name}']\nreason = 'why'\n",
        encoding="utf-8",
    )

    settings = settings_for(str(tmp_path))

    assert (settings.select, settings.ignore, settings.waivers[0].rules) == ((name,), (name,), (rule_id,))


@pytest.mark.parametrize(("name", "rule_id"), RENAMED.items())
def test_a_former_name_is_explained(capsys, name, rule_id):
    assert main(["explain", name]) == 0
    assert capsys.readouterr().out.startswith(f"{find_rule(rule_id).id} {find_rule(rule_id).name} (")


@pytest.mark.parametrize("word", ["file-parses", "HE111", "he111-file-parses"])
def test_the_rule_about_files_that_do_not_parse_cannot_be_ignored(word):
    with pytest.raises(UnknownRule, match="HE111 file-parses cannot be ignored"):
        select_rules(ignore=[word])


@pytest.mark.parametrize(("word", "hint"), [("ZZZZ", ""), ("takes-no-metric", " Did you mean HE802?")])
def test_an_unknown_word_is_an_error_with_the_nearest_rule(word, hint):
    with pytest.raises(UnknownRule) as error:
        select_rules([word])

    assert str(error.value).startswith(f"there is no rule {word!r}.{hint} `hermes-env rules` lists all ")
