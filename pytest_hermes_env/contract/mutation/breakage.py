"""One breakage of one environment, as edits of its source."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_hermes_env.source import Module


@dataclass(frozen=True, kw_only=True)
class Edit:
    """The bytes from ``start`` up to ``end`` of a file become ``text``."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True, kw_only=True)
class Breakage:
    """What is done to an environment, and where. ``rule`` is the law that it breaks, ``name`` says what is wrong then."""

    rule: str
    name: str
    module: Module
    line: int
    edits: tuple[Edit, ...]

    @property
    def text(self) -> bytes:
        """The file with its edits."""
        text = self.module.text
        for edit in sorted(self.edits, key=lambda item: item.start, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text

    @property
    def is_valid(self) -> bool:
        """Whether the broken file differs from the whole one and still parses, so that only the environment is broken."""
        try:
            return ast.dump(ast.parse(self.text)) != ast.dump(self.module.tree)
        except (SyntaxError, ValueError):
            return False


def replaced(module: Module, node: ast.AST, text: str) -> Edit:
    """Return the edit that writes ``text`` in the place of ``node``."""
    return Edit(start=_start(module, node), end=_end(module, node), text=text.encode())


def inserted(module: Module, node: ast.AST, text: str) -> Edit:
    """Return the edit that writes ``text`` before ``node``."""
    return Edit(start=_start(module, node), end=_start(module, node), text=text.encode())


def replaced_block(module: Module, block: Iterable[ast.stmt], text: str) -> Edit:
    """Return the edit that writes one statement in the place of a block."""
    statements = list(block)
    return Edit(start=_start(module, statements[0]), end=_end(module, statements[-1]), text=text.encode())


def _start(module: Module, node: ast.AST) -> int:
    return _offset(module, node.lineno, node.col_offset)  # type: ignore[attr-defined]


def _end(module: Module, node: ast.AST) -> int:
    return _offset(module, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def _offset(module: Module, line: int, column: int) -> int:
    before = module.text.splitlines(keepends=True)[: line - 1]
    return sum(map(len, before)) + column
