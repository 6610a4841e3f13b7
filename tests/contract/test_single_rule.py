"""check_rule: one rule on one class, in a user's test."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env import check_rule
from pytest_hermes_env.errors import NotExercised, RuleViolated, UnknownRule
from pytest_hermes_env.layer import find_class

from .mutants import MUTANTS
from .mutants.mutant import CLASSES, SOUND


def sound(name: str) -> type:
    """Return a sound environment."""
    (env_class,) = find_class(f"{SOUND / name}.py:{CLASSES[name]}")
    return env_class


def test_a_fulfilled_rule_passes() -> None:
    """A rule is found by its id and by its name; one that does not apply passes too."""
    check_rule(sound("ledger_books"), "HE802")
    check_rule(sound("ledger_books"), "awaits-super-wandb-log")
    check_rule(sound("capitals_exam"), "HE501")


def test_a_violation_is_raised_with_its_finding(tmp_path: Path) -> None:
    """The error is the finding as in reports, but without a test to paste, because this is one."""
    mutant = next(item for item in MUTANTS if item.rule == "HE802" and item.env == "ledger_books")
    (env_class,) = find_class(mutant.write(tmp_path))

    with pytest.raises(RuleViolated) as violated:
        check_rule(env_class, "HE802")

    lines = str(violated.value).splitlines()
    assert "HE802 wandb-log-accepts-none: " in lines[0]
    assert [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")][-2:] == ["line", "why"]
    assert "  try" not in str(violated.value)


def test_a_rule_that_was_not_exercised_fails(tmp_path: Path) -> None:
    """If the rule was not exercised, the test fails with the reason."""
    path = tmp_path / "cannot.py"
    text = (SOUND / "ledger_books.py").read_text(encoding="utf-8")
    path.write_text(text.replace("        split = len(BOOKS)", "        raise OSError('no books')\n        split = len(BOOKS)"))
    (env_class,) = find_class(f"{path}:LedgerEnv")

    with pytest.raises(NotExercised) as told:
        check_rule(env_class, "HE501")

    assert str(told.value) == (
        "HE501 masks-match-tokens is not exercised for LedgerEnv, which proves nothing: setup failed: OSError: no books"
    )


def test_an_unknown_rule_is_refused() -> None:
    """A misspelt rule must not pass."""
    with pytest.raises(UnknownRule, match="there is no rule 'HE999'"):
        check_rule(sound("ledger_books"), "HE999")
