"""Finds the commands that stand in a script, also inside substitutions and ``case``, so that unknown ones are told beforehand."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_hermes_env.sandbox.bash.tree import Function, Simple, Word

__all__ = ["commands_of"]


def commands_of(item: object) -> Iterator[Simple | Function]:
    """Yield every simple command and every definition of a function in a part of a tree, in the order of the source."""
    if isinstance(item, Simple | Function):
        yield item
    if isinstance(item, Word) and item.plain is not None:
        return
    inner = item if isinstance(item, tuple) else [getattr(item, name) for name in getattr(item, "__slots__", ())]
    for one in inner:
        yield from commands_of(one)
