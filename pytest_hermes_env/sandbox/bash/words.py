"""Reads words: quotes, escapes, variables, substitutions.

Place in the flow: `Lexer` reads a word here wherever one begins. What stands inside a substitution is a script again.
"""

from __future__ import annotations

import re
from typing import Self

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.reading import Reading, Unreadable
from pytest_hermes_env.sandbox.bash.tree import ArithmeticPart, Parameter, Part, Script, Substitution, Text, Word, word_of
from pytest_hermes_env.sandbox.commands.escapes import unescaped

__all__ = ["WordReader"]

PLAIN = re.compile(r"[^\s\\'\"$`;&|()<>]+")
QUOTED_RUN = re.compile(r"[^\\\"$`]+")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SPECIAL = "@*#?$!-0123456789"
NAME_IN_BRACES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
OPERATOR_IN_BRACES = re.compile(r":[-=?+]|[-=?+]|##?|%%?|//|/#|/%|/|\^\^?|,,?|:|@")


class WordReader(Reading):
    """Reads the words of a source."""

    def script(self) -> Script:
        """Return the whole source as a script."""
        raise NotImplementedError  # the lexer's

    def _script_in_parentheses(self) -> Script:
        """Read a script and the parenthesis that closes it."""
        raise NotImplementedError  # the lexer's

    def _part_of(self, text: str) -> Self:
        return type(self)(text, self._build)

    def document(self) -> Word:
        """Return the whole source as the body of a here-document whose delimiter is not quoted."""
        parts: list[Part] = []
        self._quoted(parts, end="", escapes="$`\\")
        return word_of(self.source, parts)

    def _word(self) -> Word:
        source, size, start = self.source, len(self.source), self.at
        parts: list[Part] = []
        while self.at < size:
            if plain := PLAIN.match(source, self.at):
                self.at = plain.end()
                parts.append(Text(plain.group()))
                continue
            letter = source[self.at]
            if letter in "<>" and source.startswith("(", self.at + 1):
                raise UnsupportedSyntax(source, f"the process substitution {letter}(...)")
            if letter == "(" and self.at > start and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*\+?=", source[start : self.at]):
                raise UnsupportedSyntax(source, "an array")
            if letter in " \t\n;&|()<>":
                break
            if not self._quote(parts):
                parts.append(Text(letter))  # other white space
                self.at += 1
        return word_of(source[start : self.at], parts)

    def _quote(self, parts: list[Part]) -> bool:
        """Read a quotation, an escape or an expansion outside of double quotes; return whether one was there."""
        source, at = self.source, self.at
        letter = source[at]
        if letter == "\\":
            following = source[at + 1 : at + 2]
            self.at += 2 if following else 1
            if following != "\n":
                parts.append(Text(following or "\\", quoted=True))
        elif letter == "'":
            end = source.find("'", at + 1)
            if end < 0:
                raise Unreadable(self._broken_off("'", at))
            parts.append(Text(source[at + 1 : end], quoted=True))
            self.at = end + 1
        elif letter == '"':
            self.at += 1
            parts.append(Text("", quoted=True))
            self._quoted(parts, end='"', escapes='$`"\\')
        elif letter == "$":
            self._dollar(parts, quoted=False)
        elif letter == "`":
            self._backquotes(parts, quoted=False)
        else:
            return False
        return True

    def _quoted(self, parts: list[Part], *, end: str, escapes: str) -> None:
        """Read what stands in double quotes, up to and with ``end``; without one up to the end of the source."""
        source, size, start = self.source, len(self.source), self.at
        while self.at < size:
            letter = source[self.at]
            if letter == end:
                self.at += 1
                return
            if letter == "\\":
                following = source[self.at + 1 : self.at + 2]
                self.at += 2 if following else 1
                if following == "\n":
                    continue
                parts.append(Text(following if following and following in escapes else letter + following, quoted=True))
            elif letter == "$":
                self._dollar(parts, quoted=True)
            elif letter == "`":
                self._backquotes(parts, quoted=True)
            elif run := QUOTED_RUN.match(source, self.at):
                self.at = run.end()
                parts.append(Text(run.group(), quoted=True))
            else:  # a double quote in a here-document
                self.at += 1
                parts.append(Text(letter, quoted=True))
        if end:
            raise Unreadable(self._broken_off(end, start))

    def _backquotes(self, parts: list[Part], *, quoted: bool) -> None:
        source, start = self.source, self.at
        end = start + 1
        while end < len(source) and source[end] != "`":
            end += 2 if source[end] == "\\" else 1
        if end >= len(source):
            raise Unreadable(self._broken_off("`", start))
        inner = re.sub(r'\\([$`\\"])' if quoted else r"\\([$`\\])", r"\1", source[start + 1 : end], flags=re.DOTALL)
        self.at = end + 1
        before = "\n" * (self._line_at(start) - 1)
        parts.append(Substitution(script=self._part_of(before + inner).script(), quoted=quoted))

    def _dollar(self, parts: list[Part], *, quoted: bool) -> None:
        source, at = self.source, self.at
        following = source[at + 1 : at + 2]
        if following == "'" and not quoted:
            found = re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL).match(source, at + 2)
            if not found:
                raise Unreadable(self._broken_off("'", at))
            data, is_cut = unescaped(found.group()[:-1], octal="[0-7]{1,3}", quotes="'\"?")
            if is_cut:
                raise UnsupportedSyntax(source, "the escape \\c")
            parts.append(Text(data.partition(b"\0")[0].decode(errors="surrogateescape"), quoted=True))
            self.at = found.end()
        elif following == '"' and not quoted:
            self.at += 1  # a translated text: there are no translations
        elif following == "(":
            if source.startswith("((", at + 1) and (end := self._end_of_arithmetic(at + 3)):
                expression = self._part_of(source[at + 3 : end]).document()
                self.at = end + 2
                parts.append(ArithmeticPart(expression=expression, quoted=quoted))
                return
            self.at += 2
            try:
                script = self._script_in_parentheses()
            except Unreadable:
                if source.startswith("((", at + 1) and self.at >= len(source):
                    raise Unreadable(self._broken_off(")", at)) from None
                raise
            parts.append(Substitution(script=script, quoted=quoted))
        elif following == "{":
            self.at += 2
            parts.append(self._braces(quoted=quoted))
        elif following == "[":
            raise UnsupportedSyntax(source, "the arithmetic $[...]")
        elif name := NAME.match(source, at + 1):
            self.at = name.end()
            parts.append(Parameter(name=name.group(), raw=source[at : self.at], quoted=quoted))
        elif following and following in SPECIAL:
            self.at += 2
            parts.append(Parameter(name=following, raw=source[at : self.at], quoted=quoted))
        else:
            self.at += 1
            parts.append(Text("$", quoted=quoted))

    def _end_of_arithmetic(self, at: int) -> int:
        """Return where ``))`` closes what begins at ``at``, 0 when it does not."""
        depth = 0
        source = self.source
        while at < len(source):
            letter = source[at]
            if letter in "'\"" and (end := source.find(letter, at + 1)) > 0:
                at = end
            elif letter == "\\":
                at += 1
            elif letter == "(":
                depth += 1
            elif letter == ")":
                if not depth:
                    return at if source.startswith("))", at) else 0
                depth -= 1
            at += 1
        return 0

    def _braces(self, *, quoted: bool) -> Parameter:
        """Read ``${...}`` behind its opening brace."""
        source, start = self.source, self.at
        length = source.startswith("#", start) and not re.compile(r"#(?:\}|[-:?+=#%/])").match(source, start)
        indirect = source.startswith("!", start) and not source.startswith("!}", start)
        at = start + (length or indirect)
        name = NAME_IN_BRACES.match(source, at)
        self.at = name.end() if name else at
        if source.startswith("[", self.at):
            raise UnsupportedSyntax(source, "an array")
        if indirect and source.startswith(("*", "@"), self.at):
            raise UnsupportedSyntax(source, "${!...}")
        operator = OPERATOR_IN_BRACES.match(source, self.at)
        text = operator.group() if operator else ""
        argument = second = None
        if operator and name:
            self.at = operator.end()
            if text == "@":
                raise UnsupportedSyntax(source, "${...@...}")
            if text.startswith("/"):
                argument = self._argument(quoted=False, ends="/}")
                second = self._argument(quoted=False, ends="}") if source[self.at - 1] == "/" else None
            else:
                keeps_quotes = text.lstrip(":")[:1] in "-=?+"
                argument = self._argument(quoted=quoted and keeps_quotes, ends="}")
        elif source.startswith("}", self.at):
            self.at += 1
        else:  # bash tells of this when the command is reached
            name = None
            self._argument(quoted=quoted, ends="}")
        if indirect and name and (text or name.group() in SPECIAL):
            raise UnsupportedSyntax(source, "${!...}")
        return Parameter(
            name=name.group() if name else "",
            raw="${" + source[start : self.at],
            quoted=quoted,
            length=length,
            indirect=indirect,
            operator=text,
            argument=argument,
            second=second,
        )

    def _argument(self, *, quoted: bool, ends: str) -> Word:
        """Read the word inside braces, up to and with one of ``ends``."""
        source, size, start = self.source, len(self.source), self.at
        parts: list[Part] = []
        while self.at < size:
            letter = source[self.at]
            if letter in ends:
                self.at += 1
                return word_of(source[start : self.at - 1], parts)
            if quoted and letter == '"':
                self.at += 1
                continue
            if quoted and letter == "'":
                self.at += 1
                parts.append(Text("'", quoted=True))
            elif quoted and letter == "\\":
                following = source[self.at + 1 : self.at + 2]
                self.at += 2
                parts.append(Text(following if following in '$`"\\}' else letter + following, quoted=True))
            elif letter == "$":
                self._dollar(parts, quoted=quoted)
            elif letter == "`":
                self._backquotes(parts, quoted=quoted)
            elif quoted or not self._quote(parts):
                parts.append(Text(letter, quoted=quoted))
                self.at += 1
        raise Unreadable(self._broken_off("}", start))
