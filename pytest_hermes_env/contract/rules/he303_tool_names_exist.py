"""HE303 tool-names-exist
The tool names that a reward compares with are names of tools that the model was offered.

What: Where `compute_reward`, or code that it calls, compares the name of a called tool (`call["function"]["name"]`, or
a list or set of such names) with constants, hermes knows each of these names, and the configured toolsets offer at
least one name of each comparison. A name that hermes does not have is an error. A name that hermes has, but these
toolsets do not offer, is a warning: a run may choose other toolsets.

Why: Hermes' tools are called `patch`, not `patch_file`, and `terminal`, not `bash`. A bonus for a tool that does not
exist is never paid, and a penalty never applied: the reward looks right, its mean is a little lower, and nothing
teaches the policy to use the tool.

Fix: Print the names in `self._resolve_tools_for_group()[1]` and use these, or keep them as a constant next to
`enabled_toolsets`.

Source: hermes-agent 0.19, `toolsets.TOOLSETS` and the registrations in `tools/`.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.message_parts import MessageParts, results_in
from pytest_hermes_env.play.journal import LoopStarted
from pytest_hermes_env.source import ClassSource, Function, constant_value, finding_at, last_name, reach_of
from pytest_hermes_env.source.installed import installed_tools

_OWN_TOOLS = "_resolve_tools_for_group"
_COUNTS = frozenset({"count", "get", "index", "isdisjoint", "issubset", "issuperset", "intersection"})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Asked:
    """One comparison with names of tools."""

    function: Function
    node: ast.AST
    names: tuple[str, ...]


def static(source: ClassSource) -> Verdict:
    """Look at the constants that names of called tools are compared with.

    It complements the rollouts: these are satisfied when one of several names exists, and a benchmark has none.
    """
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
    findings = [
        finding_at(one.function, one.node, f"{one.function.name} looks for a tool {name!r}{_hint(name, tools)}")
        for one, name in unknown
    ]
    return Verdict.of_source(findings, f"hermes has {', '.join(sorted({name for one in asked for name in one.names}))}")


def _hint(name: str, tools: frozenset[str]) -> str:
    inside = sorted((tool for tool in tools if tool in name), key=len, reverse=True)
    near = inside or difflib.get_close_matches(name, tools, n=1)
    return f", which hermes does not have; nearest: {near[0]!r}" if near else ", which hermes does not have"


def _comparisons(source: ClassSource) -> Iterator[_Asked]:
    """Yield the comparisons in what compute_reward leads to."""
    parts = MessageParts(source=source, results=results_in(source))
    for function in reach_of(source).functions("compute_reward"):
        for node in function.nodes:
            match node:
                case ast.Compare(left=left, comparators=others):
                    sides = [left, *others]
                case ast.BinOp(left=left, op=ast.BitAnd() | ast.Sub(), right=right):
                    sides = [left, right]
                case ast.Call(func=ast.Attribute(value=holder, attr=name), args=[given, *_]) if name in _COUNTS:
                    sides = [holder, given]
                case ast.Subscript(value=holder, slice=given) if parts.of(function, node) == "":
                    sides = [holder, given]
                case _:
                    continue
            constants = [side for side in sides if parts.of(function, side) not in {"name", "names"}]
            names = (
                tuple(name for side in constants for name in _names(source, function, side))
                if len(constants) < len(sides)
                else ()
            )
            if names:
                yield _Asked(function=function, node=node, names=names)


def _names(source: ClassSource, function: Function, node: ast.expr) -> Iterator[str]:
    """Yield the names that an expression is known to hold, also as a parameter; texts that cannot name a tool are left out."""
    value = constant_value(node, function.module, function)
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and item.isidentifier() and not item.startswith("mcp_"):
            yield item
    for caller, given in reach_of(source).given_to(function, node.id, "compute_reward") if isinstance(node, ast.Name) else ():
        if not isinstance(given, ast.Name):
            yield from _names(source, caller, given)


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
        return Verdict.not_exercised("the class has no source file that could be read")
    if not asked:
        return Verdict.not_applicable("no tool's name is compared with a constant")
    loops = [loop for scenario in evidence.scenarios(*SCENARIOS) for loop in scenario.of(LoopStarted)]
    offered = frozenset(name for loop in loops for name in loop.tools)
    if not offered:
        reason = evidence.why_missing(*SCENARIOS)
        return Verdict.not_exercised(reason or "no agent loop offered any tools", "HE511", "HE701")
    findings = [_not_offered(one, offered) for one in asked if not offered & set(one.names)]
    return Verdict.of_source(findings, f"the toolsets offer all tools that the reward looks for, in {len(asked)} comparisons")


def _not_offered(one: _Asked, offered: frozenset[str]) -> Finding:
    names = ", ".join(map(repr, one.names))
    message = f"{one.function.name} looks for a tool {names}, which these toolsets do not offer"
    finding = finding_at(one.function, one.node, message, seen=f"offered: {', '.join(sorted(offered))}")
    known = installed_tools()
    is_known = bool(known) and all(name in known for name in one.names)
    return dataclasses.replace(finding, severity=Severity.WARNING) if is_known else finding


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=SCENARIOS)
