"""Proof that the rules work: the violated rule catches each mutant of a sound environment, and no other rule fails the run.

Each run tries every sound environment on a server type, one played mutant of every rule, all that are only read, and one of every
rule with a half that reads the source; ``--all-rules`` (`tox run -e matrix`) tries all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_hermes_env.contract.check import check_paths
from pytest_hermes_env.contract.examples import examples_of
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.rules import ALL_RULES, find_rule
from pytest_hermes_env.contract.rules.he404_reward_is_repeatable import NEEDS_A_CASE
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.source import read_class
from pytest_hermes_env.source.finding import Severity

from .mutants import LOOKALIKES, MUTANTS, REFACTORINGS, Mutant
from .mutants.mutant import CLASSES, GRADE, SOUND
from .mutants.of_token_mode import SPLIT

BENCHMARK = "capitals_exam"
SERVER_TYPES = ("openai", "vllm", "sglang")
SOUND_RUNS = tuple((env, server_type) for env in CLASSES for server_type in SERVER_TYPES)
SOUND_SAMPLE = tuple(
    (env, server_type)
    for number, env in enumerate(CLASSES)
    for server_type in SERVER_TYPES
    if env == BENCHMARK or server_type == SERVER_TYPES[number % len(SERVER_TYPES)]
)
"""Each sound environment on one server type, the one that exercises every rule on all."""

FIRST_OF_RULES = {mutant.rule: mutant for mutant in reversed(MUTANTS) if not mutant.is_only_read}
SAMPLE = tuple(mutant for mutant in MUTANTS if mutant.is_only_read or mutant is FIRST_OF_RULES[mutant.rule])
"""The mutants that each run tries."""
WITH_ALL_RULES = frozenset(FIRST_OF_RULES[rule] for rule in sorted(FIRST_OF_RULES)[::16])
"""One mutant of every sixteenth rule; each run checks it with all rules."""
READ = tuple(rule for rule in ALL_RULES if rule.static is not None and rule.id != "HE111")
"""The rules with a half that reads the source; what does not parse has no class to read."""

HISTORY = """        self.paid = [*getattr(self, "paid", ()), reward]
        return reward * 0.99 ** sum(map(bool, self.paid[:-1]))
"""
"""The end of a reward that pays less each time."""

TIMEOUT_S = 120
"""Timeout of each scenario, long enough that none times out on a busy machine."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try the sample, or all sound environments and mutants."""
    if metafunc.function is test_a_sound_environment_is_clean:
        metafunc.parametrize(("env", "server_type"), SOUND_RUNS if metafunc.config.getoption("all_rules") else SOUND_SAMPLE)
    if metafunc.function is test_a_mutant_is_caught_only_by_its_rule:
        mutants = MUTANTS if metafunc.config.getoption("all_rules") else SAMPLE
        metafunc.parametrize("mutant", mutants, ids=lambda mutant: mutant.id)


def judged(target: str, server_type: str = "openai", rules: Sequence[Rule] = ALL_RULES) -> dict[str, Verdict]:
    """Return the results of rules on an environment; only the scenarios that these read are played."""
    contract = contract_of(target, rules, timeout_s=TIMEOUT_S, server_type=server_type)
    return {rule.id: contract.result(rule) for rule in rules}


def read_only(target: str) -> dict[str, Verdict]:
    """Return the results of every rule on the source alone."""
    report = check_paths([str(Path(target.rpartition(":")[0]).parent)], allows_none=True)
    found = {problem.id: Verdict(outcome=Outcome.FAILED, note="") for problem in report.problems}
    for ledger in report.ledgers:
        for entry in ledger.entries:
            shown = Verdict(outcome=entry.outcome, note=entry.note, findings=entry.findings)
            found.setdefault(entry.rule.id, shown)
    return found


def broken(results: dict[str, Verdict], *severities: Severity) -> dict[str, tuple[str, ...]]:
    """Return the findings of the broken rules of these severities that would fail a run, or draw a warning."""
    return {
        rule: tuple(f"{finding.line}: {finding.message}" for finding in result.findings)
        for rule, result in results.items()
        if result.outcome is Outcome.FAILED
        and any(find_rule(rule).severity_of(finding) in severities for finding in result.findings)
    }


def test_a_sound_environment_is_clean(env: str, server_type: str) -> None:
    """No rule has a finding on a sound environment, not even a warning."""
    results = judged(f"{SOUND / env}.py:{CLASSES[env]}", server_type)

    unseen = [rule for rule, result in results.items() if result.outcome is Outcome.NOT_EXERCISED]
    assert not [rule for rule, result in results.items() if "newer play" in result.note], (
        "a rule reads what it does not ask for"
    )
    assert (broken(results, *Severity), unseen if env == BENCHMARK else []) == ({}, [])


@pytest.mark.parametrize("mutant", REFACTORINGS, ids=lambda mutant: mutant.id)
def test_a_refactoring_is_clean(mutant: Mutant, tmp_path: Path) -> None:
    """The same program, written differently, gets the same verdict."""
    assert broken(judged(mutant.write(tmp_path)), *Severity) == {}


@pytest.mark.parametrize("mutant", LOOKALIKES, ids=lambda mutant: mutant.id)
def test_a_lookalike_is_no_finding(mutant: Mutant, tmp_path: Path) -> None:
    """A sound program that has what its rules look for, without the faults."""
    results = judged(mutant.write(tmp_path), rules=[find_rule(rule) for rule in mutant.rule.split()])

    assert broken(results, *Severity) == {}
    unseen = [rule for rule, result in results.items() if result.outcome is Outcome.NOT_EXERCISED]
    assert unseen == [] or not mutant.has_cases


@pytest.mark.parametrize("rule", READ, ids=lambda rule: rule.id)
def test_the_source_alone_shows_a_mutant(rule: Rule, tmp_path: Path) -> None:
    """Of each rule that reads the source, one at least."""
    assert rule.static is not None
    mutants = [mutant for mutant in MUTANTS if mutant.rule == rule.id]
    sources = (read_class(mutant.write(tmp_path).rpartition(":")[0], CLASSES[mutant.env]) for mutant in mutants)

    assert any(source is not None and rule.static(source).outcome is Outcome.FAILED for source in sources)


def test_a_mutant_is_caught_only_by_its_rule(mutant: Mutant, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Its rule finds it, at the marked lines and with the expected words; no other rule fails the run.

    Only the scenarios that its rule reads are played. The other rules are checked on the first mutant of every sixteenth rule, and
    with ``--all-rules`` on all.
    """
    asks_all = mutant in WITH_ALL_RULES or pytestconfig.getoption("all_rules")
    target = mutant.write(tmp_path)

    results = read_only(target) if mutant.is_only_read else judged(target, mutant.mode, asked(mutant, asks_all=asks_all))

    own = results.pop(mutant.rule)
    assert own.outcome is Outcome.FAILED, own
    assert not mutant.marked or sorted({finding.line for finding in own.findings}) == mutant.marked, own.findings
    assert not mutant.says or any(
        mutant.says in f"{finding.path} {finding.message} {finding.seen}" for finding in own.findings
    ), own.findings
    results.pop("HE412", None)  # whatever keeps good work from being paid, HE412 says that it was not
    for follow_up in mutant.follow_up.split():
        results.pop(follow_up, None)
    assert broken(results, *(Severity if mutant.draws_no_warning else [Severity.ERROR])) == {}


def asked(mutant: Mutant, *, asks_all: bool) -> list[Rule]:
    """Return the mutant's rule, or also every rule that must not have findings."""
    return [
        rule
        for rule in ALL_RULES
        if rule.id == mutant.rule or (asks_all and (mutant.draws_no_warning or rule.severity is Severity.ERROR))
    ]


@pytest.mark.parametrize(("policy", "rows"), [("keep", 4), ("reject", 2)])
def test_a_rollout_with_several_sequences_passes(policy: str, rows: int, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """A template that splits rollouts is no violation as long as every sequence is kept, or all are rejected on purpose."""
    old, new = SPLIT
    kept = Mutant(
        rule="HE505", name=policy, env="terminal_tasks", changes=((old, f"{new}            split_rollouts={policy!r},\n"),)
    )
    rules = [rule for rule in ALL_RULES if rule.id.startswith("HE5") or pytestconfig.getoption("all_rules")]
    contract = contract_of(kept.write(tmp_path), rules, timeout_s=TIMEOUT_S, server_type="vllm")

    results = {rule.id: contract.result(rule) for rule in rules}

    seen = len(contract.evidence.scenario("happy").group["tokens"])
    assert (seen, broken(results, Severity.ERROR)) == (rows, {})


def test_rewards_of_0_show_nothing_of_the_history(tmp_path: Path) -> None:
    """A reward that depends on what it paid before is the same each time where it pays nothing: only good work exercises HE404."""
    by_history = (GRADE, GRADE.replace("        return ", "        reward = ") + HISTORY)
    unpaid = Mutant(rule="HE404", name="by history", env="ledger_books", changes=(by_history,), has_cases=False)

    result = judged(unpaid.write(tmp_path), rules=[find_rule("HE404")])["HE404"]

    assert (result.outcome, result.note) == (Outcome.NOT_EXERCISED, NEEDS_A_CASE)


def test_every_rule_has_a_mutant() -> None:
    """A rule without mutants may detect nothing; names of mutants differ, because each has a directory of that name."""
    assert {mutant.rule for mutant in MUTANTS} == {rule.id for rule in ALL_RULES}
    assert len({mutant.id for mutant in MUTANTS}) == len(MUTANTS)


def test_every_rule_has_bad_and_good_examples() -> None:
    """Its page needs both."""
    kinds = {rule.id: {example.is_bad for example in examples_of(rule.id)} for rule in ALL_RULES}

    assert [rule for rule, kind in kinds.items() if kind != {True, False}] == []
