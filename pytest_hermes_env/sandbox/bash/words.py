"""Reads one word of a command line: quotes, variables, substitutions.

Source: bash 5.2, parse.y and subst.c.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from pytest_hermes_env.sandbox.bash.state import NotExact
from pytest_hermes_env.sandbox.bash.syntax import Expansion, Part, Script, Text, Word

__all__ = ["COMPUTED", "NAME", "PATTERN", "WordReader", "checked_name"]

PLAIN = re.compile(r"[^ \t\n;&|<>()$`\\\"']+")
IN_DOUBLE_QUOTES = re.compile(r"[^$`\\\"]+")
IN_DOCUMENT = re.compile(r"[^$`\\]+")
NAME = "[A-Za-z_][A-Za-z0-9_]*"
VARIABLE = re.compile(rf"\$(?:({NAME}|\?)|\{{({NAME})\}})", re.ASCII)
NOT_LITERAL = re.compile(r"\$[({\[0-9@*#!$-]|`")
"""What begins an expansion that is not known. Any other dollar sign in double quotes is literal."""
PATTERN = re.compile(r"[*?[]")
"""What names other paths, unless it is quoted."""
COMPUTED = re.compile(
    r"_|IFS|RANDOM|SRANDOM|SECONDS|LINENO|BASH\w*|EPOCH\w+|E?UID|PPID|HOST\w+|OSTYPE|MACHTYPE|SHLVL|PIPESTATUS|FUNCNAME|DIRSTACK|"
    r"GROUPS|OPT(?:IND|ARG|ERR)|SHELLOPTS|COMP_\w+|COMPREPLY|READLINE_\w+|GLOBIGNORE|GLOBSORT|POSIXLY_CORRECT|PS4|TIMEFORMAT|FUNCNEST|"
    r"ENV|TMOUT|HIST\w+|FIGNORE|MAPFILE|COPROC|CHILD_MAX|EXECIGNORE|LINES|COLUMNS|TZ|QUOTING_STYLE|_POSIX2_VERSION|GREP_\w+|TMPDIR|"
    r"LC_\w+|LANG|LANGUAGE|LD_\w+|POSIX\w*"
)
"""Variables that bash computes, or that change what commands do."""


def checked_name(name: str) -> str:
    """Return the name of a variable. Raises: bash computes it, or it changes what commands do → NotExact."""
    if COMPUTED.fullmatch(name):
        raise NotExact(f"the variable {name}")
    return name


class WordReader(ABC):
    """Reads words from a text; ``at`` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @abstractmethod
    def substituted_script(self) -> Script:
        """Read what follows ``$(``, to its end."""

    def word(self, *, is_value: bool = False) -> Word:
        """Read a word, which is empty if there is none. ``is_value``: of an assignment."""
        text, start = self.text, self.at
        found = PLAIN.match(text, start)
        if found:  # most words are plain text
            end = found.end()
            if (end == len(text) or text[end] in " \t\n;&|<>)") and not re.search(r"[*?[{~]", found[0]):
                self.at = end
                return Word(parts=(Text(text=found[0], quoted=False),), raw=found[0], plain=found[0])
        parts: list[Part] = []
        while self.at < len(text) and text[self.at] not in " \t\n;&|<>)":
            self._add_part(parts)
        raw = text[start : self.at]
        unquoted = [part.text for part in parts if isinstance(part, Text) and not part.quoted]
        if raw != "{}" and any("{" in one for one in unquoted):
            raise NotExact("braces")
        if not is_value and raw != "[" and any(PATTERN.search(one) for one in unquoted):
            raise NotExact(f"the pattern {raw}")
        parts = _with_home(parts, is_value=is_value)
        return Word(parts=tuple(parts), raw=raw, plain=_plain(parts))

    def document(self) -> Word:
        """Read everything as the text of a here-document."""
        parts = self._quoted(IN_DOCUMENT, "$`\\", end="")
        return Word(parts=tuple(parts), raw=self.text, plain=_plain(parts))

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
            end = text.find("'", self.at + 1)
            if end < 0:
                raise NotExact("a quote without its end")
            parts.append(Text(text=text[self.at + 1 : end], quoted=True))
            self.at = end + 1
        elif letter == "\\":
            following = text[self.at + 1 : self.at + 2]
            if not following:
                raise NotExact("a backslash at the end")
            self.at += 2
            if following != "\n":
                parts.append(Text(text=following, quoted=True))
        else:
            parts.append(self._expansion(quoted=False))

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
                    is_escape = following != "" and following in escapable
                    parts.append(Text(text=following if is_escape else f"\\{following}", quoted=True))
            else:
                parts.append(self._expansion(quoted=True))

    def _expansion(self, *, quoted: bool) -> Part:
        """Read what begins with a dollar sign or a backquote."""
        text = self.text
        found = VARIABLE.match(text, self.at)
        if found:
            self.at = found.end()
            return Expansion(name=checked_name(found[1] or found[2]), quoted=quoted)
        if text.startswith("$(", self.at) and not text.startswith("$((", self.at):
            self.at += 2
            return Expansion(script=self.substituted_script(), quoted=quoted)
        if not quoted or NOT_LITERAL.match(text, self.at):
            raise NotExact(f"the expansion {text[self.at : self.at + 10]}")
        self.at += 1
        return Text(text="$", quoted=True)


def _plain(parts: Sequence[Part]) -> str | None:
    """Return the value of a word in which nothing is expanded, or None."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    return "".join(texts) if len(texts) == len(parts) else None


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
