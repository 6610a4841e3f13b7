"""Rules are found by id and by name."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.rules import ALL_RULES, find_rule, rules_named, select_rules
from pytest_hermes_env.errors import UnknownRule


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.id)
def test_every_name_of_a_rule_finds_it_and_nothing_else(rule):
    words = [rule.id, rule.id.lower(), rule.name, rule.label]

    assert [find_rule(word) for word in words] == [rule] * len(words)
    assert [rules_named(word) for word in words] == [(rule,)] * len(words)


@pytest.mark.parametrize("word", ["file-parses", "HE111", "he111-file-parses"])
def test_the_rule_about_files_that_do_not_parse_cannot_be_ignored(word):
    with pytest.raises(UnknownRule, match="HE111 file-parses cannot be ignored"):
        select_rules(ignore=[word])


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("ZZZZ", ""),
        ("XX101", ""),
        ("HE9", ""),
        ("HE4O1", " Did you mean HE401?"),
        ("wandb-log-accept-none", " Did you mean HE802?"),
    ],
)
def test_an_unknown_word_is_an_error_with_the_nearest_rule(word, hint):
    with pytest.raises(UnknownRule) as error:
        select_rules([word])

    assert str(error.value).startswith(f"there is no rule {word!r}.{hint} `hermes-env rules` lists all ")
