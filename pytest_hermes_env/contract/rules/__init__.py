"""Every rule of the contract, one file each, in the order of their ids; and how to find one by what a user calls it.

This folder is the catalogue: the name of a file is the id and the name of its rule. A file is imported when more is asked.
"""

from __future__ import annotations

import difflib
import pkgutil
import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, cast

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.errors import UnknownRule

__all__ = ["ALL_RULES", "find_rule", "nearest", "rule_words", "rules_named", "select_rules"]


class _ListedRule:
    """A `Rule` by the name of its file, which is imported when more than id, name and label is asked."""

    def __init__(self, file: str) -> None:
        self._file = file
        number, _, name = file.partition("_")
        self.id, self.name = number.upper(), name.replace("_", "-")
        self.label = f"{self.id}-{self.name}"

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(f"{__name__}.{self._file}").RULE, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return find_rule, (self.id,)


_FILE = re.compile(r"he\d{3}_\w+")
ALL_RULES = tuple(
    cast("Rule", _ListedRule(module.name)) for module in pkgutil.iter_modules(__path__) if _FILE.fullmatch(module.name)
)

_FILE_RULE = "HE111"


def find_rule(word: str) -> Rule:
    """Return the rule with the id or the name ``word``. Raises: UnknownRule."""
    for rule in ALL_RULES:
        if word.lower() in _names(rule):
            return rule
    group = ", ".join(rule.id for rule in rules_named(word))
    hint = f" {word.upper()} begins the ids {group}." if group else nearest(word)
    raise UnknownRule(f"there is no rule {word!r}.{hint} `hermes-env rules` lists all {len(ALL_RULES)}.")


def rules_named(word: str) -> tuple[Rule, ...]:
    """Return the rules whose ids begin with ``word``, or that are called so; empty when there is none."""
    return tuple(rule for rule in ALL_RULES if rule.id.startswith(word.upper()) or word.lower() in _names(rule))


def select_rules(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """Return the rules that the words of ``select`` name (by default all), without those of ``ignore``.

    Raises: UnknownRule when a word names no rule, or when HE111 itself is to be ignored.
    """
    for word in (*select, *ignore):
        if not rules_named(word):
            find_rule(word)
    if any(word.lower() in _names(rule) for word in ignore for rule in rules_named(word) if rule.id == _FILE_RULE):
        raise UnknownRule(f"{_FILE_RULE} file-parses cannot be ignored: a file that does not parse cannot be checked")
    selected = {rule.id for word in select for rule in rules_named(word)}
    ignored = {rule.id for word in ignore for rule in rules_named(word)}
    return tuple(rule for rule in ALL_RULES if rule.id not in ignored and (rule.id in selected or not select))


def rule_words(values: Iterable[str]) -> list[str]:
    """Return the words of options that may be repeated and that hold several words each."""
    return [word.strip() for value in values for word in value.split(",") if word.strip()]


def nearest(word: str) -> str:
    """Return " Did you mean HE301?" for a word that is close to an id or a name, else an empty text."""
    if re.fullmatch(r"HE[0-9OIl]{3}", word, re.IGNORECASE) and not word[2:].isdigit():
        word = f"HE{word[2:].translate(str.maketrans('OoIl', '0011'))}"
        if any(rule.id == word for rule in ALL_RULES):
            return f" Did you mean {word}?"
    is_id = re.fullmatch(r"HE\d+", word, re.IGNORECASE) is not None  # one digit wrong is another rule, one too many a slip
    rules = [rule for rule in ALL_RULES if not is_id or rule.id.startswith(word[:4].upper())]
    names = {name: rule.id for rule in rules for name in _names(rule)}
    found = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.7)
    return f" Did you mean {names[found[0]]}?" if found else ""


def _names(rule: Rule) -> frozenset[str]:
    """Return what a rule is called, in small letters: its id, its name and its label."""
    return frozenset([rule.id.lower(), rule.name, rule.label.lower()])
