"""Runs the commands that hold other commands: groups, conditions, loops, ``case``; and ``[[ ]]`` and ``(( ))``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_hermes_env.sandbox.bash.arithmetic import ArithmeticProblem
from pytest_hermes_env.sandbox.bash.conditions import BadExpression, holds
from pytest_hermes_env.sandbox.bash.globs import expression
from pytest_hermes_env.sandbox.bash.redirection import Refused
from pytest_hermes_env.sandbox.bash.runner import Runner
from pytest_hermes_env.sandbox.bash.state import Jump, State
from pytest_hermes_env.sandbox.bash.streams import Streams
from pytest_hermes_env.sandbox.bash.tree import ArithmeticCommand, Case, Condition, CountingLoop, For, Group, If, Loop

__all__ = ["run_compound"]


def run_compound(
    shell: Runner, node: Group | If | Loop | For | CountingLoop | Case | Condition | ArithmeticCommand, streams: Streams
) -> int:
    """Run one and return its exit code. Raises: as `Runner.run`."""
    if isinstance(node, For | Case | Condition | ArithmeticCommand):
        shell.state.line = node.line
    if node.redirects:
        try:
            streams = shell.redirected(node.redirects, streams)
        except Refused as refused:
            return shell.failed(shell.say(streams, str(refused)))
    if isinstance(node, Group):
        if node.subshell:
            return shell.failed(shell.subshell(lambda: shell.run(node.body, streams)))
        return shell.run(node.body, streams)
    if isinstance(node, If):
        return _if(shell, node, streams)
    if isinstance(node, Loop):
        return _loop(shell, node, streams)
    if isinstance(node, For):
        return _for(shell, node, streams)
    if isinstance(node, CountingLoop):
        return _count(shell, node, streams)
    if isinstance(node, Case):
        return _case(shell, node, streams)
    return shell.failed(_condition(shell, node, streams))


def _if(shell: Runner, node: If, streams: Streams) -> int:
    for condition, body in node.branches:
        with shell.guarded():
            code = shell.run(condition, streams)
        if not code:
            return shell.run(body, streams)
    return shell.run(node.otherwise, streams) if node.otherwise is not None else 0


def _loop(shell: Runner, node: Loop, streams: Streams) -> int:
    code = 0

    def goes_on() -> bool:
        shell.step("until" if node.until else "while")
        with shell.guarded():
            return (shell.run(node.condition, streams) == 0) != node.until

    with _looping(shell) as state:
        while True:
            try:
                if not goes_on():
                    break
                code = shell.run(node.body, streams)
            except Jump as jump:
                code = 0
                if _leaves(jump, state):
                    break
    return code


def _for(shell: Runner, node: For, streams: Streams) -> int:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", node.name):
        return shell.say(streams, f"`{node.name}': not a valid identifier")
    words = list(shell.state.arguments) if node.words is None else shell.expander(streams).words(node.words)
    code = 0
    with _looping(shell) as state:
        for word in words:
            shell.step(f"for {node.name}")
            shell.assign(node.name, word, streams)
            try:
                code = shell.run(node.body, streams)
            except Jump as jump:
                code = 0
                if _leaves(jump, state):
                    break
    return code


def _count(shell: Runner, node: CountingLoop, streams: Streams) -> int:
    head = node.head
    shell.state.line = head.line
    expander = shell.expander(streams)
    code = 0
    try:
        expander.number(head.first)
        with _looping(shell) as state:
            while not head.condition.parts or expander.number(head.condition):
                shell.step("for ((...))")
                try:
                    code = shell.run(node.body, streams)
                except Jump as jump:
                    code = 0
                    if _leaves(jump, state):
                        break
                expander.number(head.step)
    except ArithmeticProblem as problem:
        return shell.say(streams, f"((: {problem}")
    return code


@contextmanager
def _looping(shell: Runner) -> Iterator[State]:
    state = shell.state
    state.loops += 1
    try:
        yield state
    finally:
        state.loops -= 1


def _leaves(jump: Jump, state: State) -> bool:
    """Return whether a loop ends by a jump; goes on with one that means loops around it."""
    if jump.levels > 1 and state.loops > 1:
        raise Jump(jump.kind, jump.levels - 1)
    return jump.kind == "break"


def _case(shell: Runner, node: Case, streams: Streams) -> int:
    expander = shell.expander(streams)
    word = expander.text(node.word)
    code, falls = 0, False
    for clause in node.clauses:
        if not falls and not any(
            re.fullmatch(expression(expander.pattern(pattern)), word, re.DOTALL) for pattern in clause.patterns
        ):
            continue
        code = shell.script(clause.body, streams)
        falls = clause.end == ";&"
        if clause.end in {";;", "esac"}:
            break
    return code


def _condition(shell: Runner, node: Condition | ArithmeticCommand, streams: Streams) -> int:
    expander = shell.expander(streams)
    try:
        if isinstance(node, ArithmeticCommand):
            return int(not expander.number(node.expression))
        return int(not holds(node.test, expander))
    except ArithmeticProblem as problem:
        name = "((" if isinstance(node, ArithmeticCommand) else "[["
        return shell.say(streams, f"{name}: {problem}")
    except BadExpression:
        return 2
