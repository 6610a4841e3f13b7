"""Makes commands of tokens. bashlex reads their order; this module gives it one letter for each word, and puts the words back.

So bashlex meets only what it reads well, and what it makes of one shape (``w w && w``) serves every line of that shape.

Place in the flow: `parse` is all that `runner` asks for.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.braces import braced
from pytest_hermes_env.sandbox.bash.lexer import Lexer
from pytest_hermes_env.sandbox.bash.reading import lines_of
from pytest_hermes_env.sandbox.bash.tree import (
    AndOr,
    Assignment,
    Counting,
    CountingLoop,
    For,
    Function,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Script,
    Simple,
    SyntaxProblem,
    Text,
    Token,
    Word,
)
from pytest_hermes_env.sandbox.bash.tree import (
    Sequence as Commands,
)

__all__ = ["parse"]

ELEMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[[^]]*\]\+?=")
OPERATORS = frozenset({";", "&&", "||", "|", "|&", ")", "&"})
BROKEN = ";;"
"""Stands at the end of a shape behind which the source cannot be read."""


@functools.lru_cache(maxsize=512)
def parse(source: str) -> Script:
    """Return a source as a script; what is wrong with it stands in the script.

    Raises: a construct that is not known → UnsupportedSyntax.
    """
    return Lexer(source, _script).script()


@dataclass(frozen=True, kw_only=True)
class _Structure:
    """What bashlex makes of a shape: its commands, each with where it begins and ends; and where it stopped, if it did."""

    nodes: tuple[tuple[Any, int, int], ...]
    stopped_at: int | None = None
    is_end: bool = False


@functools.lru_cache(maxsize=1024)
def _structure(shape: str) -> _Structure:
    """Raises: what bashlex does not know → NotImplementedError."""
    from bashlex import parser  # noqa: PLC0415 - a quarter of a second
    from bashlex.errors import ParsingError  # noqa: PLC0415

    nodes: list[tuple[Any, int, int]] = []
    at = 0
    while at < len(shape):
        if shape[at] in " \n":
            at += 1
            continue
        try:
            node = parser.parsesingle(shape[at:], strictmode=False, expansionlimit=-1)
        except ParsingError as error:
            is_end = "EOF" in error.message  # then the place that bashlex tells is not one of the shape
            return _Structure(nodes=tuple(nodes), stopped_at=len(shape) if is_end else at + error.position, is_end=is_end)
        nodes.append((node, at, at + node.pos[1]))
        at += node.pos[1]
        while shape.startswith(" ", at):
            at += 1
        if at < len(shape) and shape[at] != "\n":
            raise NotImplementedError("the order of these commands")
    return _Structure(nodes=tuple(nodes))


def _script(tokens: Sequence[Token], source: str, problem: SyntaxProblem | None) -> Script:
    shape, places = _shape(tokens, is_broken=problem is not None)
    try:
        structure = _structure(shape)
    except NotImplementedError as error:
        raise UnsupportedSyntax(source, _named(str(error))) from error
    except (AssertionError, AttributeError) as error:
        raise UnsupportedSyntax(source, "the order of these commands") from error
    binder = _Binder(tokens=tokens, places=places, source=source)
    ends = [end for _, _, end in structure.nodes]
    warnings: dict[int, list[tuple[int, str]]] = {}
    for token, place in zip(tokens, places, strict=True):
        if token.warning is not None:
            warnings.setdefault(bisect.bisect_right(ends, place), []).append(token.warning)
    commands: list[tuple[Node, tuple[tuple[int, str], ...]]] = []
    lines = lines_of(source)
    for number, (node, start, _) in enumerate(structure.nodes):
        commands.append((binder.bound(node, start), tuple(warnings.pop(number, ()))))
    if structure.stopped_at is not None:
        problem = binder.problem(structure, shape, problem)
    left = tuple(warning for some in warnings.values() for warning in some)
    return Script(commands=tuple(commands), lines=lines, problem=problem, warnings=left)


def _named(text: str) -> str:
    found = re.match(r"type = \{(.*?)\}", text)
    return found.group(1) if found else text


def _shape(tokens: Sequence[Token], *, is_broken: bool) -> tuple[str, list[int]]:
    """Return the tokens as bashlex is to see them, and the place of each."""
    pieces: list[str] = []
    places: list[int] = []
    at = 0
    for number, token in enumerate(tokens):
        text = _seen(token, tokens, number)
        places.append(at)
        pieces.append(text)
        at += len(text) + 1
    if is_broken:
        pieces.append(BROKEN)
    return " ".join(pieces), places


def _seen(token: Token, tokens: Sequence[Token], number: int) -> str:
    following = tokens[number + 1] if number + 1 < len(tokens) else None
    ends_command = token.kind == "compound" or token.text == ")" or (token.is_reserved and token.text in {"}", "fi", "done"})
    text = _letters(token, tokens, number)
    # bashlex wants a list between while and do
    return f"{text} ;" if ends_command and following is not None and following.is_reserved and following.text == "do" else text


def _letters(token: Token, tokens: Sequence[Token], number: int) -> str:
    following = tokens[number + 1] if number + 1 < len(tokens) else None
    if token.kind == "word":
        if token.is_reserved and token.text != "time":
            return token.text
        if token.is_reserved:
            is_word = following is None or (following.kind in {"word", "redirect", "newline"} and not following.is_reserved)
            return "w" if is_word or (following is not None and following.text in OPERATORS) else "time"
        return "x=w" if token.is_assignment else "w"
    if isinstance(token.node, Counting):
        return "w ;" if following is not None and following.text == "{" else "w"
    if token.kind == "compound":
        return "{ w ; }"
    if token.kind == "redirect":
        return ">"
    if token.kind == "newline":
        following = next((one for one in itertools.islice(tokens, number + 1, None) if one.kind != "newline"), None)
        before = tokens[number - 1] if number else None
        is_after_word = before is not None and (before.kind in {"word", "compound"} or before.text == ")")
        if following is not None and following.text == "do" and following.is_reserved and is_after_word:
            return ";"
        return "\n"
    return token.text


class _Binder:
    """Puts the words back into what bashlex made of their shape."""

    def __init__(self, *, tokens: Sequence[Token], places: list[int], source: str) -> None:
        self._tokens = tokens
        self._by_place = {place: number for number, place in enumerate(places)}
        self._places = places
        self._source = source
        self._start = 0

    def bound(self, node: Any, start: int) -> Node:
        """Return the command that a tree of bashlex stands for; its places are counted from ``start``."""
        self._start = start
        return self._node(node)

    def problem(self, structure: _Structure, shape: str, behind: SyntaxProblem | None) -> SyntaxProblem:
        """Return what is wrong where bashlex stopped; ``behind``: what the lexer met behind the last token."""
        at = structure.stopped_at or 0
        number = self._by_place.get(at)
        if behind is not None and (number is None or at >= len(shape) - len(BROKEN)):
            return behind
        lines = lines_of(self._source)
        if structure.is_end and number is None:
            return SyntaxProblem(line=lines + 1, text="syntax error: unexpected end of file")
        if number is None:
            token = self._tokens[-1]
            return self._near("newline", token.line)
        return self.near(self._tokens[number])

    def near(self, token: Token) -> SyntaxProblem:
        """Return the problem of a token that stands where it may not."""
        return self._near("newline" if token.kind == "newline" else token.text, token.line)

    def _near(self, text: str, line: int) -> SyntaxProblem:
        shown = self._source.split("\n")[line - 1]
        return SyntaxProblem(line=line, text=f"syntax error near unexpected token `{text}'", shown=shown)

    def _token(self, node: Any) -> Token:
        return self._tokens[self._by_place[node.pos[0] + self._start]]

    def _node(self, node: Any) -> Node:
        if node.kind == "command":
            return self._command(node)
        if node.kind == "list":
            return self._list(node.parts)
        if node.kind == "pipeline":
            return self._pipeline(node)
        if node.kind == "compound":
            return self._compound(node)
        if node.kind == "function":
            return Function(name=self._token(node.name).text, body=self._node(node.body))
        raise UnsupportedSyntax(self._source, str(node.kind))

    def _list(self, parts: list[Any]) -> Node:
        nodes: list[Node] = []
        chain: list[tuple[str, Node]] = []
        operator = ";"

        def close() -> None:
            if chain:
                first, rest = chain[0][1], tuple(chain[1:])
                nodes.append(AndOr(first=first, rest=rest) if rest else first)
                chain.clear()

        for part in parts:
            if part.kind != "operator":
                if operator not in {"&&", "||"}:
                    close()
                chain.append((operator, self._node(part)))
            elif part.op == "&":
                raise UnsupportedSyntax(self._source, "& (a background job)")
            else:
                operator = part.op
        close()
        return nodes[0] if len(nodes) == 1 else Commands(nodes=tuple(nodes))

    def _pipeline(self, node: Any) -> Node:
        commands: list[Node] = []
        merges: list[bool] = []
        negated = False
        for part in node.parts:
            if part.kind == "reservedword":
                negated = not negated
            elif part.kind == "pipe":
                merges.append(part.pipe == "|&")
            else:
                commands.append(self._node(part))
        return Pipeline(commands=tuple(commands), merges=tuple(merges), negated=negated)

    def _compound(self, node: Any) -> Node:
        redirects = tuple(self._redirect(one) for one in node.redirects)
        first = node.list[0]
        compound = self._token(first).node
        if compound is not None and not isinstance(compound, Counting):
            return replace(compound, redirects=redirects)
        if first.kind == "reservedword":
            return Group(body=self._node(node.list[1]), subshell=first.word == "(", redirects=redirects)
        if first.kind == "if":
            return self._if(list(_flat(first.parts)), redirects)
        if first.kind == "for":
            return self._for(first.parts, redirects)
        condition, body = (self._node(part) for part in first.parts if part.kind != "reservedword")
        return Loop(condition=condition, body=body, until=first.kind == "until", redirects=redirects)

    def _if(self, parts: list[Any], redirects: tuple[Redirect, ...]) -> If:
        branches: list[tuple[Node, Node]] = []
        otherwise = None
        bodies = [
            (part.word, parts[at + 1]) for at, part in enumerate(parts) if part.kind == "reservedword" and part.word != "fi"
        ]
        condition: Node | None = None
        for word, part in bodies:
            node = self._node(part)
            if word in {"if", "elif"}:
                condition = node
            elif word == "then" and condition is not None:
                branches.append((condition, node))
            else:
                otherwise = node
        return If(branches=tuple(branches), otherwise=otherwise, redirects=redirects)

    def _for(self, parts: list[Any], redirects: tuple[Redirect, ...]) -> For | CountingLoop:
        names = [self._token(part) for part in parts if part.kind == "word"]
        has_words = any(part.kind == "reservedword" and part.word == "in" for part in parts[:3])
        body = next(part for part in parts if part.kind not in {"word", "reservedword"})
        head = names[0].node
        if isinstance(head, Counting):
            return CountingLoop(head=head, body=self._node(body), redirects=redirects)
        words = tuple(word for token in names[1:] for word in braced(_word(token))) if has_words else None
        return For(name=names[0].text, words=words, body=self._node(body), line=names[0].line, redirects=redirects)

    def _redirect(self, node: Any) -> Redirect:
        number = self._by_place[node.pos[0] + self._start]
        token = self._tokens[number]
        default = 0 if token.text.startswith("<") else 1
        return Redirect(
            operator=token.text,
            fd=default if token.fd is None else token.fd,
            target=_word(self._tokens[number + 1]),
            body=token.body,
        )

    def _command(self, node: Any) -> Node:
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        pieces: list[str] = []
        parts = node.parts
        first: Token | None = None
        for part in parts:
            if part.kind == "redirect":
                redirects.append(self._redirect(part))
                continue
            token = self._token(part)
            first = first or token
            if part.kind == "assignment" and not words:  # bashlex sees one behind a brace, too
                assignments.append(_assignment(token))
            else:
                if not words and ELEMENT.match(token.text):
                    raise UnsupportedSyntax(self._source, "an array")
                words += braced(_word(token))
            pieces.append(self._source[token.start : token.end])
        return Simple(
            assignments=tuple(assignments),
            words=tuple(words),
            redirects=tuple(redirects),
            text=self._text(parts, pieces),
            line=first.line if first is not None else self._token(parts[0]).line,
        )

    def _text(self, parts: list[Any], pieces: list[str]) -> str:
        """Return a command as it was written, without its redirections."""
        if any(part.kind == "redirect" for part in parts):
            return " ".join(pieces)
        first, last = self._token(parts[0]), self._token(parts[-1])
        return self._source[first.start : last.end]


def _flat(parts: Sequence[Any]) -> Iterator[Any]:
    """Give the parts of ``if``; bashlex packs every further ``elif`` into the word of one."""
    for part in parts:
        if part.kind == "reservedword" and isinstance(part.word, list):
            yield from _flat(part.word)
        else:
            yield part


def _word(token: Token) -> Word:
    assert token.word is not None
    return token.word


def _assignment(token: Token) -> Assignment:
    word = _word(token)
    name, _, raw = word.raw.partition("=")
    first = word.parts[0]
    text = first.text if isinstance(first, Text) else ""
    # the first part holds the name and the sign at least
    rest = text[len(name) + 1 :]
    parts = (Text(rest), *word.parts[1:]) if rest else word.parts[1:]
    is_plain = all(isinstance(part, Text) for part in parts) and "~" not in raw
    plain = "".join(part.text for part in parts if isinstance(part, Text)) if is_plain else None
    return Assignment(name=name.removesuffix("+"), value=Word(raw=raw, parts=parts, plain=plain), appends=name.endswith("+"))
