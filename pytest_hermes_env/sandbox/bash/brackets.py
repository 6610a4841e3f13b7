"""Reads what stands between ``[[`` and ``]]``, which has a grammar of its own."""

from __future__ import annotations

import re
from collections.abc import Callable

from pytest_hermes_env.sandbox.bash.reading import Unreadable
from pytest_hermes_env.sandbox.bash.tree import Part, SyntaxProblem, Test, Text, Word, word_of
from pytest_hermes_env.sandbox.bash.words import WordReader

__all__ = ["ConditionReader"]

UNARY = frozenset(f"-{letter}" for letter in "abcdefghknoprstuvwxzGLNORS")
BINARY = frozenset({"=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "<", ">"})


class ConditionReader(WordReader):
    """Reads the conditions of a source."""

    def _condition(self) -> Test:
        test = self._alternatives()
        if self._next_in_condition() != "]]":
            raise Unreadable(self._conditional("syntax error in conditional expression"))
        self.at += 2
        return test

    def _next_in_condition(self) -> str:
        """Return what comes next inside ``[[ ]]``: an operator, ``]]``, the beginning of a word, or nothing at the end."""
        self._skip_lines()
        found = re.compile(r"\]\](?=[\s;&|)]|$)|&&|\|\||[()<>]|!(?=\s)").match(self.source, self.at)
        return found.group() if found else "word"

    def _alternatives(self) -> Test:
        return self._joined("||", self._conjunction)

    def _conjunction(self) -> Test:
        return self._joined("&&", self._single)

    def _joined(self, operator: str, read: Callable[[], Test]) -> Test:
        tests = [read()]
        while self._next_in_condition() == operator:
            self.at += 2
            tests.append(read())
        return tests[0] if len(tests) == 1 else Test(operator=operator, tests=tuple(tests))

    def _single(self) -> Test:
        kind = self._next_in_condition()
        if kind == "!":
            self.at += 1
            return Test(operator="!", tests=(self._single(),))
        if kind == "(":
            self.at += 1
            test = self._alternatives()
            if self._next_in_condition() != ")":
                raise Unreadable(self._conditional("expected `)'"))
            self.at += 1
            return test
        if kind != "word":
            raise Unreadable(self._conditional(f"unexpected token `{kind}' in conditional command"))
        first = self._word()
        behind = self.at
        following = self._next_in_condition()
        if first.raw in UNARY and following == "word" and not self._is_binary():
            return Test(operator=first.raw, words=(self._word(),))
        if first.raw in UNARY and following == "]]" and len(first.raw) == 2:  # noqa: PLR2004 - -f without a name
            raise Unreadable(self._conditional("unexpected argument `]]' to conditional unary operator"))
        if "\n" in self.source[behind : self.at] and following != "]]":
            self.at = behind
            raise Unreadable(self._conditional("unexpected token `newline', conditional binary operator expected"))
        if following in {"<", ">"}:
            self.at += 1
            operator = following
        elif following == "word":
            operator = self._word().raw
            if operator not in BINARY:
                raise Unreadable(self._conditional("conditional binary operator expected"))
        else:
            return Test(operator="-n", words=(first,))
        if self._next_in_condition() != "word" and operator != "=~":
            raise Unreadable(self._conditional(f"unexpected argument to conditional binary operator `{operator}'"))
        return Test(operator=operator, words=(first, self._expression() if operator == "=~" else self._word()))

    def _is_binary(self) -> bool:
        """Return whether the next word is an operator with something behind it, as in ``-f = -f``."""
        found = re.compile(r"(==?|!=|=~|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))\s+(?!\]\])").match(self.source, self.at)
        return found is not None

    def _expression(self) -> Word:
        """Read a regular expression: parentheses and bars are part of it."""
        source, start, depth = self.source, self.at, 0
        parts: list[Part] = []
        while self.at < len(source):
            letter = source[self.at]
            if letter in " \t\n" and not depth:
                break
            if self._quote(parts):
                continue
            depth += (letter == "(") - (letter == ")")
            parts.append(Text(letter))
            self.at += 1
        return word_of(source[start : self.at], parts)

    def _conditional(self, text: str) -> SyntaxProblem:
        return SyntaxProblem(line=self._line_at(min(self.at, len(self.source))), text=text)
