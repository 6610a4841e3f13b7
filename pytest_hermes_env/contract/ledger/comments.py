"""Waivers written next to the code: ``# hermes: HE409 the values are our own constants (expires 2031-12-31)``.

A comment behind code holds for its statement; one on a line of its own for the statement below; on a ``def`` or ``class`` line, or
above it, for all that the function or class holds. Several ids are separated by commas; the date is optional.
"""

from __future__ import annotations

import ast
import datetime as dt
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_hermes_env.contract.rules import ALL_RULES, nearest
from pytest_hermes_env.redaction.shown_text import shown_path
from pytest_hermes_env.source import FileProblem, Module

WAIVERS_HOLD = "HE000"
"""The id under which a waiver that does not hold is reported."""

_MARK = re.compile(rb"hermes(?:-env)?:")
_COMMENT = re.compile(r"#\s*hermes(?:-env)?:\s*(?P<text>.*?)\s*$")
_TEXT = re.compile(r"(?P<ids>HE\d+(?:\s*,\s*HE\d+)*)\b[\s:,-]*(?P<reason>.*)", re.IGNORECASE)
_EXPIRES = re.compile(r"\s*\(expires\b\s*(?P<date>[^)]*)\)$", re.IGNORECASE)
_SOME_ID = re.compile(r"\bHE\d{3}\b")
_BODIES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_NO_CODE = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING})


@dataclass(frozen=True, kw_only=True)
class CommentWaiver:
    """A comment that accepts violations of ``rules`` on the lines ``first`` to ``last`` of its file."""

    file: str
    path: str
    line: int
    rules: tuple[str, ...]
    reason: str
    expires: dt.date | None
    first: int
    last: int
    owner: str
    """Name of the innermost class that it stands in, or empty."""

    @property
    def origin(self) -> str:
        """Where it is written."""
        return f"{shown_path(self.path)}:{self.line}"  # read once by an absolute path, and once by a relative one


def read_comments(module: Module) -> tuple[list[CommentWaiver], list[FileProblem]]:
    """Return the waivers in a file, and what is wrong with those that cannot hold."""
    if not _MARK.search(module.text):
        return [], []
    found: list[CommentWaiver] = []
    problems: list[FileProblem] = []
    spans = _Spans.of(module.tree)
    for line, column, text, is_alone in _comments(module.text):
        match = _TEXT.match(text)
        if match is None:
            if _SOME_ID.search(text):
                message = f"this comment waives nothing: write `# hermes: {_SOME_ID.findall(text)[0]} reason`, the id first"
                problems.append(complaint(module.path, line, column, message))
            continue
        ids = tuple(word.strip().upper() for word in match["ids"].split(","))
        reason, expires, wrong = _dated(match["reason"])
        wrong = wrong or _fault(ids, reason)
        if wrong:
            problems.append(complaint(module.path, line, column, wrong))
            continue
        first, last = spans.reach(line, is_alone=is_alone)
        found.append(
            CommentWaiver(
                file=module.file,
                path=module.path,
                line=line,
                rules=ids,
                reason=reason,
                expires=expires,
                first=first,
                last=last,
                owner=spans.owner(first),
            )
        )
    return found, problems


def complaint(path: str, line: int, column: int, message: str) -> FileProblem:
    """Return what is wrong with a waiver, at its place."""
    return FileProblem(path=path, line=line, column=column, message=message, id=WAIVERS_HOLD, name="waivers-hold")


def _dated(text: str) -> tuple[str, dt.date | None, str]:
    """Return a reason without its date, the date, and what is wrong with that."""
    match = _EXPIRES.search(text)
    if match is None:
        return text, None, ""
    try:
        return text[: match.start()], dt.date.fromisoformat(match["date"]), ""
    except ValueError:
        return text, None, f"this comment expires on {match['date']!r}, which is not a date such as 2026-12-31"


def _fault(ids: tuple[str, ...], reason: str) -> str:
    known = {rule.id for rule in ALL_RULES}
    if unknown := next((rule_id for rule_id in ids if rule_id not in known), None):
        return f"this comment waives {unknown}, which is not a rule.{nearest(unknown)}"
    if not reason:
        return f"this comment waives {', '.join(ids)} without a reason: write why the violation is accepted"
    return ""


def _comments(text: bytes) -> Iterator[tuple[int, int, str, bool]]:
    """Yield line, column, text and whether it stands alone, for each comment that begins with our mark; a string is not a comment."""
    code_lines: set[int] = set()
    found: list[tuple[int, int, str]] = []
    try:
        for token in tokenize.tokenize(io.BytesIO(text).readline):
            if token.type == tokenize.COMMENT:
                match = _COMMENT.match(token.string)
                if match:
                    found.append((token.start[0], token.start[1] + 1, match["text"]))
            elif token.type not in _NO_CODE:
                code_lines.update(range(token.start[0], token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):  # what ast has read and tokenize has not: keep what was seen so far
        pass
    for line, column, comment in found:
        yield line, column, comment, line not in code_lines


@dataclass(frozen=True, kw_only=True)
class _Spans:
    """Lines of statements: what a comment on a line holds for."""

    statements: list[tuple[int, int, int, str]]
    """First line, line on which its own text ends, last line that a comment there reaches, name of the class or empty."""

    @classmethod
    def of(cls, tree: ast.Module) -> _Spans:
        rows: list[tuple[int, int, int, str]] = []
        for node in ast.walk(tree):
            if not isinstance(node, (ast.stmt, ast.ExceptHandler)):
                continue
            end = node.end_lineno or node.lineno
            first = node.lineno
            if isinstance(node, _BODIES):
                first = min([first, *(item.lineno for item in node.decorator_list)])
                head = max(node.lineno, node.body[0].lineno - 1)
                rows.append((first, head, end, node.name if isinstance(node, ast.ClassDef) else ""))
            elif isinstance(node, (*_BLOCKS, ast.ExceptHandler)):
                body = node.cases[0].pattern.lineno if isinstance(node, ast.Match) else node.body[0].lineno
                head = max(first, body - 1)
                rows.append((first, head, head, ""))
            else:
                rows.append((first, end, end, ""))
        return cls(statements=sorted(rows))

    def reach(self, line: int, *, is_alone: bool) -> tuple[int, int]:
        """Return the first and last line that a comment on ``line`` holds for."""
        if is_alone and not any(first < line <= head for first, head, _, _ in self.statements):
            line = next((first for first, _, _, _ in self.statements if first > line), line)
        covering = [(first, last) for first, head, last, _ in self.statements if first <= line <= head]
        return max(covering, default=(line, line))

    def owner(self, line: int) -> str:
        """Return the name of the innermost class around a line."""
        around = [(first, name) for first, _, last, name in self.statements if name and first <= line <= last]
        return max(around, default=(0, ""))[1]
