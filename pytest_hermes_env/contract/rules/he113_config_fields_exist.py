"""HE113 config-fields-exist
Every field that `config_init` sets is one that the configuration class declares.

What: Each keyword of a configuration that `config_init` makes is a field of its class: one of Atropos, of the layer, or
of the class's own.

Why: The models of Atropos ignore what they do not know. `groupsize=4` raises nothing, is logged nowhere, and the run
trains with the default.

Fix: Write the name of the field as the class declares it, or declare the field.

Source: atroposlib 0.4.0, `envs/base.py`, `BaseEnvConfig`, whose pydantic settings are the default `extra="ignore"`.
"""

from __future__ import annotations

import ast
import difflib

from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.source import (
    Call,
    ClassSource,
    Kind,
    config_calls,
    config_class,
    config_fields,
    data_flow,
    finding_at,
    installed_config_fields,
)
from pytest_hermes_env.source.finding import Severity

_KNOWN_BASES = frozenset({"HermesAgentEnvConfig", "BaseEnvConfig", "BaseModel"})


def static(source: ClassSource) -> Verdict:
    """Compare the keywords of each configuration with the fields of its class."""
    calls = list(config_calls(data_flow(source).reached("config_init")))
    if not calls:
        return Verdict.undecided("config_init makes no configuration that can be seen")
    if not installed_config_fields():
        return Verdict.undecided("Atropos is not installed here: its fields are not known")
    findings, doubts = [], []
    for call in calls:
        known = _fields(source, call)
        if known is None:
            doubts.append(f"line {call.node.lineno}: the fields of the configuration's class cannot all be read")
            continue
        doubts += [f"line {call.node.lineno}: fields are computed" for word in call.node.keywords if word.arg is None]
        for word in call.node.keywords:
            if word.arg is not None and word.arg not in known:
                near = difflib.get_close_matches(word.arg, known, n=1, cutoff=0.6)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                message = f"the configuration has no field {word.arg!r}: it is silently ignored{hint}"
                findings.append(finding_at(call.function, word.value, message))
    return Verdict.of_source(findings, "every field that config_init sets is declared", doubt=next(iter(doubts), ""))


def _fields(source: ClassSource, call: Call) -> frozenset[str] | None:
    """Return the names that the class of a configuration takes; None if they cannot all be read."""
    found = set(installed_config_fields())
    named = config_class(source)
    for value in call.callee:
        config = value.target
        if value.name == "env_config_cls":
            config = named
        if isinstance(config, ClassSource):
            if any(item.rpartition(".")[2] not in _KNOWN_BASES for item in config.unreadable) or _takes_more(config):
                return None
            found |= {field.name for field in config_fields(config)}
        elif value.kind is not Kind.EXTERNAL and value.name != "env_config_cls":
            return None
    return frozenset(found)


def _takes_more(config: ClassSource) -> bool:
    """Return whether a class takes other names: it allows extra fields, has aliases, or changes what it is given first."""
    for item in config.readable:
        for node in ast.walk(item.node):
            if isinstance(node, ast.keyword) and node.arg in {"extra", "alias", "validation_alias", "alias_generator"}:
                return True
            if isinstance(node, ast.Constant) and node.value in {"extra", "before"}:
                return True
        if "__init__" in item.own_methods:
            return True
    return False


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, holds_for_base_env=True)
