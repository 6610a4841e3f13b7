"""Turns words into what a command is given: variables, substitutions, arithmetic, splitting, globs.

Place in the flow: `runner` hands over each word when it is reached, and runs the substitutions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.arithmetic import ArithmeticProblem, Unbound, evaluated
from pytest_hermes_env.sandbox.bash.globs import escaped, expression, matching_paths
from pytest_hermes_env.sandbox.bash.state import Abandoned, Ended, State
from pytest_hermes_env.sandbox.bash.tree import ArithmeticPart, Parameter, Part, Script, Text, Word
from pytest_hermes_env.sandbox.files import HOME, Files

__all__ = ["Expander"]

Field: TypeAlias = "list[tuple[str, bool]]"
"""The pieces of one word that a command is given, each with whether it means itself alone."""

BLANKS = " \t\n"
NEVER = r"[^\s\S]"
"""The expression of a letter that there is not."""
RESTLESS = frozenset(
    {"RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "BASHPID", "PPID", "LINENO", "BASH_SOURCE"}
)
"""Variables of bash that change by themselves or that this shell cannot know."""
FIXED = {
    "UID": "0",
    "EUID": "0",
    "HOSTNAME": "sandbox",
    "BASH": "/usr/bin/bash",
    "BASH_VERSION": "5.2.15(1)-release",
    "OSTYPE": "linux-gnu",
}
PROCESS_ID = "4000"


class Expander:
    """Expands words for one shell. ``substitute`` runs a script and gives what it wrote; ``complain`` writes to standard error."""

    def __init__(
        self, files: Files, state: State, *, substitute: Callable[[Script], str], complain: Callable[[str], None]
    ) -> None:
        self.files = files
        self.state = state
        self._substitute = substitute
        self._complain = complain

    def words(self, words: Iterable[Word]) -> list[str]:
        """Return the words that these become, of which each may become none, one or several."""
        out: list[str] = []
        for word in words:
            if word.plain is not None:
                out.append(word.plain)
                continue
            for field in self._fields(word):
                out += self._found(field)
        return out

    def text(self, word: Word) -> str:
        """Return a word as one text, neither split nor a glob: of an assignment, a here-document."""
        if word.plain is not None:
            return word.plain
        return "".join(text for text, _ in self._pieces(word))

    def assigned(self, word: Word) -> str:
        """Return the value of an assignment, in which a tilde may follow a colon, too."""
        text = self.text(word)
        if ":~" in word.raw and all(isinstance(part, Text) and not part.quoted for part in word.parts):
            home = self.state.variables.get("HOME", HOME)
            return re.sub(r":~(?=[:/]|$)", lambda _: f":{home}", text)
        return text

    def pattern(self, word: Word) -> str:
        """Return a word as a pattern, in which what was quoted means itself."""
        return "".join(escaped(text) if literal else text for text, literal in self._pieces(word))

    def regex(self, word: Word) -> str:
        """Return a word as a regular expression, in which what was quoted means itself."""
        return "".join(re.escape(text) if literal else text for text, literal in self._pieces(word))

    def number(self, word: Word) -> int:
        """Return the value of an arithmetic expression. Raises: ArithmeticProblem."""
        return self.evaluated(self.text(word))

    def evaluated(self, text: str) -> int:
        """Return the value of an arithmetic expression that is expanded. Raises: ArithmeticProblem."""
        try:
            return evaluated(text, self.state)
        except Unbound as unbound:
            self._say(f"{unbound}: unbound variable")
            raise Ended(self.state.code_without_value) from None

    # Fields

    def _pieces(self, word: Word) -> Field:
        """Return a word in pieces that are not split."""
        pieces: Field = []
        for number, part in enumerate(word.parts):
            if isinstance(part, Text):
                pieces += self._text_pieces(part, word, is_first=number == 0)
            else:
                values = self._value(part, word)
                separator = self._separator() if _is_star(part) else " "
                pieces.append((separator.join(values) if isinstance(values, list) else values, part.quoted))
        return pieces

    def _text_pieces(self, part: Text, word: Word, *, is_first: bool) -> Field:
        if not is_first or part.quoted or "~" not in part.text:
            return [(part.text, part.quoted)]
        begins = re.match(r"[A-Za-z_][A-Za-z0-9_]*\+?=(?=~)", part.text)
        before = begins.group() if begins else ""
        home = self._home(part.text[len(before) :], word)
        return [(part.text, False)] if home is None else [(before, False), (home[0], True), (home[1], False)]

    def _home(self, text: str, word: Word) -> tuple[str, str] | None:
        """Return what a leading tilde means, and the rest; None when it means itself."""
        if not text.startswith("~"):
            return None
        name, slash, rest = text[1:].partition("/")
        if not slash and len(word.parts) > 1:
            return None
        if name == "":
            found: str | None = self.state.variables.get("HOME", HOME)
        elif name in {"+", "-"}:
            found = self.state.variables.get("PWD" if name == "+" else "OLDPWD")
        else:
            found = HOME if name == "root" else None
        return None if found is None else (found, slash + rest)

    def _fields(self, word: Word) -> list[Field]:
        fields: list[Field] = []
        field = self._added(word, fields, None, splits=False)
        return fields if field is None else [*fields, field]

    def _added(self, word: Word, fields: list[Field], field: Field | None, *, splits: bool) -> Field | None:
        """Add a word, or with ``splits`` that of ``${name:-word}``, whose own text is split, too; return the open field."""
        for number, part in enumerate(word.parts):
            if isinstance(part, Text) and splits and not part.quoted:
                field = self._split(part.text, fields, field)
            elif isinstance(part, Text):
                field = [*(field or []), *self._text_pieces(part, word, is_first=number == 0)]
            elif isinstance(part, Parameter) and not part.quoted and (chosen := self._chosen(part)) is not None:
                field = self._added(chosen, fields, field, splits=True)
            else:
                values = self._value(part, word)
                if isinstance(values, list):
                    field = self._each(values, part.quoted, fields, field)
                elif part.quoted:
                    field = [*(field or []), (values, True)]
                else:
                    field = self._split(values, fields, field)
        return field

    def _each(self, values: list[str], quoted: bool, fields: list[Field], field: Field | None) -> Field | None:
        """Add ``$@``: each value is a field of its own."""
        if quoted and not values and field == [("", True)]:
            return None
        for number, value in enumerate(values):
            if number and field is not None:
                fields.append(field)
                field = None
            field = [*(field or []), (value, True)] if quoted else self._split(value, fields, field)
        return field

    def _split(self, text: str, fields: list[Field], field: Field | None) -> Field | None:
        """Add a text that IFS cuts; return the field that is still open."""
        separators = self.state.variables.get("IFS", BLANKS)
        if not separators:
            return [*(field or []), (text, False)] if text else field
        blanks = "".join(letter for letter in separators if letter in BLANKS)
        blank = f"[{re.escape(blanks)}]" if blanks else NEVER
        other = f"[{re.escape(separators)}]" if blanks != separators else NEVER
        for number, piece in enumerate(re.split(f"({blank}*(?!{blank}){other}{blank}*|{blank}+)", text)):
            if number % 2 == 0:
                field = [*(field or []), (piece, False)] if piece else field
            elif field is not None or piece.strip(blanks):
                fields.append(field or [("", True)])
                field = None
        return field

    def _found(self, field: Field) -> list[str]:
        """Return the paths that a field finds, or its text."""
        text = "".join(piece for piece, _ in field)
        if "f" in self.state.options or not any(not literal and re.search(r"[*?\[]", piece) for piece, literal in field):
            return [text]
        pattern = "".join(escaped(piece) if literal else piece for piece, literal in field)
        return matching_paths(pattern, self.files, self.state.cwd) or [text]

    # Values

    def _say(self, text: str) -> None:
        self._complain(f"{self.state.prefix}{text}\n")

    def _separator(self) -> str:
        return self.state.variables.get("IFS", BLANKS)[:1]

    def _value(self, part: Part, word: Word) -> str | list[str]:
        if isinstance(part, Parameter):
            return self._parameter(part, word)
        if isinstance(part, ArithmeticPart):
            try:
                return str(self.number(part.expression))
            except ArithmeticProblem as problem:
                self._say(f"{problem}")
                raise Abandoned from None
        if isinstance(part, Text):
            return part.text
        return self._substitute(part.script)

    def _looked_up(self, name: str) -> str | list[str] | None:
        state = self.state
        if name in state.variables:
            return state.variables[name]
        if name.isdigit():
            number = int(name)
            if not number:
                return state.name
            return state.arguments[number - 1] if number <= len(state.arguments) else None
        if name in RESTLESS:
            raise UnsupportedSyntax(f"${name}", "a variable that bash computes")
        if name in {"@", "*"}:
            return list(state.arguments)
        letters = "".join(sorted(option for option in state.options if len(option) == 1))
        special = {"?": str(state.status), "#": str(len(state.arguments)), "$": PROCESS_ID, "-": f"{letters}hBc"}
        return special.get(name) or FIXED.get(name)

    def _parameter(self, part: Parameter, word: Word) -> str | list[str]:
        state = self.state
        if not part.name:
            self._say(f"{word.raw}: bad substitution")
            raise Abandoned
        if (chosen := self._chosen(part)) is not None:
            return self.text(chosen)
        value = self._looked_up(part.name)
        if part.indirect and isinstance(value, str):
            value = self._looked_up(value) if re.fullmatch(r"[A-Za-z_0-9]+", value) else None
        if value is None:
            if part.operator.lstrip(":") in {"-", "+", "="}:
                return ""
            if "u" in state.options and part.name != "!":
                sign = "$" if part.name.isdigit() else ""
                self._say(f"{sign}{part.name}: unbound variable")
                raise Ended(state.code_without_value)
            value = ""
        if part.length:
            return str(len(value))
        if part.name == "*" and part.quoted and isinstance(value, list) and not part.operator:
            return self._separator().join(value)
        if not part.operator or part.operator.lstrip(":") in {"-", "+", "=", "?"}:
            return value
        if isinstance(value, list):
            return self._cut_list(value, part) if part.operator == ":" else [self._changed(one, part) for one in value]
        return self._changed(value, part)

    def _chosen(self, part: Parameter) -> Word | None:
        """Return the word that ``${name:-word}`` and its like put in the place of a value, None when there is another."""
        operator = part.operator.lstrip(":") if part.operator != ":" else ""
        if operator not in {"-", "+", "=", "?"} or part.argument is None:
            return None
        value = self._looked_up(part.name) if part.name else None
        if isinstance(value, list):
            value = " ".join(value) if value else None
        is_missing = value is None or (part.operator.startswith(":") and not value)
        if operator == "+":
            return NOTHING if is_missing else part.argument
        if not is_missing:
            return None
        if operator == "-":
            return part.argument
        if operator == "=":
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part.name):
                self._say(f"${part.name}: cannot assign in this way")
                raise Abandoned
            self.state.variables[part.name] = self.text(part.argument)
            return None
        default = "parameter null or not set" if part.operator.startswith(":") else "parameter not set"
        said = self.text(part.argument) if part.argument.parts else default
        self._say(f"{part.name}: {said}")
        raise Ended(self.state.code_without_value)

    def _changed(self, value: str, part: Parameter) -> str:
        argument, operator = part.argument, part.operator
        if argument is None:
            return value
        if operator in {"#", "##", "%", "%%"}:
            return _trimmed(value, operator, expression(self.pattern(argument)))
        if operator.startswith("/"):
            second = self._pieces(part.second) if part.second is not None else []
            return _replaced(value, operator, expression(self.pattern(argument)), second)
        if operator[:1] in {"^", ","}:
            return _with_case(value, operator, expression(self.pattern(argument)) if argument.parts else ".")
        return self._cut(value, part)

    def _numbers(self, part: Parameter) -> tuple[int, int | None, str]:
        """Return the offset and the length of ``${name:offset:length}``, and the length's text."""
        first, colon, second = self.text(part.argument or NOTHING).partition(":")
        try:
            return self.evaluated(first), self.evaluated(second) if colon else None, second
        except ArithmeticProblem as problem:
            self._say(f"{part.name}: {problem}")
            raise Abandoned from None

    def _cut_list(self, values: list[str], part: Parameter) -> list[str]:
        """Return ``${@:offset:length}``, in which the first argument has the number 1."""
        start, size, second = self._numbers(part)
        numbered = [self.state.name, *values]
        if start < 0:
            start += len(numbered)
        if not 0 <= start <= len(numbered):
            return []
        if size is not None and size < 0:
            self._say(f"{second}: substring expression < 0")
            raise Abandoned
        return numbered[start:] if size is None else numbered[start : start + size]

    def _cut(self, value: str, part: Parameter) -> str:
        """Return ``${name:offset:length}``."""
        start, size, second = self._numbers(part)
        if start < 0:
            start += len(value)
        if not 0 <= start <= len(value):
            return ""
        if size is None:
            return value[start:]
        end = start + size if size >= 0 else len(value) + size
        if end < start:
            self._say(f"{second}: substring expression < 0")
            raise Abandoned
        return value[start:end]


NOTHING = Word(raw="", parts=(), plain="")
"""What ``${name:+word}`` is when the name has no value."""


def _is_star(part: Part) -> bool:
    return isinstance(part, Parameter) and part.name == "*"


def _trimmed(value: str, operator: str, regex: str) -> str:
    compiled = re.compile(regex, re.DOTALL)
    places = range(len(value) + 1)
    if operator in {"#", "##"}:
        for end in places if operator == "#" else reversed(places):
            if compiled.fullmatch(value, 0, end):
                return value[end:]
    else:
        for start in reversed(places) if operator == "%" else places:
            if compiled.fullmatch(value, start):
                return value[:start]
    return value


def _replaced(value: str, operator: str, regex: str, replacement: Field) -> str:
    """Replace what a pattern finds; an ampersand that is not quoted means what was found."""
    if not regex:
        return value

    def put(found: re.Match[str]) -> str:
        return "".join(text if literal else text.replace("&", found.group()) for text, literal in replacement)

    anchored = {"/#": rf"\A(?:{regex})", "/%": rf"(?:{regex})\Z"}.get(operator, regex)
    return re.sub(anchored, put, value, count=0 if operator == "//" else 1, flags=re.DOTALL)


def _with_case(value: str, operator: str, regex: str) -> str:
    compiled = re.compile(regex, re.DOTALL)
    change = str.upper if operator[0] == "^" else str.lower
    size = len(value) if len(operator) > 1 else 1
    return "".join(change(one) if compiled.fullmatch(one) else one for one in value[:size]) + value[size:]
