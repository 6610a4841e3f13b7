"""The same program in other clothes gets the same verdict: no new error on a sound environment, no "passed" on a broken one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_hermes_env.contract.catalogue import find_rule
from pytest_hermes_env.contract.playing import contract_of
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.contract.verdict import Outcome, Verdict
from pytest_hermes_env.source import ClassSource, read_class
from pytest_hermes_env.source.finding import Severity

from .mutants import MUTANTS, Mutant
from .mutants.mutant import CLASSES
from .refactorings import TRANSFORMATIONS, Trees, refactor

Transformation = Callable[[Trees], None]

READABLE = tuple(mutant for mutant in MUTANTS if find_rule(mutant.rule).static is not None and mutant.rule != "HE111")

PLAYED = tuple(mutant for mutant in MUTANTS if find_rule(mutant.rule).dynamic is not None and not mutant.is_only_read)
"""The mutants that are played."""
STRIDE = 23
"""The distance of the mutants that refactorings are played with: one each; all with ``--all-rules``."""

SAMPLED = 40
"""One in so many mutants is tried with each refactoring, others with the next; all with ``--all-rules``."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try each refactoring on one of the sound environments, the next one on another, or each on all."""
    if metafunc.function is test_a_refactoring_brings_no_error:
        envs = tuple(CLASSES)
        tried = len(envs) if metafunc.config.getoption("all_rules") else 1
        rows = [
            pytest.param(transformation, envs[(number * tried + step) % len(envs)], id=transformation.__name__)
            for number, transformation in enumerate(TRANSFORMATIONS)
            for step in range(tried)
        ]
        metafunc.parametrize(("transformation", "env"), rows)


def source_of(mutant: Mutant, directory: Path, transformation: Transformation | None = None) -> ClassSource | None:
    """Write an environment, refactored, and return its class; None where there is none, or nothing to refactor."""
    directory.mkdir()
    file = Path(mutant.write(directory).rpartition(":")[0])
    if transformation is not None and not refactor(file.parent, transformation):
        return None
    return read_class(file, CLASSES[mutant.env])


def played(mutant: Mutant, directory: Path, transformation: Transformation) -> Outcome | None:
    """Return what rule and rollouts conclude of a refactored mutant; None where there is nothing to refactor.

    Where the refactoring makes the set-up itself fail, the rule about that is as good.
    """
    directory.mkdir()
    target = mutant.write(directory)
    if not refactor(Path(target.rpartition(":")[0]).parent, transformation):
        return None
    rules = (find_rule(mutant.rule), find_rule("HE206"))
    contract = contract_of(target, rules, timeout_s=120, server_type=mutant.mode)
    own, of_setup = (contract.result(rule).outcome for rule in rules)
    return of_setup if of_setup is Outcome.FAILED else own


def read(rule: Rule, source: ClassSource) -> Verdict:
    """Return what the source alone shows."""
    assert rule.static is not None
    return rule.static(source)


def errors_of(source: ClassSource) -> dict[str, list[str]]:
    """Return the errors that the source alone shows."""
    found: dict[str, list[str]] = {}
    for rule in ALL_RULES:
        findings = read(rule, source).findings if rule.static is not None else ()
        errors = [finding for finding in findings if rule.severity_of(finding) is Severity.ERROR]
        if errors:
            found[rule.id] = [f"{Path(finding.path).name}:{finding.line}: {finding.message}" for finding in errors]
    return found


def missed(mutants: tuple[Mutant, ...], transformation: Transformation, directory: Path) -> list[str]:
    """Return the mutants that the source shows only as long as they are not refactored."""
    found = []
    for mutant in mutants:
        rule = find_rule(mutant.rule)
        plain = source_of(mutant, directory / "plain" / mutant.id)
        if plain is None or read(rule, plain).outcome is not Outcome.FAILED:
            continue
        changed = source_of(mutant, directory / "changed" / mutant.id, transformation)
        if changed is not None and read(rule, changed).outcome is Outcome.PASSED:
            found.append(mutant.id)
    return found


def test_a_refactoring_brings_no_error(
    transformation: Transformation, env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sound environment stays sound, whatever it wears."""
    monkeypatch.chdir(tmp_path)  # in this repository the layer's own files would be parsed each time, too
    source = source_of(Mutant(rule="", name=transformation.__name__, env=env, changes=()), tmp_path / env, transformation)

    assert source is None or errors_of(source) == {}


@pytest.mark.parametrize("number", range(len(TRANSFORMATIONS)), ids=lambda number: TRANSFORMATIONS[number].__name__)
def test_a_refactoring_hides_no_mutant(number: int, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """What the source showed it shows, or says that it cannot decide."""
    mutants = READABLE if pytestconfig.getoption("all_rules") else READABLE[number % SAMPLED :: SAMPLED]
    (tmp_path / "plain").mkdir()
    (tmp_path / "changed").mkdir()

    assert missed(mutants, TRANSFORMATIONS[number], tmp_path) == []


@pytest.mark.parametrize("number", range(len(TRANSFORMATIONS)), ids=lambda number: TRANSFORMATIONS[number].__name__)
def test_a_refactoring_hides_no_mutant_from_rollouts(number: int, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """What rule and rollouts together found they find in other clothes."""
    mutants = PLAYED if pytestconfig.getoption("all_rules") else (PLAYED[number * STRIDE % len(PLAYED)],)

    found = {mutant.id: played(mutant, tmp_path / mutant.id, TRANSFORMATIONS[number]) for mutant in mutants}

    assert {mutant: outcome for mutant, outcome in found.items() if outcome not in {Outcome.FAILED, None}} == {}
