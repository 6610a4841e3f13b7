"""The shell commands that an environment runs in the tool context, and the taint of their texts."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.source.syntax import keyword
from pytest_hermes_env.source.taint import Taint, TaintAnalysis, entry_taints, is_context
from pytest_hermes_env.source.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_hermes_env.source.classes import ClassSource
    from pytest_hermes_env.source.frames import Call
    from pytest_hermes_env.source.functions import Function

_TERMINAL = "terminal"


@dataclass(frozen=True, kw_only=True, eq=False)
class Command:
    """One command that is passed to a terminal of the tool context."""

    function: Function
    node: ast.AST
    taint: Taint


def terminal_commands(source: ClassSource, *methods: str) -> tuple[Command, ...]:
    """Return the commands that these methods of a class lead to, once for each taint that reaches them."""
    analysis = TaintAnalysis(source, _commands_in)
    for name in methods:
        function = source.methods.get(name)
        if function is not None:
            analysis.analyse(function, entry_taints(function))
    return tuple(Command(function=function, node=node, taint=taint) for (node, taint), function in analysis.found.items())


def _commands_in(call: Call) -> Iterator[ast.expr]:
    """Yield the expressions that a call passes to the terminal of a tool context."""
    arguments = [item for item in call.node.args if not isinstance(item, ast.Starred)]
    is_direct = call.name == _TERMINAL and is_context(call.receiver)
    if is_direct or any(value.kind is Kind.CONTEXT and value.name == _TERMINAL for value in call.callee):
        yield from arguments[:1]
        if (command := keyword(call.node, "command")) is not None:
            yield command
    elif call.name == "call_tool" and is_context(call.receiver) and arguments:
        given = arguments[1] if len(arguments) > 1 else keyword(call.node, "arguments")
        if isinstance(arguments[0], ast.Constant) and arguments[0].value == _TERMINAL and isinstance(given, ast.Dict):
            for key, value in zip(given.keys, given.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "command":
                    yield value
    for index, values in enumerate(call.arguments[:-1]):
        if any(value.kind is Kind.CONTEXT and value.name == _TERMINAL for value in values):
            yield call.node.args[index + 1]
