"""How a class evaluates through the layer: whether it enters ``self.agent_rollout(...)`` with ``async with``."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.source import (
    LAYER_AGENT_ROLLOUT,
    Call,
    ClassSource,
    Frame,
    Function,
    Kind,
    calls_layer,
    data_flow,
    finding_at,
    last_name,
)

if TYPE_CHECKING:
    from pytest_hermes_env.source.finding import Finding

__all__ = ["Doubt", "check_rollout", "rollouts_of", "without_evaluate"]

_MOST_RETURNS = 3


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """Why the source cannot tell about one sandbox."""

    line: int
    reason: str


def rollouts_of(frames: tuple[Frame, ...]) -> dict[ast.AST, Frame]:
    """Return the calls of agent_rollout, each with a frame that it is in."""
    return {call.node: frame for frame in frames for call in frame.calls if _is_rollout(call)}


def _is_rollout(call: Call) -> bool:
    is_own = any(
        value.kind is Kind.METHOD and getattr(value.target, "name", "") == LAYER_AGENT_ROLLOUT for value in call.callee
    )
    return is_own or calls_layer(call, {LAYER_AGENT_ROLLOUT})


def check_rollout(source: ClassSource, frame: Frame, node: ast.AST, returns: int = 0) -> Finding | Doubt | None:
    """Check a rollout that is the value of ``node``: None when it is entered. ``returns`` counts the calls that it came out of."""
    function = frame.function
    line = getattr(node, "lineno", 0)
    parent = function.parents.get(node)
    match parent:
        case ast.withitem():
            if isinstance(function.statement_of(node), ast.AsyncWith):
                return None
            return finding_at(function, node, f"{function.name} enters agent_rollout with `with`: it requires `async with`")
        case ast.NamedExpr() | ast.IfExp():
            return check_rollout(source, frame, parent, returns)
        case ast.Await() if returns:
            return check_rollout(source, frame, parent, returns)
        case ast.Await() | ast.Expr():
            return finding_at(function, node, f"{function.name} calls agent_rollout without `async with`: the agent never runs")
        case ast.Call() if node in parent.args and last_name(parent.func) == "enter_async_context":
            return None
        case ast.Attribute(attr="__aenter__"):
            return Doubt(line=line, reason="agent_rollout is entered by hand")
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return _check_name(source, frame, node, name, returns)
        case ast.Return():
            return _check_callers(source, frame, node, returns)
        case _:
            return Doubt(line=line, reason="agent_rollout is handed on to where it cannot be followed")


def _check_name(source: ClassSource, frame: Frame, node: ast.AST, name: str, returns: int) -> Finding | Doubt | None:
    uses = [
        item
        for item in ast.walk(frame.function.node)
        if isinstance(item, ast.Name) and item.id == name and isinstance(item.ctx, ast.Load)
    ]
    if not uses:
        message = f"{frame.function.name} calls agent_rollout and never enters it: the agent never runs"
        return finding_at(frame.function, node, message)
    return _best([check_rollout(source, frame, use, returns) for use in uses])


def _check_callers(source: ClassSource, frame: Frame, node: ast.AST, returns: int) -> Finding | Doubt | None:
    callers = [(edge, caller) for caller in data_flow(source).every_frame() for edge, target in caller.edges if target is frame]
    if not callers or returns >= _MOST_RETURNS or not isinstance(frame.function, Function):
        return Doubt(line=getattr(node, "lineno", 0), reason="agent_rollout is returned to a caller that is not in this class")
    return _worst([check_rollout(source, caller, edge, returns + 1) for edge, caller in callers])


def _best(found: list[Finding | Doubt | None]) -> Finding | Doubt | None:
    """Return None when a use enters the rollout, else a doubt, else a finding."""
    if None in found:
        return None
    return next((item for item in found if isinstance(item, Doubt)), found[0])


def _worst(found: list[Finding | Doubt | None]) -> Finding | Doubt | None:
    """Return a finding, else a doubt, else None."""
    return min((item for item in found if item is not None), key=lambda item: isinstance(item, Doubt), default=None)


def without_evaluate(source: ClassSource) -> Verdict:
    """Return the verdict of a rule about evaluations when there is no evaluate to read."""
    if source.unreadable or source.has("evaluate"):
        return Verdict.undecided("evaluate is not in code that can be read")
    return Verdict.not_applicable("there is no evaluate (HE101)")
