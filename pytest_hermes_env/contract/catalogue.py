"""Finds rules by what a user calls them: an id, the beginning of ids, a name, or a name that a rule had before."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.errors import UnknownRule
from pytest_hermes_env.source.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILE_RULE = "HE111"


def find_rule(word: str) -> Rule:
    """Return the rule with the id or the name ``word``. Raises: UnknownRule."""
    for rule in ALL_RULES:
        if rule.is_called(word):
            return rule
    group = ", ".join(rule.id for rule in rules_named(word))
    hint = f" {word.upper()} begins the ids {group}." if group else nearest(word)
    raise UnknownRule(f"there is no rule {word!r}.{hint} `hermes-env rules` lists all {len(ALL_RULES)}.")


def rules_named(word: str) -> tuple[Rule, ...]:
    """Return the rules whose ids begin with ``word``, or that are called so; empty when there is none."""
    return tuple(rule for rule in ALL_RULES if rule.id.startswith(word.upper()) or rule.is_called(word))


def select_rules(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """Return the rules that the words of ``select`` name (by default all but opinions), without those of ``ignore``.

    Raises: UnknownRule when a word names no rule, or when HE111 itself is to be ignored.
    """
    for word in (*select, *ignore):
        if not rules_named(word):
            find_rule(word)
    if any(rule.id == _FILE_RULE and rule.is_called(word) for word in ignore for rule in rules_named(word)):
        raise UnknownRule(f"{_FILE_RULE} file-parses cannot be ignored: a file that does not parse cannot be checked")
    selected = {rule.id for word in select for rule in rules_named(word)}
    ignored = {rule.id for word in ignore for rule in rules_named(word)}
    return tuple(
        rule
        for rule in ALL_RULES
        if rule.id not in ignored and (rule.id in selected if select else rule.severity is not Severity.OPINION)
    )


def nearest(word: str) -> str:
    """Return " Did you mean HE301?" for a word that is close to an id or a name, else an empty text."""
    is_id = re.fullmatch(r"HE\d{2,}", word, re.IGNORECASE) is not None  # one digit wrong is another rule, one too many a slip
    rules = [rule for rule in ALL_RULES if not is_id or rule.id.startswith(word[:4].upper())]
    names = {name: rule.id for rule in rules for name in (rule.id.lower(), rule.name, *rule.former_names)}
    found = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    return f" Did you mean {names[found[0]]}?" if found else ""
