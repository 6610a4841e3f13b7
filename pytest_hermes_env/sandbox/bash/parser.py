"""Reads a command line into its parts.

What the in-memory shell does not run exactly as bash does, syntax errors included, raises `NotExact`.

Source: bash 5.2, parse.y.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pytest_hermes_env.sandbox.bash import syntax
from pytest_hermes_env.sandbox.bash.state import NotExact
from pytest_hermes_env.sandbox.bash.words import WordReader, checked_name

__all__ = ["ASSIGNMENT", "parse"]

BLANKS = re.compile(r"(?:[ \t]|\\\n)*(?:#[^\n]*)?")
RESERVED = re.compile(
    r"(if|then|elif|else|fi|for|while|until|do|done|case|esac|in|select|function|time|coproc|\{|\}|!|\[\[|\]\])(?=[ \t\n;&|<>()]|$)"
)
REDIRECTION = re.compile(r"(\d*)(<<<|<<|<>|<&|>&|>>|>\||>|<)|(&>>|&>)")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)((?:\[[^]]*\])?\+?=)")
CONNECTOR = re.compile(r"&&|\|\|")


@lru_cache(maxsize=1024)
def parse(text: str) -> tuple[syntax.Script, tuple[syntax.Simple, ...]]:
    """Return the script of a line, and every simple command in it in the order of the source. Raises: NotExact."""
    parser = _Parser(text)
    script = parser.script()
    return script, tuple(parser.simples)


class _Parser(WordReader):
    """Reads from left to right; ``at`` is the next character."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.simples: list[syntax.Simple] = []
        self._documents: list[tuple[syntax.Redirect, str, bool]] = []

    def script(self) -> syntax.Script:
        """Read everything."""
        script = self._list(frozenset(), may_be_empty=True)
        if self.at < len(self.text) or self._documents:
            raise NotExact("a syntax error")
        return script

    def substituted_script(self) -> syntax.Script:
        """Read what follows ``$(``, to its end."""
        if self._documents:
            raise NotExact("a substitution behind a here-document")
        script = self._list(frozenset(")"), may_be_empty=True)
        if self._documents:
            raise NotExact("a here-document without its text")
        self._expect(")")
        return script

    # Blanks and words

    def _blanks(self) -> str:
        """Skip blanks and a comment; return the next character, or ``""``."""
        found = BLANKS.match(self.text, self.at)
        if found:
            self.at = found.end()
        return self.text[self.at : self.at + 1]

    def _newlines(self) -> None:
        while self._blanks() == "\n":
            self.at += 1
            self._read_documents()

    def _expect(self, text: str) -> None:
        self._blanks()
        if not self.text.startswith(text, self.at):
            raise NotExact("a syntax error")
        self.at += len(text)

    def _reserved(self) -> str:
        found = RESERVED.match(self.text, self.at)
        return found[1] if found else ""

    def _block(self, *ends: str) -> tuple[syntax.Script, str]:
        """Read a list of commands and the reserved word that ends it."""
        return self._list(frozenset(ends)), self._expect_reserved(*ends)

    def _expect_reserved(self, *names: str) -> str:
        self._newlines()
        found = self._reserved()
        if found not in names:
            raise NotExact("a syntax error")
        self.at += len(found)
        return found

    def _next_word(self) -> syntax.Word:
        self._blanks()
        start = self.at
        word = self.word()
        if self.at == start:
            raise NotExact("a syntax error")
        return word

    # Lists

    def _list(self, ends: frozenset[str], *, may_be_empty: bool = False) -> syntax.Script:
        nodes: list[syntax.Node] = []
        while True:
            self._newlines()
            letter = self.text[self.at : self.at + 1]
            if not letter or letter == ")" or self._reserved() in ends:
                break
            nodes.append(self._and_or())
            letter = self._blanks()
            if letter == ";" and not self.text.startswith(";;", self.at):
                self.at += 1
            elif letter == "&":
                raise NotExact("& (a background job)")
            elif letter != "\n":
                break
        if not nodes and not may_be_empty:
            raise NotExact("a syntax error")
        return tuple(nodes)

    def _and_or(self) -> syntax.Node:
        first = self._pipeline()
        rest: list[tuple[str, syntax.Node]] = []
        while True:
            self._blanks()
            found = CONNECTOR.match(self.text, self.at)
            if found is None:
                return syntax.AndOr(first=first, rest=tuple(rest)) if rest else first
            self.at = found.end()
            self._newlines()
            rest.append((found[0], self._pipeline()))

    def _pipeline(self) -> syntax.Node:
        self._blanks()
        negated = self._reserved() == "!"
        if negated:
            self.at += 1
            self._blanks()
        commands = [self._command()]
        while self._blanks() == "|" and not self.text.startswith("||", self.at):
            if self.text.startswith("|&", self.at):
                raise NotExact("|&")
            self.at += 1
            self._newlines()
            commands.append(self._command())
        if len(commands) == 1 and not negated:
            return commands[0]
        return syntax.Pipeline(commands=tuple(commands), negated=negated)

    # Commands

    def _command(self) -> syntax.Node:
        name = self._reserved()
        if name:
            read = {"if": self._if, "{": self._braces}.get(name)
            if read is None:
                raise NotExact(f"{name} command")
            self.at += len(name)
            return read()
        if self.text.startswith("((", self.at):
            raise NotExact("((")
        if self.text.startswith("(", self.at):
            self.at += 1
            body = self._list(frozenset(")"))
            self._expect(")")
            return syntax.Group(body=body, is_subshell=True, redirects=self._redirects())
        return self._simple()

    def _braces(self) -> syntax.Node:
        body, _ = self._block("}")
        return syntax.Group(body=body, is_subshell=False, redirects=self._redirects())

    def _if(self) -> syntax.Node:
        branches: list[tuple[syntax.Script | None, syntax.Script]] = []
        name = "if"
        while name in {"if", "elif"}:
            condition, _ = self._block("then")
            body, name = self._block("elif", "else", "fi")
            branches.append((condition, body))
        if name == "else":
            branches.append((None, self._block("fi")[0]))
        return syntax.If(branches=tuple(branches), redirects=self._redirects())

    def _simple(self) -> syntax.Simple:
        place = len(self.simples)
        assignments: list[tuple[str, syntax.Word]] = []
        words: list[syntax.Word] = []
        redirects: list[syntax.Redirect] = []
        pieces: list[str] = []
        while True:
            letter = self._blanks()
            if redirect := self._redirect():
                redirects.append(redirect)
                continue
            if letter in {"", "\n", ";", "&", "|", ")"}:
                break
            start = self.at
            found = None if words else ASSIGNMENT.match(self.text, start)
            if found is None:
                words.append(self._next_word())
            elif found[2] == "=":
                self.at = found.end()
                assignments.append((checked_name(found[1]), self.word(is_value=True)))
            else:
                raise NotExact(f"the assignment {found[0]}")
            pieces.append(self.text[start : self.at])
        if not pieces and not redirects:
            raise NotExact("a syntax error")
        node = syntax.Simple(
            assignments=tuple(assignments), words=tuple(words), redirects=tuple(redirects), text=" ".join(pieces)
        )
        self.simples.insert(place, node)
        return node

    # Redirections

    def _redirects(self) -> tuple[syntax.Redirect, ...]:
        found: list[syntax.Redirect] = []
        while True:
            self._blanks()
            redirect = self._redirect()
            if redirect is None:
                return tuple(found)
            found.append(redirect)

    def _redirect(self) -> syntax.Redirect | None:
        found = REDIRECTION.match(self.text, self.at)
        if found is None:
            return None
        operator = found[2] or found[3]
        self.at = found.end()
        if self.text.startswith("(", self.at):
            raise NotExact("a process substitution")
        fd = int(found[1]) if found[1] else 0 if operator[0] == "<" else 1
        if fd > 2 or (fd == 0) != (operator[0] == "<") or operator in {"<>", "<&", ">|"}:  # noqa: PLR2004 - standard error
            raise NotExact(f"the redirection {found[0]}")
        target = self._next_word()
        if target.raw.isdigit() and self.text[self.at : self.at + 1] in {"<", ">"}:
            raise NotExact("a syntax error")
        if operator == ">&" and (target.plain is None or target.plain not in {"1", "2"}):
            raise NotExact(f"the redirection {found[0]}{target.raw}")
        redirect = syntax.Redirect(fd=fd, operator=operator, target=target)
        if operator == "<<":
            if re.search(r"^-|[$`\n]", target.raw):
                raise NotExact("this end of a here-document")
            end = re.sub(r"\\(.)|['\"]", r"\1", target.raw)
            self._documents.append((redirect, end, end == target.raw))
            redirect.target = None
        return redirect

    def _read_documents(self) -> None:
        """Read the texts of the here-documents of the line that ended."""
        documents, self._documents = self._documents, []
        for redirect, end, expands in documents:
            lines = []
            while True:
                if self.at >= len(self.text):
                    raise NotExact("a here-document without its end")
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = min(stop + 1, len(self.text))
                if line == end:
                    break
                lines.append(line)
            text = "".join(f"{line}\n" for line in lines)
            if not expands:
                redirect.target = syntax.Word(parts=(syntax.Text(text=text, quoted=True),), raw=text, plain=text)
                continue
            parser = _Parser(text)
            redirect.target = parser.document()
            self.simples += parser.simples
