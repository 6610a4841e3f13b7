"""Finds the commands that stand in a script, also inside substitutions and ``case``, so that unknown ones are told beforehand."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_hermes_env.sandbox.bash.tree import (
    AndOr,
    ArithmeticCommand,
    ArithmeticPart,
    Case,
    Condition,
    CountingLoop,
    For,
    Function,
    Group,
    If,
    Loop,
    Node,
    Parameter,
    Pipeline,
    Redirect,
    Script,
    Sequence,
    Simple,
    Substitution,
    Test,
    Word,
)

__all__ = ["commands_of"]


def commands_of(script: Script) -> Iterator[Simple | Function]:
    """Give every simple command and every definition of a function, in the order of the source."""
    for node, _ in script.commands:
        yield from _in_node(node)


def _in_node(node: Node) -> Iterator[Simple | Function]:
    if isinstance(node, Simple):
        yield node
        for assignment in node.assignments:
            yield from _in_word(assignment.value)
        yield from _in_words(node.words)
        yield from _in_redirects(node.redirects)
        return
    if isinstance(node, Function):
        yield node
    for child in _children(node):
        yield from _in_node(child)
    if isinstance(node, Case):
        yield from _in_word(node.word)
        for clause in node.clauses:
            yield from _in_words(clause.patterns)
            yield from commands_of(clause.body)
    elif isinstance(node, Condition):
        yield from _in_test(node.test)
    elif isinstance(node, ArithmeticCommand):
        yield from _in_word(node.expression)
    elif isinstance(node, CountingLoop):
        yield from _in_words((node.head.first, node.head.condition, node.head.step))
    elif isinstance(node, For):
        yield from _in_words(node.words or ())
    if not isinstance(node, Pipeline | AndOr | Sequence):
        yield from _in_redirects(node.redirects)


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Pipeline):
        return node.commands
    if isinstance(node, AndOr):
        return (node.first, *(one for _, one in node.rest))
    if isinstance(node, Sequence):
        return node.nodes
    if isinstance(node, Group | For | CountingLoop | Function):
        return (node.body,)
    if isinstance(node, If):
        return (*(one for branch in node.branches for one in branch), *(() if node.otherwise is None else (node.otherwise,)))
    if isinstance(node, Loop):
        return (node.condition, node.body)
    return ()


def _in_test(test: Test) -> Iterator[Simple | Function]:
    yield from _in_words(test.words)
    for one in test.tests:
        yield from _in_test(one)


def _in_redirects(redirects: tuple[Redirect, ...]) -> Iterator[Simple | Function]:
    for redirect in redirects:
        yield from _in_word(redirect.target)
        if redirect.body is not None:
            yield from _in_word(redirect.body)


def _in_words(words: tuple[Word, ...]) -> Iterator[Simple | Function]:
    for word in words:
        yield from _in_word(word)


def _in_word(word: Word) -> Iterator[Simple | Function]:
    if word.plain is not None:
        return
    for part in word.parts:
        if isinstance(part, Substitution):
            yield from commands_of(part.script)
        elif isinstance(part, ArithmeticPart):
            yield from _in_word(part.expression)
        elif isinstance(part, Parameter):
            for one in (part.argument, part.second):
                if one is not None:
                    yield from _in_word(one)
