"""One class outside of a contract run: it is played when the first rule asks, in a process of its own. `check_rule` asks one rule."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterable
from typing import Any, Literal

from pytest_hermes_env.contract.judge.engine import ClassContract, refused
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.subject import subject_of, subjects_of
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.reports.text import finding_lines
from pytest_hermes_env.contract.rules import ALL_RULES, find_rule
from pytest_hermes_env.errors import NotExercised, RuleViolated
from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.play.evidence_file import read_evidence
from pytest_hermes_env.play.player import play_all
from pytest_hermes_env.play.player_process import play_twice
from pytest_hermes_env.play.scenario import Collection

SCENARIO_S = 60.0
"""How long one scenario may take, in seconds."""


def check_rule(
    env_class: type,
    rule: str,
    *,
    server_type: Literal["openai", "vllm", "sglang"] = "openai",
    sandbox: Literal["fake", "local"] = "fake",
    real_tools: Literal["never", "confined", "always"] = "confined",
) -> None:
    """Judge ``env_class`` by one rule, alone; only the scenarios that this rule reads are played.

    ``rule`` is an id or a name, such as "HE702". ``server_type`` "vllm" or "sglang" is token mode; ``sandbox`` and
    ``real_tools`` as the flags of these names. A rule that is not applicable to the class is kept. Waivers do not count here.

    Raises: a violation, of whatever severity → RuleViolated; the rule saw nothing, or is undecided → NotExercised; no such rule →
    UnknownRule; no environment → BadTarget.
    """
    __tracebackhide__ = True
    law = find_rule(rule)
    contract = contract_of(
        env_class, (law,), sandbox=sandbox, real_tools=real_tools, timeout_s=SCENARIO_S, server_type=server_type
    )
    result = contract.result(law)
    if result.outcome is Outcome.FAILED:
        findings = [dataclasses.replace(finding, reproduction="") for finding in result.findings]  # this test is one
        found = [line for number, item in enumerate(findings) for line in finding_lines(law, item, is_brief=number > 0)]
        raise RuleViolated("\n".join(found))
    if result.outcome not in {Outcome.PASSED, Outcome.NOT_APPLICABLE}:
        raise NotExercised(
            f"{law.id} {law.name} is {result.outcome} for {env_class.__name__}, which proves nothing: {result.note}"
        )


def contract_of(env_class: type | str, rules: Iterable[Rule] = ALL_RULES, **job: Any) -> ClassContract:
    """Return the contract of a class, or of the one that a target names, for these rules; ``job`` are fields of `Job`.

    Raises: no environment → BadTarget.
    """
    if isinstance(env_class, type):
        layer_of(env_class)
        subject = subject_of(env_class)
    else:
        (subject,) = subjects_of(env_class)
    chosen = tuple(rules)

    def play() -> Collection:
        with tempfile.TemporaryDirectory(prefix="hermes-env-evidence-") as directory:
            (played,) = read_evidence(*play_twice(play_all, [contract.job(chosen, **job)], directory))
        if played.refusal is not None:
            raise refused(*played.refusal)
        return played.collection

    contract = ClassContract(subject, play)
    return contract
