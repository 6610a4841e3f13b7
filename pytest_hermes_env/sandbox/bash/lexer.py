"""Reads a source into tokens: words with their parts, operators, redirections with their here-documents.

Place in the flow: `grammar` asks for tokens and gives their order to bashlex. What bashlex does not read (``[[ ]]``, ``(( ))``,
``case``, here-documents with a quoted delimiter) and everything inside words is read here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.brackets import ConditionReader
from pytest_hermes_env.sandbox.bash.reading import Unreadable
from pytest_hermes_env.sandbox.bash.tree import (
    ArithmeticCommand,
    Case,
    Clause,
    Condition,
    Counting,
    Parameter,
    Part,
    Script,
    Text,
    Token,
    Word,
)

__all__ = ["Lexer"]

OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|;|\|&|\||&(?!>)|\(|\)")
REDIRECTION = re.compile(r"([0-9]*)(<<<|<<-|<<|<&|<>|>>|>&|>\||<(?!\()|>(?!\()|(?<![0-9])&>>|(?<![0-9])&>)")
COMPOUND = re.compile(r"(?:\[\[|case)(?=\s)")
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
RESERVED = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "{", "}", "!", "function", "select", "coproc"}
    | {"esac", "in", "time"}
)
HEADS = frozenset({"for", "select", "function"})
"""Reserved words after which a name stands."""
BETWEEN = RESERVED - HEADS - {"in", "coproc"}
"""Reserved words behind which another may follow."""


@dataclass(slots=True, kw_only=True)
class _Run:
    """Tokens up to a certain end. ``starts``: a command may begin here; ``documents``: those that begin at the next line."""

    tokens: list[Token]
    stop: str
    starts: bool = True
    depth: int = 0
    documents: list[tuple[Token, Word]] = field(default_factory=list)


class Lexer(ConditionReader):
    """Reads one source into tokens."""

    def script(self) -> Script:
        """Return the whole source as a script."""
        tokens: list[Token] = []
        problem = None
        try:
            self._read(tokens, stop="")
        except Unreadable as unreadable:
            problem = unreadable.problem
        return self._build(tokens, self.source, problem)

    def _script_in_parentheses(self) -> Script:
        tokens: list[Token] = []
        self._read(tokens, stop=")")
        return self._built(tokens)

    def _built(self, tokens: Sequence[Token]) -> Script:
        script = self._build(tokens, self.source, None)
        if script.problem:
            raise Unreadable(script.problem)
        return script

    def _read(self, tokens: list[Token], *, stop: str) -> str:
        """Read tokens up to ``stop``: nothing, ``)`` or ``;;`` (which means the end of a clause, ``esac``, too); return the end."""
        run = _Run(tokens=tokens, stop=stop)
        while (end := self._next(run)) is None:
            pass
        return end

    def _next(self, run: _Run) -> str | None:
        """Read one token; return what ends the run, if that was it."""
        self._skip_blanks()
        at = self.at
        if at >= len(self.source):
            self._read_documents(run)
            if run.stop:
                raise Unreadable(self._broken_off(")") if run.stop == ")" else self._end_of_file())
            return ""
        line = self._line_at(at)
        if self.source[at] == "\n":
            self.at += 1
            run.tokens.append(Token("newline", "\n", at, at + 1, line))
            self._read_documents(run)
            run.starts = True
            return None
        if redirection := REDIRECTION.match(self.source, at):
            self._redirect(run, redirection, line)
            return None
        if node := self._compound(run, line):
            run.tokens.append(Token("compound", self.source[at : self.at], at, self.at, line, node=node))
            return None
        if operator := OPERATOR.match(self.source, at):
            return self._operator(run, operator, line)
        return self._plain(run, line)

    def _operator(self, run: _Run, operator: re.Match[str], line: int) -> str | None:
        text = operator.group()
        self.at = operator.end()
        if not run.depth and (text == run.stop or (run.stop == ";;" and text in {";&", ";;&"})):
            self._read_documents(run)
            return text
        run.depth += (text == "(") - (text == ")")
        run.tokens.append(Token("operator", text, operator.start(), self.at, line))
        run.starts = True
        return None

    def _plain(self, run: _Run, line: int) -> str | None:
        at, word = self.at, self._word()
        if run.starts and run.stop == ";;" and word.raw == "esac":
            return "esac"
        token = Token("word", word.raw, at, self.at, line, word=word)
        token.is_reserved = word.raw in RESERVED and (run.starts or _follows_name(run.tokens))
        token.is_assignment = run.starts and ASSIGNMENT.match(word.raw) is not None
        run.tokens.append(token)
        run.starts = (token.is_reserved and word.raw in BETWEEN) or token.is_assignment
        return None

    def _compound(self, run: _Run, line: int) -> Case | Condition | ArithmeticCommand | Counting | None:
        """Read a command that bashlex does not know, where one begins."""
        if self.source.startswith("((", self.at):
            if run.tokens and run.tokens[-1].text == "for":
                return self._counting(line)
            return self._arithmetic_command(line) if run.starts else None
        found = COMPOUND.match(self.source, self.at) if run.starts else None
        if found is None:
            return None
        self.at = found.end()
        return self._case(line) if found.group() == "case" else Condition(test=self._condition(), line=line)

    def _redirect(self, run: _Run, redirection: re.Match[str], line: int) -> None:
        fd, operator = redirection.groups()
        self.at = redirection.end()
        token = Token("redirect", operator, redirection.start(), self.at, line, fd=int(fd) if fd else None)
        run.tokens.append(token)
        self._skip_blanks()
        if self.at >= len(self.source) or self.source[self.at] in "\n;&|()<>":
            return  # the grammar refuses it
        at, line = self.at, self._line_at(self.at)
        word = self._word()
        run.tokens.append(Token("word", word.raw, at, self.at, line, word=word))
        if operator in {"<<", "<<-"}:
            run.documents.append((token, word))

    def _read_documents(self, run: _Run) -> None:
        """Read the here-documents that begin at this line."""
        for token, word in run.documents:
            delimiter = "".join(part.text if isinstance(part, Text) else _part_source(part) for part in word.parts)
            body, is_whole = self._document_up_to(delimiter, strips=token.text == "<<-")
            token.warning = None if is_whole else (token.line, delimiter)
            if re.search(r"['\"\\]", word.raw):
                token.body = Word(raw=body, parts=(Text(body, quoted=True),), plain=body)
            else:
                token.body = self._part_of(body).document()
        run.documents.clear()

    def _document_up_to(self, delimiter: str, *, strips: bool) -> tuple[str, bool]:
        """Return the lines before the delimiter, and whether it was there."""
        source = self.source
        lines: list[str] = []
        while self.at < len(source):
            end = source.find("\n", self.at)
            end = len(source) if end < 0 else end
            text = source[self.at : end].lstrip("\t") if strips else source[self.at : end]
            self.at = min(end + 1, len(source))
            if text == delimiter:
                return "".join(lines), True
            lines.append(text + "\n")
        return "".join(lines), False

    def _arithmetic_command(self, line: int) -> ArithmeticCommand | None:
        at, end = self.at + 2, self._end_of_arithmetic(self.at + 2)
        if not end:
            return None
        self.at = end + 2
        return ArithmeticCommand(expression=self._part_of(self.source[at:end]).document(), line=line)

    def _counting(self, line: int) -> Counting | None:
        """Read the head of a loop that counts."""
        at, end = self.at + 2, self._end_of_arithmetic(self.at + 2)
        parts = self.source[at:end].split(";") if end else []
        if len(parts) != 3:  # noqa: PLR2004 - where it begins, how long it goes on, its step
            return None
        self.at = end + 2
        first, condition, step = (self._part_of(part).document() for part in parts)
        return Counting(first=first, condition=condition, step=step, line=line)

    def _case(self, line: int) -> Case:
        self._skip_lines()
        word = self._word()
        self._skip_lines()
        if self._word().raw != "in":
            raise UnsupportedSyntax(self.source, "case")
        clauses: list[Clause] = []
        while True:
            self._skip_lines()
            if re.compile(r"esac(?=[\s;&|)]|$)").match(self.source, self.at):
                self.at += 4
                break
            if self.source.startswith("(", self.at):
                self.at += 1
            patterns = [self._pattern()]
            while self.source.startswith("|", self.at):
                self.at += 1
                patterns.append(self._pattern())
            if not self.source.startswith(")", self.at):
                if self.at >= len(self.source):
                    raise Unreadable(self._end_of_file())
                raise UnsupportedSyntax(self.source, "case")
            self.at += 1
            tokens: list[Token] = []
            end = self._read(tokens, stop=";;")
            clauses.append(Clause(patterns=tuple(patterns), body=self._built(tokens), end=end))
            if end == "esac":
                break
        return Case(word=word, clauses=tuple(clauses), line=line)

    def _pattern(self) -> Word:
        self._skip_lines()
        word = self._word()
        self._skip_blanks()
        return word


def _follows_name(tokens: Sequence[Token]) -> bool:
    """Return whether the last word is the name in the head of a loop or a function."""
    before = [token for token in tokens[-8:] if token.kind != "newline"][-2:]
    return len(before) > 1 and before[0].is_reserved and before[0].text in HEADS


def _part_source(part: Part) -> str:
    """Return an expansion as it was written, where a here-document's delimiter holds one."""
    return part.raw if isinstance(part, Parameter) else ""
