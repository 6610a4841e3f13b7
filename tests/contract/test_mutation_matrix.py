"""Proof that rules bite: each breakage of a sound environment is caught by its own rule, and by no other that fails a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_hermes_env.contract.catalogue import find_rule
from pytest_hermes_env.contract.check import check_paths
from pytest_hermes_env.contract.engine import ClassContract, RuleResult
from pytest_hermes_env.contract.rule import Outcome, Rule
from pytest_hermes_env.contract.rule_examples import examples_of
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.layer import find_class
from pytest_hermes_env.source.finding import Severity

from .mutants import MUTANTS, Mutant
from .mutants.mutant import CLASSES, SOUND

BENCHMARK = "capitals_exam"
FEWEST = 5
"""Differently written breakages that each rule has, at least."""

SERVER_TYPES = ("openai", "vllm", "sglang")


def judged(target: str, server_type: str, rules: Sequence[Rule] = ALL_RULES) -> dict[str, RuleResult]:
    """Return the results of rules on an environment; only the scenarios that these ask for are played."""
    (env_class,) = find_class(target)
    contract = ClassContract(env_class, sandbox="fake", timeout_s=30, server_type=server_type, rules=lambda: rules)
    return {rule.id: contract.result(rule) for rule in rules}


def read_only(target: str) -> dict[str, RuleResult]:
    """Return what every rule concludes from the source alone."""
    report = check_paths([str(Path(target.rpartition(":")[0]).parent)], allows_none=True)
    found = {problem.id: RuleResult(rule=find_rule(problem.id), outcome=Outcome.FAILED, note="") for problem in report.problems}
    for ledger in report.ledgers:
        for entry in ledger.entries:
            shown = RuleResult(rule=entry.rule, outcome=entry.outcome, note=entry.note, findings=entry.findings)
            found.setdefault(entry.rule.id, shown)
    return found


def broken(results: dict[str, RuleResult], *severities: Severity) -> dict[str, tuple[str, ...]]:
    """Return the findings of the broken rules of these severities that would fail a run, or draw a warning."""
    return {
        rule: tuple(f"{finding.line}: {finding.message}" for finding in result.findings)
        for rule, result in results.items()
        if result.outcome is Outcome.FAILED
        and any(result.rule.severity_of(finding) in severities for finding in result.findings)
    }


@pytest.mark.parametrize("server_type", SERVER_TYPES)
@pytest.mark.parametrize("env", CLASSES)
def test_a_sound_environment_is_clean(env: str, server_type: str) -> None:
    """No rule has anything to say about a sound environment, not even as a warning; none waits for what a benchmark never does."""
    results = judged(f"{SOUND / env}.py:{CLASSES[env]}", server_type)

    unseen = [rule for rule, result in results.items() if result.outcome is Outcome.NOT_EXERCISED]
    assert (broken(results, *Severity), unseen if env == BENCHMARK else []) == ({}, [])


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_mutant_is_caught_by_its_rule_and_by_no_other(mutant: Mutant, tmp_path: Path) -> None:
    """The law that a breakage breaks is the only one that fails the run."""
    target = mutant.write(tmp_path)

    asked = [rule for rule in ALL_RULES if rule.severity is Severity.ERROR or rule.id == mutant.rule]
    results = read_only(target) if mutant.is_only_read else judged(target, mutant.mode, asked)

    others = {rule: findings for rule, findings in broken(results, Severity.ERROR).items() if rule != mutant.rule}
    assert results[mutant.rule].outcome is Outcome.FAILED, results[mutant.rule]
    assert others == {}


def test_every_rule_is_broken_in_five_ways_or_more() -> None:
    """A rule that nothing breaks may see nothing; names of mutants differ, so that each has its own place on disk."""
    counts = Counter(mutant.rule for mutant in MUTANTS)

    assert {rule.id for rule in ALL_RULES if counts[rule.id] < FEWEST} == set()
    assert counts.keys() <= {rule.id for rule in ALL_RULES}
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS)


def test_every_rule_has_bad_and_good_examples() -> None:
    """Its page shows both."""
    kinds = {rule.id: {example.is_bad for example in examples_of(rule.id)} for rule in ALL_RULES}

    assert [rule for rule, kind in kinds.items() if kind != {True, False}] == []


def test_the_readme_tells_the_figures() -> None:
    """The README counts what the matrix runs; that each is caught is what the test above holds."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

    assert f"{len(CLASSES)} environments, {len(MUTANTS)} breakages of {len(ALL_RULES)} rules" in readme
