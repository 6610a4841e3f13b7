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
        case ast.Call(func=ast.Attribute(attr="enter_async_context", value=stack)) if node in parent.args:
            return _check_stack(source, frame, node, stack)
        case ast.Attribute(attr="__aenter__"):
            if _is_released(source, "__aexit__"):
                return Doubt(line=line, reason="agent_rollout is entered by hand")
            return finding_at(
                function,
                node,
                f"{function.name} enters agent_rollout by hand and never exits it: its sandbox is never released",
            )
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return _check_name(source, frame, node, name, returns)
        case ast.Return():
            return _check_callers(source, frame, node, returns)
        case _:
            return Doubt(line=line, reason="agent_rollout is handed on to where it cannot be followed")


def _check_stack(source: ClassSource, frame: Frame, node: ast.AST, stack: ast.expr) -> Finding | Doubt | None:
    """Check a rollout that an exit stack enters: None when the stack is that of an ``async with`` in the same function."""
    function, text = frame.function, ast.unparse(stack)
    if any(text in _names_of(item) for item in ast.walk(function.node) if isinstance(item, ast.AsyncWith)):
        return None
    doubt = Doubt(
        line=getattr(node, "lineno", 0), reason=f"agent_rollout is entered on {text}, and when it closes cannot be followed"
    )
    is_attribute = isinstance(stack, ast.Attribute)
    if not is_attribute and not _is_local_stack(function, text):
        return doubt
    closes = [name for name in ("aclose", "__aexit__", "pop_all") if _is_released(source, name, text)]
    if closes or (is_attribute and _is_entered(source, text)):
        return doubt
    return finding_at(
        function, node, f"{function.name} enters agent_rollout on {text}, which is never closed: its sandbox is never released"
    )


def _is_local_stack(function: Function, name: str) -> bool:
    """Whether a variable is a new exit stack that does not leave the function."""
    uses = [item for item in ast.walk(function.node) if isinstance(item, ast.Name) and item.id == name]
    made = [item for item in uses if isinstance(item.ctx, ast.Store)]
    is_kept = all(isinstance(function.parents.get(item), ast.Attribute) for item in uses if item not in made)
    values = [getattr(function.parents.get(item), "value", None) for item in made]
    return (
        bool(made)
        and is_kept
        and all(isinstance(item, ast.Call) and last_name(item.func) == "AsyncExitStack" for item in values)
    )


def _is_released(source: ClassSource, method: str, text: str = "") -> bool:
    """Whether the code of a class mentions a method, of the expression ``text`` if it is given."""
    return any(
        isinstance(item, ast.Attribute) and item.attr == method and (not text or ast.unparse(item.value) == text)
        for frame in data_flow(source).every_frame()
        for item in ast.walk(frame.function.node)
    )


def _is_entered(source: ClassSource, text: str) -> bool:
    blocks = (item for frame in data_flow(source).every_frame() for item in ast.walk(frame.function.node))
    return any(text in _names_of(item) for item in blocks if isinstance(item, ast.AsyncWith))


def _names_of(block: ast.AsyncWith) -> set[str]:
    """Return what a block enters and the names that it gives, as source text."""
    nodes = [node for item in block.items for node in (item.context_expr, item.optional_vars) if node is not None]
    return set(map(ast.unparse, nodes))


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
