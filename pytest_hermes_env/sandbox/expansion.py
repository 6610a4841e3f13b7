"""Turns the words of a command line into what a command is given: quotes, variables, substitutions, globs.

Place in the flow: `Shell` reads a line with bashlex for its structure, and hands the source of each word to `Expander`.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.commands.words import unescape
from pytest_hermes_env.sandbox.files import HOME, Files

__all__ = ["Expander", "UnboundVariable"]

Letters: TypeAlias = "list[tuple[str, bool]]"
"""Characters, each with whether it was quoted."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9?$#@*!]")
_IN_BRACES = re.compile(r"(?P<length>#)?(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9?#@*])(?P<rest>.*)", re.DOTALL)
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)|([a-zA-Z])\.\.([a-zA-Z])")


class UnboundVariable(Exception):
    """A variable without a value, under ``set -u``."""


@dataclass(kw_only=True)
class Expander:
    """Expands words. ``variables`` are the shell's, ``substitute`` runs a command and gives what it wrote."""

    files: Files
    cwd: str
    variables: dict[str, str]
    substitute: Callable[[str], str]
    line: str
    is_strict: bool = False

    def words(self, raw: str) -> list[str]:
        """Return the fields that one word of the source becomes: none, one or several."""
        return [text for piece in self._braces(raw) for field in self._fields(piece) for text in self._globbed(field)]

    def text(self, raw: str) -> str:
        """Return a word as one text, neither split nor globbed: of an assignment, or in a here-document."""
        return "".join(letter for field in self._fields(raw, splits=False) for letter, _ in field)

    def here_document(self, body: str) -> str:
        """Return the body of a here-document whose delimiter is not quoted."""
        letters: Letters = []
        self._double_quoted(body, letters, specials="$`\\")
        return "".join(letter for letter, _ in letters)

    def pattern(self, raw: str) -> str:
        """Return a word as a glob, in which what was quoted means itself."""
        letters = [pair for field in self._fields(raw, splits=False) for pair in field]
        return "".join(f"[{letter}]" if is_quoted and letter in "*?[" else letter for letter, is_quoted in letters)

    # Braces

    def _braces(self, raw: str) -> list[str]:
        """Return the words that ``{a,b}`` and ``{1..3}`` make of one."""
        found = self._first_brace(raw)
        if found is None:
            return [raw]
        start, end, parts = found
        return [raw[:start] + part + rest for part in parts for rest in self._braces(raw[end:])]

    def _first_brace(self, raw: str) -> tuple[int, int, list[str]] | None:
        at = 0
        while at < len(raw):
            letter = raw[at]
            if letter in "'\"\\$`":
                at = self._behind(raw, at)
            elif letter == "{":
                parts, end = self._parts_of_brace(raw, at)
                if parts:
                    return at, end, [one for part in parts for one in self._braces(part)]
                at += 1
            else:
                at += 1
        return None

    def _parts_of_brace(self, raw: str, start: int) -> tuple[list[str], int]:
        depth, at, begin, parts = 0, start, start + 1, []
        while at < len(raw):
            letter = raw[at]
            if letter in "'\"\\$`":
                at = self._behind(raw, at)
                continue
            if letter == "{":
                depth += 1
            elif letter == "," and depth == 1:
                parts.append(raw[begin:at])
                begin = at + 1
            elif letter == "}":
                depth -= 1
                if depth == 0:
                    inner = raw[start + 1 : at]
                    if parts:
                        return [*parts, raw[begin:at]], at + 1
                    return self._range(inner), at + 1
            at += 1
        return [], start

    def _range(self, inner: str) -> list[str]:
        found = _RANGE.fullmatch(inner)
        if not found:
            return []
        if found[1]:
            first, last = int(found[1]), int(found[2])
            return [str(number) for number in range(first, last + (1 if last >= first else -1), 1 if last >= first else -1)]
        first, last = ord(found[3]), ord(found[4])
        return [chr(code) for code in range(first, last + (1 if last >= first else -1), 1 if last >= first else -1)]

    def _behind(self, raw: str, at: int) -> int:
        """Return the place behind a quoted part, an escape or a substitution."""
        letter = raw[at]
        if letter == "\\":
            return at + 2
        if letter == "'":
            return self._find(raw, "'", at + 1) + 1
        if letter == '"':
            return self._end_of_double(raw, at + 1) + 1
        if letter == "`":
            return self._find(raw, "`", at + 1) + 1
        if raw.startswith("$(", at):
            return self._end_of_parenthesis(raw, at + 2) + 1
        if raw.startswith("${", at):
            return self._find(raw, "}", at + 2) + 1
        return at + 1

    def _find(self, raw: str, letter: str, at: int) -> int:
        found = raw.find(letter, at)
        return found if found >= 0 else len(raw)

    def _end_of_double(self, raw: str, at: int) -> int:
        while at < len(raw) and raw[at] != '"':
            at = self._behind(raw, at) if raw[at] in "\\$`" else at + 1
        return at

    def _end_of_parenthesis(self, raw: str, at: int) -> int:
        while at < len(raw) and raw[at] != ")":
            if raw[at] == "(":
                at = self._end_of_parenthesis(raw, at + 1) + 1
            else:
                at = self._behind(raw, at) if raw[at] in "\\$`'\"" else at + 1
        return at

    # Quotes, variables, substitutions

    def _fields(self, raw: str, *, splits: bool = True) -> list[Letters]:
        fields: list[Letters] = []
        current: Letters | None = None

        def letters() -> Letters:
            nonlocal current
            if current is None:
                current = []
            return current

        at = 0
        if raw == "~" or raw.startswith("~/"):
            letters().extend((letter, True) for letter in self.variables.get("HOME", HOME))
            at = 1
        while at < len(raw):
            letter, end = raw[at], self._behind(raw, at) if raw[at] in "\\'\"`$" else at + 1
            if letter == "\\":
                if raw[at + 1 : at + 2] != "\n":
                    letters().append((raw[at + 1 : at + 2] or "\\", True))
            elif letter == "'":
                letters().extend((one, True) for one in raw[at + 1 : end - 1])
            elif letter == '"':
                self._double_quoted(raw[at + 1 : end - 1], letters())
            elif raw.startswith("$'", at):
                end = self._end_of_dollar_quote(raw, at + 2)
                data, _ = unescape(raw[at + 2 : end].replace("\\'", "'").replace('\\"', '"'), octal_needs_zero=False)
                letters().extend((one, True) for one in data.decode(errors="surrogateescape"))
                end += 1
            elif raw.startswith('$"', at):
                raise UnsupportedSyntax(self.line, 'the quoting $"…"')
            elif letter in "$`":
                value, end = self._substituted(raw, at)
                if value is None:
                    letters().append((letter, False))
                elif not splits:
                    letters().extend((one, True) for one in value)
                else:
                    pieces = value.split()
                    if value[:1].isspace() and current is not None:
                        fields.append(current)
                        current = None
                    for number, piece in enumerate(pieces):
                        if number and current is not None:
                            fields.append(current)
                            current = None
                        letters().extend((one, False) for one in piece)
                    if pieces and value[-1:].isspace() and current is not None:
                        fields.append(current)
                        current = None
            else:
                letters().append((letter, False))
            at = end
        return fields if current is None else [*fields, current]

    @staticmethod
    def _end_of_dollar_quote(raw: str, at: int) -> int:
        while at < len(raw) and raw[at] != "'":
            at += 2 if raw[at] == "\\" else 1
        return at

    def _double_quoted(self, inner: str, letters: Letters, specials: str = '$`"\\') -> None:
        at = 0
        while at < len(inner):
            letter = inner[at]
            if letter == "\\":
                following = inner[at + 1 : at + 2]
                if following == "\n":
                    pass
                elif following and following in specials:
                    letters.append((following, True))
                else:
                    letters += [("\\", True)] + ([(following, True)] if following else [])
                at += 2
            elif letter in "$`":
                value, at = self._substituted(inner, at)
                letters += [(letter, True)] if value is None else [(one, True) for one in value]
            else:
                letters.append((letter, True))
                at += 1

    def _substituted(self, raw: str, at: int) -> tuple[str | None, int]:
        """Return the value of what begins at a dollar sign or backquote, None when that means itself, and the place behind it."""
        if raw[at] == "`":
            end = self._find(raw, "`", at + 1)
            return self.substitute(re.sub(r"\\([$`\\])", r"\1", raw[at + 1 : end])), end + 1
        if raw.startswith("$((", at):
            raise UnsupportedSyntax(self.line, "arithmetic")
        if raw.startswith("$(", at):
            end = self._end_of_parenthesis(raw, at + 2)
            return self.substitute(raw[at + 2 : end]), end + 1
        if raw.startswith("${", at):
            end = self._end_of_braces(raw, at + 2)
            return self._braced(raw[at + 2 : end]), end + 1
        found = _NAME.match(raw, at + 1)
        if not found:
            return None, at + 1
        return self._value(found.group()), found.end()

    def _end_of_braces(self, raw: str, at: int) -> int:
        depth = 1
        while at < len(raw):
            if raw[at] == "\\":
                at += 1
            elif raw[at] == "{":
                depth += 1
            elif raw[at] == "}":
                depth -= 1
                if not depth:
                    return at
            at += 1
        return at

    def _value(self, name: str) -> str:
        if name in self.variables:
            return self.variables[name]
        if name == "#":
            return "0"
        if name in {"@", "*", "!"} or name.isdigit():
            return ""
        if name == "$":
            return "1"
        if self.is_strict:
            raise UnboundVariable(name)
        return ""

    def _braced(self, inner: str) -> str:
        found = _IN_BRACES.fullmatch(inner)
        if not found:
            raise UnsupportedSyntax(self.line, f"the expansion ${{{inner}}}")
        name, rest = found["name"], found["rest"]
        if found["length"]:
            if rest:
                raise UnsupportedSyntax(self.line, f"the expansion ${{{inner}}}")
            return str(len(self._value(name)))
        if not rest:
            return self._value(name)
        has_colon = rest.startswith(":")
        operator, word = (rest[1:2], rest[2:]) if has_colon else (rest[:1], rest[1:])
        value = self.variables.get(name)
        is_missing = not value if has_colon else value is None
        if operator == "-":
            return self.text(word) if is_missing else value or ""
        if operator == "+":
            return "" if is_missing else self.text(word)
        if operator == "=":
            if is_missing:
                self.variables[name] = self.text(word)
            return self.variables[name]
        if not has_colon and operator in "#%":
            return self._trimmed(value or "", operator, word)
        if not has_colon and operator == "/":
            return self._replaced(value or "", word)
        if has_colon and (cut := re.fullmatch(r"\s*(\d+)(?::(\d+))?", rest[1:])):
            start = int(cut[1])
            return (value or "")[start : start + int(cut[2])] if cut[2] else (value or "")[start:]
        raise UnsupportedSyntax(self.line, f"the expansion ${{{inner}}}")

    def _trimmed(self, value: str, operator: str, word: str) -> str:
        is_longest = word.startswith(operator)
        pattern = self.pattern(word[1:] if is_longest else word)
        lengths = range(len(value) + 1)
        for length in reversed(lengths) if is_longest else lengths:
            part = value[:length] if operator == "#" else value[len(value) - length :]
            if fnmatch.fnmatchcase(part, pattern):
                return value[length:] if operator == "#" else value[: len(value) - length]
        return value

    def _replaced(self, value: str, word: str) -> str:
        is_every = word.startswith("/")
        pattern, _, replacement = word.removeprefix("/").partition("/")
        glob = self.pattern(pattern)
        if re.search(r"[*?\[]", glob):
            raise UnsupportedSyntax(self.line, "a glob in ${…/…/…}")
        return value.replace(glob, self.text(replacement), -1 if is_every else 1) if glob else value

    # Globs

    def _globbed(self, field: Letters) -> list[str]:
        text = "".join(letter for letter, _ in field)
        if not any(letter in "*?[" and not is_quoted for letter, is_quoted in field):
            return [text]
        pattern = "".join(f"[{letter}]" if is_quoted and letter in "*?[" else letter for letter, is_quoted in field)
        return self._matches(pattern) or [text]

    def _matches(self, pattern: str) -> list[str]:
        found = ["/" if pattern.startswith("/") else ""]
        parts = [part for part in pattern.split("/") if part]
        for number, part in enumerate(parts):
            found = [name for above in found for name in self._entries(above, part, is_last=number == len(parts) - 1)]
        return sorted(found)

    def _entries(self, above: str, part: str, *, is_last: bool) -> list[str]:
        directory = self.files.resolve(above or ".", self.cwd)
        if not self.files.is_dir(directory):
            return []
        names = self.files.list_directory(directory)
        shown = [
            name for name in names if fnmatch.fnmatchcase(name, part) and (not name.startswith(".") or part.startswith("."))
        ]
        if part in {".", ".."}:
            shown = [part]
        joined = [posixpath.join(above, name) for name in shown]
        return joined if is_last else [path for path in joined if self.files.is_dir(self.files.resolve(path, self.cwd))]
