"""The same program in other clothes gets the same verdict: no error on a sound environment, no "passed" on a broken one.

Each run plays every refactoring of one mutant, and every third one of a sound environment, with all rules about errors;
``--all-rules`` (`tox run -e matrix`) plays all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules import ALL_RULES, find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.source.finding import Severity

from .mutants import MUTANTS, Mutant
from .mutants.mutant import CLASSES, mutant
from .refactorings import REFACTORINGS, Refactoring, refactor

PLAYED = tuple(mutant for mutant in MUTANTS if find_rule(mutant.rule).dynamic is not None and not mutant.is_only_read)
STRIDE = 23
"""The distance of the mutants that are played by default."""
SOUND_STRIDE = 3
"""The distance of the refactorings of which a sound environment is played by default."""
ONLY_READ = frozenset(rule.id for rule in ALL_RULES if rule.dynamic is None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pair each refactoring with a sound environment or a mutant, or with all of them."""
    plays_all = metafunc.config.getoption("all_rules")
    is_sound = metafunc.function is test_a_refactoring_brings_no_error
    subjects = tuple(mutant(env, "", env) for env in CLASSES) if is_sound else PLAYED
    metafunc.parametrize(
        ("refactoring", "subject"),
        [
            pytest.param(refactoring, subject, id=f"{refactoring.__name__}-{subject.id}")
            for number, refactoring in enumerate(REFACTORINGS)
            if plays_all or not is_sound or number % SOUND_STRIDE == 0
            for subject in (subjects if plays_all else [subjects[(number * STRIDE - 1) % len(subjects)]])
        ],
    )


def refactored(subject: Mutant, refactoring: Refactoring, directory: Path) -> str:
    """Write an environment in other clothes, and return it as a target."""
    target = subject.write(directory)
    if not refactor(Path(target.rpartition(":")[0]).parent, refactoring):
        pytest.skip("there is nothing to refactor")
    return target


def is_seen_in_rollouts(subject: Mutant, directory: Path) -> bool:
    """Return whether rollouts show the mutant as it is written; the law does not hold for what a linter alone sees."""
    plain = directory / "plain"
    plain.mkdir()
    rule = find_rule(subject.rule)
    contract = contract_of(subject.write(plain), [rule], timeout_s=120, server_type=subject.mode)
    return rule.dynamic is not None and rule.dynamic(contract.evidence).outcome is Outcome.FAILED


def test_a_refactoring_brings_no_error(refactoring: Refactoring, subject: Mutant, tmp_path: Path) -> None:
    """A sound environment stays sound; rules that only read the source are linters, which see what people write."""
    rules = [rule for rule in ALL_RULES if rule.severity is Severity.ERROR and rule.id not in ONLY_READ]

    contract = contract_of(refactored(subject, refactoring, tmp_path), rules, timeout_s=120)

    assert [(rule.id, finding.message) for rule in rules for finding in contract.result(rule).findings] == []


def test_a_refactoring_hides_no_mutant(refactoring: Refactoring, subject: Mutant, tmp_path: Path) -> None:
    """The rule finds it, or the rule about the set-up, where the refactoring makes that fail."""
    rules = [find_rule(subject.rule), find_rule("HE206")]

    contract = contract_of(refactored(subject, refactoring, tmp_path), rules, timeout_s=120, server_type=subject.mode)

    outcomes = {contract.result(rule).outcome for rule in rules}
    if Outcome.FAILED not in outcomes and not is_seen_in_rollouts(subject, tmp_path):
        pytest.skip("only its source shows it")
    assert Outcome.FAILED in outcomes
