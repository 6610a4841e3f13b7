"""HE108 toolsets-are-named
The configuration names toolsets that hermes knows, or a distribution of them.

What: `config_init` sets `enabled_toolsets` or `distribution`, not both. The names are hermes' own, or those of toolsets
that the environment registers. `default_toolsets` is only a hint for readers: no code reads it.

Why: Without either, the model is offered every tool that hermes has, including those that send messages, and each
request carries their schemas. A misspelt name resolves to no tools: upstream's base let the model answer without any,
and every reward was that of a model that did nothing.

Fix: Set `enabled_toolsets=["terminal", "file"]`. Hermes' names are in its `toolsets.py`, the distributions in
`toolset_distributions.py`.

Source: hermes-agent 0.19, `toolsets.TOOLSETS`, `model_tools.get_tool_definitions`,
`toolset_distributions.DISTRIBUTIONS`; `environments.sandbox.offered_tools`.
"""

from __future__ import annotations

import ast
import difflib
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.source import (
    UNKNOWN,
    Call,
    ClassSource,
    Kind,
    config_calls,
    config_class,
    config_fields,
    constant_value,
    data_flow,
    finding_at,
    installed_distributions,
    installed_toolsets,
    is_handed_on,
    keyword,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_hermes_env.source import Frame

ENABLED, DISTRIBUTION = "enabled_toolsets", "distribution"
_NEITHER = "neither enabled_toolsets nor distribution is set: the model would be offered every tool, messaging included"
_BOTH = "enabled_toolsets and distribution are both set: set only one of them"


def static(source: ClassSource) -> Verdict:
    """Look at every configuration that config_init makes, and at what it sets on it afterwards."""
    frames = data_flow(source).reached("config_init")
    calls = list(config_calls(frames))
    if not calls:
        return Verdict.undecided("no configuration found in config_init" if frames else "there is no config_init to read")
    later = _set_later(frames)
    findings: list[Finding] = []
    doubts: list[str] = []
    for call in calls:
        fault, node, doubt = _fault(source, call, later)
        if fault == _NEITHER and is_handed_on(call, frames):
            fault, doubt = "", f"what is made on line {call.node.lineno} is handed on, and may be given toolsets there"
        if fault:
            findings.append(finding_at(call.function, node, fault))
        elif doubt:
            doubts.append(doubt)
    return Verdict.of_source(findings, "all named toolsets exist in hermes", doubt=next(iter(doubts), ""))


def _fault(source: ClassSource, call: Call, later: dict[str, object]) -> tuple[str, ast.AST, str]:
    """Return what is wrong with one configuration, where, and what cannot be known of it."""
    node = call.node
    given = {name: _value(source, call, later, name) for name in (ENABLED, DISTRIBUTION)}
    enabled, distribution = given[ENABLED], given[DISTRIBUTION]
    if any(word.arg is None for word in node.keywords) and None in given.values():
        return "", node, f"the configuration on line {node.lineno} has fields computed at run time"
    if enabled is None and distribution is None:
        if _is_open(call):
            return "", node, "the configuration's own class cannot be read"
        return _NEITHER, node, ""
    if enabled not in (None, UNKNOWN) and distribution not in (None, UNKNOWN):
        return _BOTH, keyword(node, DISTRIBUTION) or node, ""
    at = keyword(node, ENABLED if enabled is not None else DISTRIBUTION) or node
    if isinstance(enabled, str):
        return f"enabled_toolsets must be a list of names, not the string {enabled!r}", at, ""
    words = enabled if isinstance(enabled, list) else [enabled] if enabled is not None else []
    if enabled == []:
        return "enabled_toolsets is empty: the model would have no tools", at, ""
    known = installed_toolsets()
    strange = [word for word in words if isinstance(word, str) and known and word not in known]
    own = _own_toolsets(source) if strange else frozenset()
    strange = [word for word in strange if word not in own]
    if strange:
        return _unknown("toolset", strange[0], known), at, ""
    if isinstance(distribution, str) and installed_distributions() and distribution not in installed_distributions():
        return _unknown("distribution", distribution, installed_distributions()), at, ""
    if UNKNOWN in words or distribution is UNKNOWN:
        return "", node, f"the toolsets on line {node.lineno} are computed at run time"
    return "", node, "" if known else "hermes-agent is not installed here: its toolset names are unknown"


def _unknown(kind: str, word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"hermes has no {kind} {word!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _value(source: ClassSource, call: Call, later: dict[str, object], name: str) -> object:
    """Return what a setting is: given in the call, set afterwards, or the default of the configuration's own class."""
    if name in later:
        return later[name]
    given = keyword(call.node, name)
    if given is not None:
        return constant_value(given, call.function.module, call.function)
    for config in _classes(source, call):
        for field in config_fields(config):
            if field.name == name and field.node.value is not None:
                return _default(field.node.value, config)
    return None


def _classes(source: ClassSource, call: Call) -> list[ClassSource]:
    found = [value.target for value in call.callee if isinstance(value.target, ClassSource)]
    named = config_class(source)
    return found or ([named] if isinstance(named, ClassSource) else [])


def _default(node: ast.expr, config: ClassSource) -> object:
    if not isinstance(node, ast.Call):
        return constant_value(node, config.module)
    if node.args:
        return constant_value(node.args[0], config.module)
    if (default := keyword(node, "default")) is not None:
        return constant_value(default, config.module)
    factory = keyword(node, "default_factory")
    return constant_value(factory.body, config.module) if isinstance(factory, ast.Lambda) else UNKNOWN


def _is_open(call: Call) -> bool:
    """Whether the configuration's class, or a base of it, was not read and may set the toolsets."""
    for value in call.callee:
        if isinstance(value.target, ClassSource):
            if [item for item in value.target.unreadable if item.rpartition(".")[2] not in _KNOWN_BASES]:
                return True
        elif value.kind is not Kind.EXTERNAL and value.name != "env_config_cls":
            return True
    return False


_KNOWN_BASES = frozenset({"HermesAgentEnvConfig", "BaseEnvConfig", "BaseModel"})


def _set_later(frames: Iterable[Frame]) -> dict[str, object]:
    """Return the settings that are assigned to an attribute: config.enabled_toolsets = [...]."""
    found: dict[str, object] = {}
    for frame in frames:
        for node in frame.function.own_nodes():
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Attribute) and target.attr in {ENABLED, DISTRIBUTION}:
                        found[target.attr] = constant_value(node.value, frame.function.module, frame.function)
    return found


def _own_toolsets(source: ClassSource) -> frozenset[str]:
    """Return the names of toolsets that the environment's files make themselves."""
    return frozenset(word for module in source.modules for node in ast.walk(module.tree) for word in _made(node))


def _made(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in {"create_custom_toolset", "register"}:
            values = [*node.args[:1], *(word.value for word in node.keywords if word.arg in {"name", "toolset"})]
            yield from (item.value for item in values if isinstance(item, ast.Constant) and isinstance(item.value, str))
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant):
        holder = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        if holder == "TOOLSETS":
            yield str(node.slice.value)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the configuration that config_init really returned."""
    given = evidence.config_init
    if ENABLED not in given.values:
        return Verdict.not_exercised(f"config_init returned no configuration with toolsets {given.error}".rstrip(), "HE105")
    enabled, distribution = given.values[ENABLED], given.values.get(DISTRIBUTION)
    own = _own_toolsets(evidence.source) if evidence.source is not None else frozenset()
    known = installed_toolsets() | frozenset(evidence.cls.toolsets)
    strange = [name for name in enabled or () if known and name not in known and name not in own]
    fault = ""
    if enabled is None and distribution is None:
        fault = _NEITHER
    elif enabled is not None and distribution is not None:
        fault = _BOTH
    elif enabled == []:
        fault = "enabled_toolsets is empty: the model would have no tools"
    elif strange:
        fault = _unknown("toolset", strange[0], known)
    elif distribution is not None and installed_distributions() and distribution not in installed_distributions():
        fault = _unknown("distribution", distribution, installed_distributions())
    if not fault:
        return Verdict.passed(f"the toolsets are {', '.join(enabled)}" if enabled else f"the distribution is {distribution}")
    return Verdict.failed([evidence.finding(fault, "config_init")])


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic)
