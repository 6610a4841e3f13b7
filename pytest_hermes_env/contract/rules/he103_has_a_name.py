"""HE103 has-a-name
An environment has its own name.

What: `name` is a non-empty string other than the layer's "hermes-agent", in the class or in an environment that it
inherits from.

Why: Atropos names evaluations, wandb runs and saved files after it. Two environments with the base's name write into
each other's results, and the curves cannot be distinguished.

Fix: Set `name = "my-environment"` in the class body.

Source: `environments.hermes_base_env`, `HermesAgentBaseEnv.name`; atroposlib 0.4.0, `envs/base.py`, `evaluate_log` and
`register_env`.
"""

from __future__ import annotations

import ast

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.class_record import COMPUTED
from pytest_hermes_env.source import UNKNOWN, ClassKind, ClassSource, constant_value, finding_at, reach_of

_OF_THE_BASE = "hermes-agent"


def static(source: ClassSource) -> Verdict:
    """Look at the class-level value of name, and at what the constructor sets: it is one line, which a linter sees at once."""
    given = source.attribute("name")
    if given is None:
        return _without_value(source)
    owner, node = given
    value = constant_value(node, owner.module)
    if value is UNKNOWN:
        return Verdict.undecided("name is computed at run time")
    if fault := _fault(value):
        return Verdict.failed([finding_at(owner, node, fault)])
    return Verdict.passed(f"the name is {value!r}")


def _without_value(source: ClassSource) -> Verdict:
    if "name" in source.methods:
        return Verdict.undecided("name is computed by a property")
    nodes = (node for function in reach_of(source).functions("__init__") for node in function.nodes)
    if any(isinstance(node, ast.Attribute) and node.attr == "name" and isinstance(node.ctx, ast.Store) for node in nodes):
        return Verdict.passed("the constructor sets name")
    if source.unreadable:
        return Verdict.undecided(f"name may come from {source.unreadable[0]}, which cannot be read")
    default = None if source.class_kind is ClassKind.ATROPOS else _OF_THE_BASE
    return Verdict.failed(
        [finding_at(source, source.node, f"{source.name} sets no name, so it gets the default name {default!r}")]
    )


def _fault(value: object) -> str:
    if not isinstance(value, str):
        return f"name is {value!r}; it must be a string"
    if not value.strip():
        return "name is empty"
    return f"name is {value!r}, which is the base class's default" if value == _OF_THE_BASE else ""


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the name that the class really has."""
    value, inherited = evidence.cls.title, evidence.cls.base_title
    if value == COMPUTED:
        return Verdict.passed("name is a property")
    fault = _fault(value)
    if not fault and value == inherited:
        fault = f"name is {value!r}, which is the base class's default"
    if not fault:
        return Verdict.passed(f"the name is {value!r}")
    return Verdict.failed([evidence.finding(f"{evidence.cls.name}: {fault}")])


RULE = Rule(doc=__doc__, severity=Severity.WARNING, static=static, dynamic=dynamic, holds_for_base_env=True)
