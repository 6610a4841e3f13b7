"""One rule on one class, from a test of one's own: `check_rule`."""

from __future__ import annotations

import dataclasses
from typing import Literal

from pytest_hermes_env.contract.catalogue import find_rule
from pytest_hermes_env.contract.playing import contract_of
from pytest_hermes_env.contract.reports.text import finding_lines
from pytest_hermes_env.contract.verdict import Outcome
from pytest_hermes_env.errors import NotExercised, RuleViolated

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
