"""Whether a reward is computed from what earlier rewards left on self: the length or mean of a buffer, a counter.

Only what becomes the reward is followed, from the values that compute_reward returns backwards: a log of the running mean is no fault.
Entries per key (``self.seen[key]``) are left out, because caches and the state of one rollout look so, and so is what
compute_reward begins anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_hermes_env.contract.training_buffers import adds_to
from pytest_hermes_env.source import ClassSource, Frame, Function, data_flow
from pytest_hermes_env.source.local_names import assignments
from pytest_hermes_env.source.syntax import positional_parameters

_SUMMARIES = frozenset(
    {
        "len",
        "sum",
        "max",
        "min",
        "mean",
        "fmean",
        "nanmean",
        "average",
        "median",
        "std",
        "stdev",
        "pstdev",
        "quantile",
        "percentile",
    }
)


def rewards_from_history(source: ClassSource) -> Iterator[tuple[Function, ast.expr, str]]:
    """Yield the expressions that become part of a reward and read an attribute of self that rewards change, with its name."""
    start = data_flow(source).method("compute_reward")
    if start is None:
        return
    changes = [change for frame in data_flow(source).reached("compute_reward") for change in frame.changes]
    begun = {change.attribute for change in changes if change.how == "clear" or (change.how == "set" and not adds_to(change))}
    kept = [change for change in changes if adds_to(change) and change.attribute not in begun]
    counted = {change.attribute for change in kept if change.how in {"add", "set"}}
    yield from _Slice(grown={change.attribute for change in kept}, counted=counted).of_returns(start, {})


Given = Mapping[str, tuple[Frame, ast.expr, "Given"]]
"""What the caller passes for each parameter: its frame, the argument, and what was passed to it."""


@dataclass
class _Slice:
    """What becomes the value of an expression, followed backwards through locals, helpers and their parameters."""

    grown: set[str]
    counted: set[str]
    seen: set[ast.AST] = field(default_factory=set)

    def of_returns(self, frame: Frame, given: Given) -> Iterator[tuple[Function, ast.expr, str]]:
        for node, _ in frame.returned:
            if node.value is not None:
                yield from self.of(frame, node.value, given)

    def of(self, frame: Frame, expression: ast.expr, given: Given) -> Iterator[tuple[Function, ast.expr, str]]:
        pending: list[ast.AST] = [expression]
        while pending:
            node = pending.pop()
            if node in self.seen:
                continue
            self.seen.add(node)
            if isinstance(node, ast.Name):
                yield from self._of_name(frame, node.id, given)
            elif attribute := self._history(frame, node):
                yield frame.function, node, attribute  # type: ignore[misc]  # only expressions have a history
            elif isinstance(node, ast.Call) and (targets := [inner for at, inner in frame.edges if at is node]):
                for target in targets:
                    yield from self.of_returns(target, _passed(frame, node, target.function, given))
            elif isinstance(node, ast.IfExp):
                pending += [node.body, node.orelse]
            elif not isinstance(node, ast.Compare | ast.Subscript):
                pending += ast.iter_child_nodes(node)

    def _of_name(self, frame: Frame, name: str, given: Given) -> Iterator[tuple[Function, ast.expr, str]]:
        for _, value in assignments(frame.function, name):
            if isinstance(value, ast.expr):
                yield from self.of(frame, value, given)
        if name in given:
            yield from self.of(*given[name])

    def _history(self, frame: Frame, node: ast.AST) -> str:
        """Return the attribute whose history ``node`` reads, or nothing."""
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            read = [inner for argument in node.args for inner in ast.walk(argument)] if name in _SUMMARIES else []
            return next((attribute for inner in read if (attribute := _own(frame, inner)) in self.grown), "")
        attribute = _own(frame, node)
        return attribute if attribute in self.counted else ""


def _own(frame: Frame, node: ast.AST) -> str:
    """Return the attribute of self that ``node`` reads as a whole, or nothing."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return ""
    parent = frame.function.parents.get(node)
    is_entry = isinstance(parent, ast.Subscript) and parent.value is node and not isinstance(parent.slice, ast.Constant)
    return node.attr if node.value.id in frame.function.positional[:1] and not is_entry else ""


def _passed(frame: Frame, call: ast.Call, function: Function, given: Given) -> Given:
    names = [item.arg for item in positional_parameters(function.node.args)]
    names = names if function.is_static else names[1:]
    plain = {name: argument for name, argument in zip(names, call.args, strict=False) if not isinstance(argument, ast.Starred)}
    plain |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    return {name: (frame, argument, given) for name, argument in plain.items()}
