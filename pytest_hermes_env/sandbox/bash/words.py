"""Reads one word of a command line: quotes, variables, substitutions, braces.

Source: bash 5.2, parse.y, subst.c and braces.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_hermes_env.sandbox.bash.syntax import Expansion, Part, Script, Text, Word
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["COMPUTED", "WordReader", "braces_expanded"]

PLAIN = re.compile(r"[^ \t\n;&|<>()$`\\\"']+")
IN_DOUBLE_QUOTES = re.compile(r"[^$`\\\"]+")
IN_DOCUMENT = re.compile(r"[^$`\\]+")
IN_BRACES = re.compile(r"[^}$`\\\"'{\n]+")
IN_ARITHMETIC = re.compile(r"[^()$`\\\"'{};\n]+")
NAMED = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|\?)")
BRACED = re.compile(r"\$\{(#?)([A-Za-z_][A-Za-z0-9_]*)")
OPERATOR = re.compile(r":?[-+]|##?|%%?")
BRACES = re.compile(r"([\w./*-]*)\{(?:([\w./*-]*(?:,[\w./*-]*)+)|([1-9]\d{0,2})\.\.([1-9]\d{0,2}))\}([\w./*-]*)", re.ASCII)
LETTER = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([abefnrtv\\'\"]))")
LETTERS = {"a": 7, "b": 8, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
SPECIAL = frozenset("0123456789@*#!$-[")
COMPUTED = re.compile(
    r"_|IFS|RANDOM|SRANDOM|SECONDS|LINENO|BASH\w*|EPOCH\w+|E?UID|PPID|HOST\w+|OSTYPE|MACHTYPE|SHLVL|PIPESTATUS|FUNCNAME|DIRSTACK|"
    r"GROUPS|OPT(?:IND|ARG|ERR)|SHELLOPTS|COMP_\w+|COMPREPLY|READLINE_\w+|GLOBIGNORE|GLOBSORT|POSIXLY_CORRECT|PS4|TIMEFORMAT|FUNCNEST|"
    r"ENV|TMOUT|HIST\w+|FIGNORE|MAPFILE|COPROC|CHILD_MAX|EXECIGNORE|LINES|COLUMNS|TZ|QUOTING_STYLE|_POSIX2_VERSION|GREP_\w+|TMPDIR|"
    r"LC_MESSAGES|LANGUAGE|LD_\w+|POSIX\w*"
)
"""Variables that bash computes, or that change what commands do."""


class WordReader:
    """Reads words from a text; ``at`` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def inner_script(self, text: str) -> Script:
        """Read the text between backquotes."""
        raise NotImplementedError

    def substituted_script(self) -> Script:
        """Read what follows ``$(``, to its end."""
        raise NotImplementedError

    def word(self, *, is_value: bool = False) -> Word:
        """Read a word, which is empty if there is none. ``is_value``: of an assignment."""
        text, start = self.text, self.at
        found = PLAIN.match(text, start)
        if found:  # most words are plain text
            end = found.end()
            if (end == len(text) or text[end] in " \t\n;&|<>)") and not re.search(r"[*?\[{~]", found[0]):
                self.at = end
                return Word(parts=(Text(text=found[0], quoted=False),), raw=found[0], plain=found[0])
        parts: list[Part] = []
        while self.at < len(text) and text[self.at] not in " \t\n;&|<>)":
            self._add_part(parts)
        parts = _with_home(parts, is_value=is_value)
        return Word(parts=tuple(parts), raw=text[start : self.at], plain=_plain(parts))

    def _add_part(self, parts: list[Part]) -> None:
        text = self.text
        found = PLAIN.match(text, self.at)
        if found:
            self.at = found.end()
            parts.append(Text(text=found[0], quoted=False))
            return
        letter = text[self.at]
        if letter == "(":
            raise NotExact("an array, a function or a pattern with parentheses")
        if letter == '"':
            self.at += 1
            parts += self._quoted(IN_DOUBLE_QUOTES, '$`"\\', end='"')
        elif letter == "'":
            parts.append(self._single_quoted())
        elif letter == "\\":
            self._add_escaped(parts)
        else:
            parts.append(self._expansion(quoted=False))

    def _add_escaped(self, parts: list[Part]) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if not following:
            raise NotExact("a backslash at the end")
        if following != "\n":
            parts.append(Text(text=following, quoted=True))

    def _single_quoted(self) -> Text:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise NotExact("a quote without its end")
        start, self.at = self.at + 1, end + 1
        return Text(text=self.text[start:end], quoted=True)

    def quoted_word(self, text: str) -> Word:
        """Return a text as a word in which nothing is expanded."""
        return Word(parts=(Text(text=text, quoted=True),), raw=text, plain=text)

    def document(self) -> Word:
        """Read everything as the text of a here-document."""
        parts = self._quoted(IN_DOCUMENT, "$`\\", end="")
        return Word(parts=tuple(parts), raw=self.text, plain=_plain(parts))

    def _quoted(self, plain: re.Pattern[str], escapable: str, *, end: str) -> list[Part]:
        """Read text in double quotes, or of a here-document, to its end."""
        text = self.text
        parts: list[Part] = [Text(text="", quoted=True)]
        while True:
            found = plain.match(text, self.at)
            if found:
                self.at = found.end()
                parts.append(Text(text=found[0], quoted=True))
            letter = text[self.at : self.at + 1]
            if letter == end:
                self.at += 1
                return parts
            if not letter:
                raise NotExact("a quote without its end")
            if letter == "\\":
                following = text[self.at + 1 : self.at + 2]
                self.at += 1 + len(following)
                if following != "\n":
                    parts.append(
                        Text(text=following if following and following in escapable else f"\\{following}", quoted=True)
                    )
            else:
                parts.append(self._expansion(quoted=True))

    # Expansions

    def _expansion(self, *, quoted: bool) -> Part:
        """Read what begins with a dollar sign or a backquote."""
        text = self.text
        if text[self.at] == "`":
            return self._backquoted(quoted=quoted)
        found = NAMED.match(text, self.at)
        if found:
            self.at = found.end()
            return Expansion(name=self.checked_name(found[1]), quoted=quoted)
        following = text[self.at + 1 : self.at + 2]
        if text.startswith("$((", self.at):
            self.at += 3
            return Expansion(operator="((", word=self._arithmetic(), quoted=quoted)
        if following == "(":
            self.at += 2
            return Expansion(script=self.substituted_script(), quoted=quoted)
        if following == "{":
            return self._braced(quoted=quoted)
        if following == "'" and not quoted:
            return self._ansi_quoted()
        if following in SPECIAL or (following == '"' and not quoted):
            raise NotExact(f"${following}")
        if not quoted:
            raise NotExact("a dollar sign by itself")
        self.at += 1
        return Text(text="$", quoted=True)

    def checked_name(self, name: str) -> str:
        """Return the name of a variable. Raises: bash computes it, or it changes how bash works → NotExact."""
        if COMPUTED.fullmatch(name):
            raise NotExact(f"the variable {name}")
        return name

    def _ansi_quoted(self) -> Text:
        """Read ``$'...'``."""
        found = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if not found or re.search(r"\\", LETTER.sub("", found[1])):
            raise NotExact("this $'...'")
        self.at = found.end()

        def byte(escape: re.Match[str]) -> bytes:
            return bytes([int(escape[1], 16)]) if escape[1] else bytes([LETTERS.get(escape[2], ord(escape[2]))])

        out, at = b"", 0
        for escape in LETTER.finditer(found[1]):
            out += found[1][at : escape.start()].encode(errors="surrogateescape") + byte(escape)
            at = escape.end()
        out += found[1][at:].encode(errors="surrogateescape")
        if b"\0" in out:
            raise NotExact("this $'...'")
        return Text(text=out.decode(errors="surrogateescape"), quoted=True)

    def _backquoted(self, *, quoted: bool) -> Part:
        found = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self.text, self.at)
        if not found:
            raise NotExact("a backquote without its end")
        self.at = found.end()
        inner = re.sub(r"\\([$`\\\"])" if quoted else r"\\([$`\\])", r"\1", found[1])
        return Expansion(script=self.inner_script(inner), quoted=quoted)

    def _arithmetic(self) -> Word:
        """Read to the ``))`` that ends the arithmetic."""
        parts: list[Part] = []
        start, depth = self.at, 0
        while True:
            found = IN_ARITHMETIC.match(self.text, self.at)
            if found:
                self.at = found.end()
                parts.append(Text(text=found[0], quoted=True))
            letter = self.text[self.at : self.at + 1]
            if letter == "$":
                parts.append(self._expansion(quoted=True))
                continue
            if letter == ")" and not depth and self.text.startswith("))", self.at):
                self.at += 2
                return Word(parts=tuple(parts), raw=self.text[start : self.at - 2], plain=_plain(parts))
            if letter not in {"(", ")"} or (letter == ")" and not depth):
                raise NotExact("this arithmetic")
            depth += 1 if letter == "(" else -1
            parts.append(Text(text=letter, quoted=True))
            self.at += 1

    def _braced(self, *, quoted: bool) -> Part:
        """Read ``${...}``."""
        found = BRACED.match(self.text, self.at)
        if not found:
            raise NotExact("this ${...}")
        name = self.checked_name(found[2])
        self.at = found.end()
        if self.text.startswith("}", self.at):
            self.at += 1
            return Expansion(name=name, quoted=quoted, operator="length" if found[1] else "")
        operator = OPERATOR.match(self.text, self.at)
        if not operator or found[1]:
            raise NotExact("this ${...}")
        self.at = operator.end()
        in_quotes = quoted and operator[0][-1] in "-+"
        word = self._in_braces(quoted=in_quotes, outer_quoted=quoted)
        if not self.text.startswith("}", self.at):
            raise NotExact("this ${...}")
        self.at += 1
        return Expansion(name=name, quoted=quoted, operator=operator[0], word=word)

    def _in_braces(self, *, quoted: bool, outer_quoted: bool) -> Word:
        """Read a word in ``${...}``, to what ends it."""
        start = self.at
        parts: list[Part] = []
        while True:
            found = IN_BRACES.match(self.text, self.at)
            if found:
                self.at = found.end()
                parts.append(Text(text=found[0], quoted=quoted))
            letter = self.text[self.at : self.at + 1]
            if letter == "}":
                break
            if letter in {"$", "`"}:
                parts.append(self._expansion(quoted=quoted))
            elif letter == "\\" and not outer_quoted:
                self._add_escaped(parts)
            elif letter == "'" and not outer_quoted:
                parts.append(self._single_quoted())
            elif letter == '"' and not quoted:
                self.at += 1
                parts += self._quoted(IN_DOUBLE_QUOTES, '$`"\\', end='"')
            else:
                raise NotExact("this ${...}")
        if self.text[start : start + 1] == "~":
            raise NotExact("a tilde in ${...}")
        return Word(parts=tuple(parts), raw=self.text[start : self.at], plain=_plain(parts))


def _plain(parts: Sequence[Part]) -> str | None:
    """Return the value of a word in which nothing is expanded, or None."""
    for part in parts:
        if not isinstance(part, Text) or (not part.quoted and re.search(r"[*?]|\[.", part.text)):
            return None
    return "".join(part.text for part in parts if isinstance(part, Text))


def _with_home(parts: list[Part], *, is_value: bool) -> list[Part]:
    """Return the parts with the home directory for a tilde at the beginning."""
    texts = [part.text for part in parts if isinstance(part, Text) and not part.quoted]
    if any(re.search(r"[:=]~" if is_value else r"=~.|=~$", text) for text in texts):
        raise NotExact("a tilde within a word")
    first = parts[0] if parts else None
    if not isinstance(first, Text) or first.quoted or not first.text.startswith("~"):
        return parts
    if not first.text.startswith("~/") and (first.text != "~" or len(parts) > 1):
        raise NotExact("this tilde")
    rest: list[Part] = [Text(text=first.text[1:], quoted=False)] if first.text != "~" else []
    return [Expansion(name="HOME", quoted=True), *rest, *parts[1:]]


def braces_expanded(word: Word) -> list[Word]:
    """Return the words that braces make of a word, such as two for ``a.{c,h}``. Raises: there is anything else → NotExact."""
    if not any(isinstance(part, Text) and not part.quoted and "{" in part.text for part in word.parts) or word.plain == "{}":
        return [word]
    found = BRACES.fullmatch(word.raw)
    if not found:
        raise NotExact("these braces")
    before, choices, first, last, after = found.groups()
    inner = choices.split(",") if choices else [str(number) for number in range(int(first), int(last) + 1)]
    texts = [f"{before}{one}{after}" for one in inner]
    if not inner or not all(texts):
        raise NotExact("these braces")
    parts = [(Text(text=text, quoted=False),) for text in texts]
    return [Word(parts=one, raw=word.raw, plain=_plain(one)) for one in parts]
