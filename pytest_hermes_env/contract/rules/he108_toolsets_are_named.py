"""HE108 toolsets-are-named
The configuration names toolsets that hermes knows, or a distribution of them.

What: `config_init` sets `enabled_toolsets` or `distribution`, not both. The names are hermes' own, or those of toolsets
that the environment, or a module that it imports, registers. `default_toolsets` is only a hint for readers: no code reads it.

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
from collections.abc import Iterable

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.source import ClassSource, finding_at
from pytest_hermes_env.source.configs import config_calls
from pytest_hermes_env.source.finding import Finding
from pytest_hermes_env.source.installed import installed_distributions, installed_toolsets

ALIKE = 0.8
ENABLED, DISTRIBUTION = "enabled_toolsets", "distribution"
_NEITHER = "neither enabled_toolsets nor distribution is set: the model would be offered every tool, messaging included"
_BOTH = "enabled_toolsets and distribution are both set: set only one of them"


def _unknown(kind: str, word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"hermes has no {kind} {word!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def static(source: ClassSource) -> Verdict:
    """Look for a misspelt name of hermes' in the call that makes the configuration: one that stands nowhere else, where it could be registered."""
    known = installed_toolsets()
    text = "\n".join(ast.unparse(owner.module.tree) for owner in source.readable[:1])
    findings = [
        finding_at(call.function, name, _unknown("toolset", name.value, known))
        for call, _ in config_calls(source)
        for given in call.node.keywords
        if given.arg == ENABLED and isinstance(given.value, ast.List | ast.Tuple)
        for name in given.value.elts
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value not in known
        if difflib.get_close_matches(name.value, known, cutoff=ALIKE) and text.count(repr(name.value)) == 1
    ]
    return Verdict.of_source(findings, "no toolset's name is misspelt")


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the configuration that config_init really returned."""
    given = evidence.config_init
    if ENABLED not in given.values:
        return Verdict.not_exercised(f"config_init returned no configuration with toolsets {given.error}".rstrip(), "HE105")
    enabled, distribution = given.values[ENABLED], given.values.get(DISTRIBUTION)
    known = installed_toolsets() | frozenset(evidence.cls.toolsets)
    strange = [name for name in enabled or () if known and name not in known]
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
    return Verdict.failed([_where_written(evidence.source, fault) or evidence.finding(fault, "config_init")])


def _where_written(source: ClassSource | None, fault: str) -> Finding | None:
    """Return the finding at what names the toolsets, else at the call that makes the configuration; None if neither can be read."""
    calls = [call for call, _ in config_calls(source)] if source is not None else []
    named = [(call, word.value) for call in calls for word in call.node.keywords if word.arg in {ENABLED, DISTRIBUTION}]
    return next(
        (finding_at(call.function, node, fault) for call, node in (*named, *((call, call.node) for call in calls))), None
    )


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic)
