"""HE303 tool-names-exist
The tool names that a reward compares with are names of tools that the model was offered.

What: Where `compute_reward`, or code that it calls, compares the name of a called tool (`call["function"]["name"]`, or
a list or set of such names) with constants, hermes knows each of these names, and the configured toolsets offer at
least one name of each comparison. A name that hermes does not have is an error. A name that hermes has, but these
toolsets do not offer, is a warning: a run may choose other toolsets.

Why: Hermes' tools are called `patch`, not `patch_file`, and `terminal`, not `bash`. A bonus for a tool that does not
exist is never paid, and a penalty never applied: the reward looks right, its mean is a little lower, and nothing
teaches the policy to use the tool.

Fix: Print the names in `self._resolve_tools_for_group()[1]` and use these, or keep them as a constant beside
`enabled_toolsets`.

Source: hermes-agent 0.19, `toolsets.TOOLSETS` and the registrations in `tools/`.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.journal import LoopStarted
from pytest_hermes_env.source import (
    ClassSource,
    Frame,
    bindings,
    constant_value,
    data_flow,
    finding_at,
    installed_tools,
    last_name,
    may_name_a_tool,
    origins,
    sorted_findings,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN_TOOLS = "_resolve_tools_for_group"
_COUNTS = frozenset({"count", "index", "isdisjoint", "issubset", "issuperset", "intersection"})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Asked:
    """One comparison with names of tools."""

    frame: Frame
    node: ast.AST
    names: tuple[str, ...]


def static(source: ClassSource) -> Verdict:
    """Look at the constants that names of called tools are compared with."""
    if not source.has("compute_reward") and source.unreadable:
        return Verdict.undecided(f"compute_reward may come from {source.unreadable[0]}, which cannot be read")
    asked = list(_comparisons(source))
    if not asked:
        return Verdict.not_applicable("no tool's name is compared with a constant")
    tools = installed_tools()
    if not tools:
        return Verdict.undecided("hermes-agent is not installed here: its tools are not known")
    unknown = [(one, name) for one in asked for name in one.names if name not in tools]
    if unknown and (own := _own_tools(source)):
        return Verdict.undecided(f"{own}, so {unknown[0][1]!r} may be one of the environment's own tools")
    findings = sorted_findings(
        finding_at(one.frame.function, one.node, f"{one.frame.function.name} looks for a tool {name!r}{_hint(name, tools)}")
        for one, name in unknown
    )
    return Verdict.of(findings, f"hermes has {', '.join(sorted({name for one in asked for name in one.names}))}")


def _hint(name: str, tools: frozenset[str]) -> str:
    inside = sorted((tool for tool in tools if tool in name), key=len, reverse=True)
    near = inside or difflib.get_close_matches(name, tools, n=1)
    return f", which hermes does not have; nearest: {near[0]!r}" if near else ", which hermes does not have"


def _comparisons(source: ClassSource) -> Iterator[_Asked]:
    """Yield the comparisons in what compute_reward reaches, each once."""
    start = data_flow(source).method("compute_reward")
    seen: set[ast.AST] = set()
    frames = data_flow(source).reached_from(start) if start is not None else ()
    for frame in frames:
        for compared in frame.comparisons:
            others = [
                part for part, values in zip(compared.parts, compared.operands, strict=True) if not may_name_a_tool(values)
            ]
            names = tuple(
                name
                for part in others
                for node, holder in origins(part, frame, frames)
                for name in _constants(source, holder, node)
            )
            if names and compared.node not in seen:
                seen.add(compared.node)
                yield _Asked(frame=frame, node=compared.node, names=names)
        for call in frame.calls:
            if call.name == "get" and call.arguments and may_name_a_tool(call.arguments[0]) and call.node not in seen:
                seen.add(call.node)
                if names := _keys(frame, call.node.func.value if isinstance(call.node.func, ast.Attribute) else call.node):
                    yield _Asked(frame=frame, node=call.node, names=names)
            if call.name in _COUNTS and call.node.args and may_name_a_tool(call.receiver) and call.node not in seen:
                seen.add(call.node)
                if names := _constants(source, frame, call.node.args[0]):
                    yield _Asked(frame=frame, node=call.node, names=names)


def _keys(frame: Frame, node: ast.expr) -> tuple[str, ...]:
    """Return the keys of a dict that is written down here or in the module."""
    named = [item.node for item in frame.function.module.names.get(last_name(node), ()) if not item.module]
    bound = list(bindings(frame.function, node.id)) if isinstance(node, ast.Name) else []
    return tuple(
        key.value
        for held in (node, *bound, *named)
        if isinstance(held, ast.Dict)
        for key in held.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    )


def _constants(source: ClassSource, frame: Frame, node: ast.expr) -> tuple[str, ...]:
    """Return the names that an expression is known to hold; texts that are no tool's name are left out."""
    module = frame.function.module
    value = constant_value(node, module, frame.function)
    if isinstance(node, ast.Attribute) and (given := source.attribute(node.attr)) is not None:
        value = constant_value(given[1], given[0].module)
    if isinstance(node, ast.Call) and last_name(node.func) in {"frozenset", "set", "tuple", "list"} and node.args:
        value = constant_value(node.args[0], module, frame.function)
    items = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
    return tuple(item for item in items if isinstance(item, str) and item.isidentifier() and not item.startswith("mcp_"))


def _own_tools(source: ClassSource) -> str:
    """Return how the environment may come to tools of its own; empty when it does not."""
    if source.has(_OWN_TOOLS):
        return f"{source.name} has its own {_OWN_TOOLS}"
    for owner in source.readable:
        for node in ast.walk(owner.module.tree):
            if isinstance(node, ast.Call) and last_name(node.func) in {"register", "register_tool", "create_custom_toolset"}:
                return f"{owner.path} registers tools or toolsets"
    return ""


SCENARIOS = ("happy",)


def dynamic(evidence: Evidence) -> Verdict:
    """Compare the names with the tools that the agent loops of a training group offered."""
    source = evidence.source
    asked = list(_comparisons(source)) if source is not None else []
    if source is None:
        return Verdict.not_exercised("the class has no source file that could be read", acceptable_gap=True)
    if not asked:
        return Verdict.not_applicable("no tool's name is compared with a constant")
    loops = [loop for scenario in evidence.scenarios(*SCENARIOS) for loop in scenario.of(LoopStarted)]
    offered = frozenset(name for loop in loops for name in loop.tools)
    if not offered:
        reason = evidence.why_missing(*SCENARIOS)
        return Verdict.not_exercised(
            reason or "no agent loop offered any tools", "HE511", "HE701", acceptable_gap=reason is None
        )
    findings = [_not_offered(one, offered) for one in asked if not offered & set(one.names)]
    return Verdict.of_source(findings, f"the toolsets offer all tools that the reward looks for, in {len(asked)} comparisons")


def _not_offered(one: _Asked, offered: frozenset[str]) -> Finding:
    names = ", ".join(map(repr, one.names))
    message = f"{one.frame.function.name} looks for a tool {names}, which these toolsets do not offer"
    finding = finding_at(one.frame.function, one.node, message, seen=f"offered: {', '.join(sorted(offered))}")
    known = installed_tools()
    is_known = bool(known) and all(name in known for name in one.names)
    return dataclasses.replace(finding, severity=Severity.WARNING) if is_known else finding


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=SCENARIOS)
