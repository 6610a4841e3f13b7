"""Reads a source into tokens: words with their parts, operators, redirections with their here-documents.

Place in the flow: `grammar` asks for tokens and gives their order to bashlex. What bashlex does not read (``[[ ]]``, ``(( ))``,
``case``, here-documents with a quoted delimiter) and everything inside words is read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.quoting import unescaped
from pytest_hermes_env.sandbox.bash.tree import (
    ArithmeticCommand,
    ArithmeticPart,
    Case,
    Clause,
    Condition,
    Counting,
    Parameter,
    Part,
    Script,
    Substitution,
    SyntaxProblem,
    Test,
    Text,
    Word,
    word_of,
)

__all__ = ["Lexer", "Token", "Unreadable"]

OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|;|\|&|\||&(?!>)|\(|\)")
REDIRECTION = re.compile(r"&>>|&>|<<<|<<-|<<|<&|<>|>>|>&|>\||<(?!\()|>(?!\()")
PLAIN = re.compile(r"[^\s\\'\"$`;&|()<>]+")
QUOTED_RUN = re.compile(r"[^\\\"$`]+")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
SPECIAL = "@*#?$!-0123456789"
RESERVED = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "{", "}", "!", "function", "select", "coproc"}
    | {"esac", "in", "time"}
)
HEADS = frozenset({"for", "select", "function"})
"""Reserved words after which a name stands."""
BETWEEN = RESERVED - HEADS - {"in", "coproc"}
"""Reserved words behind which another may follow."""
UNARY = frozenset(f"-{letter}" for letter in "abcdefghknoprstuvwxzGLNORS")
BINARY = frozenset({"=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "<", ">"})


class Unreadable(Exception):
    """The source breaks off, or stands against the grammar."""

    def __init__(self, problem: SyntaxProblem) -> None:
        super().__init__(problem.text)
        self.problem = problem


@dataclass(slots=True)
class Token:
    """One token. ``kind``: word, operator, newline, redirect, or compound, whose ``node`` is already read.

    ``body`` is a here-document's, ``warning`` its line and its delimiter when that is not there.
    """

    kind: str
    text: str
    start: int
    end: int
    line: int
    word: Word | None = None
    node: Case | Condition | ArithmeticCommand | Counting | None = None
    fd: int | None = None
    body: Word | None = None
    warning: tuple[int, str] | None = None
    is_reserved: bool = False
    is_assignment: bool = False


Build = Callable[[Sequence[Token], str, SyntaxProblem | None], Script]


class Lexer:
    """Reads one source. ``build`` makes scripts of the tokens inside substitutions and ``case``."""

    def __init__(self, source: str, build: Build) -> None:
        self.source = source
        self.at = 0
        self._build = build
        self._line_start, self._line = 0, 1

    def script(self) -> Script:
        """Return the whole source as a script."""
        tokens: list[Token] = []
        problem = None
        try:
            self._read(tokens, stop="")
        except Unreadable as unreadable:
            problem = unreadable.problem
        return self._build(tokens, self.source, problem)

    # Tokens

    def _read(self, tokens: list[Token], *, stop: str) -> str:
        """Read tokens up to ``stop``: nothing, ``)`` or ``;;`` (which means the end of a clause, ``esac``, too); return the end."""
        source, size = self.source, len(self.source)
        starts, depth = True, 0
        documents: list[Token] = []
        while True:
            self._skip_blanks()
            at = self.at
            if at >= size:
                if documents:
                    self._read_documents(documents)
                if stop:
                    raise Unreadable(self._broken_off(")") if stop == ")" else self._end_of_file())
                return ""
            letter = source[at]
            line = self._line_at(at)
            if letter == "\n":
                self.at += 1
                tokens.append(Token("newline", "\n", at, at + 1, line))
                if documents:
                    self._read_documents(documents)
                starts = True
                continue
            if letter.isdigit() and (found := re.compile(r"[0-9]+(?=[<>])").match(source, at)):
                redirection = REDIRECTION.match(source, found.end())
                if redirection and not redirection.group().startswith("&"):
                    self.at = redirection.end()
                    token = Token("redirect", redirection.group(), at, self.at, line, fd=int(found.group()))
                    self._redirect(tokens, token, documents)
                    continue
            if redirection := REDIRECTION.match(source, at):
                self.at = redirection.end()
                self._redirect(tokens, Token("redirect", redirection.group(), at, self.at, line), documents)
                continue
            if source.startswith("((", at) and tokens and tokens[-1].text == "for" and (head := self._counting(at, line)):
                tokens.append(Token("compound", "((", at, self.at, line, node=head))
                continue
            if starts and source.startswith("((", at) and (node := self._arithmetic_command(at, line)):
                tokens.append(Token("compound", "((", at, self.at, line, node=node))
                continue
            if operator := OPERATOR.match(source, at):
                text = operator.group()
                if stop == ")" and text == ")" and not depth:
                    self.at = operator.end()
                    if documents:
                        self._read_documents(documents)
                    return ")"
                if stop == ";;" and not depth and text in {";;", ";&", ";;&"}:
                    self.at = operator.end()
                    return text
                self.at = operator.end()
                depth += (text == "(") - (text == ")")
                tokens.append(Token("operator", text, at, self.at, line))
                starts = True
                continue
            if starts:
                if re.compile(r"\[\[(?=[\s])").match(source, at):
                    self.at = at + 2
                    test = self._condition()
                    tokens.append(Token("compound", "[[", at, self.at, line, node=Condition(test=test, line=line)))
                    continue
                if re.compile(r"case(?=[\s])").match(source, at):
                    self.at = at + 4
                    tokens.append(Token("compound", "case", at, self.at, line, node=self._case(line)))
                    tokens[-1].end = self.at
                    continue
            word = self._word()
            if starts and stop == ";;" and word.raw == "esac":
                return "esac"
            token = Token("word", word.raw, at, self.at, line, word=word)
            token.is_reserved = word.raw in RESERVED and (starts or _follows_name(tokens))
            token.is_assignment = starts and ASSIGNMENT.match(word.raw) is not None
            tokens.append(token)
            starts = (token.is_reserved and word.raw in BETWEEN) or token.is_assignment

    def _redirect(self, tokens: list[Token], token: Token, documents: list[Token]) -> None:
        tokens.append(token)
        self._skip_blanks()
        if self.at >= len(self.source) or self.source[self.at] in "\n;&|()<>":
            return  # the grammar refuses it
        at, line = self.at, self._line_at(self.at)
        word = self._word()
        tokens.append(Token("word", word.raw, at, self.at, line, word=word))
        if token.text in {"<<", "<<-"}:
            token.word = word
            documents.append(token)

    def _skip_blanks(self) -> None:
        source, size = self.source, len(self.source)
        while self.at < size:
            letter = source[self.at]
            if letter in " \t":
                self.at += 1
            elif letter == "\\" and source.startswith("\\\n", self.at):
                self.at += 2
            elif letter == "#":
                end = source.find("\n", self.at)
                self.at = size if end < 0 else end
            else:
                return

    def _line_at(self, at: int) -> int:
        if at < self._line_start:
            self._line_start, self._line = 0, 1
        self._line += self.source.count("\n", self._line_start, at)
        self._line_start = at
        return self._line

    def _read_documents(self, documents: list[Token]) -> None:
        """Read the here-documents that begin at this line."""
        for token in documents:
            assert token.word is not None
            quoted = re.search(r"['\"\\]", token.word.raw) is not None
            delimiter = "".join(part.text if isinstance(part, Text) else part_source(part) for part in token.word.parts)
            strips = token.text == "<<-"
            lines: list[str] = []
            while True:
                if self.at >= len(self.source):
                    token.warning = (token.line, delimiter)
                    break
                end = self.source.find("\n", self.at)
                end = len(self.source) if end < 0 else end
                text = self.source[self.at : end]
                self.at = min(end + 1, len(self.source))
                text = text.lstrip("\t") if strips else text
                if text == delimiter:
                    break
                lines.append(text + "\n")
            body = "".join(lines)
            if quoted:
                token.body = Word(raw=body, parts=(Text(body, quoted=True),), plain=body)
            else:
                token.body = Lexer(body, self._build).document()
        documents.clear()

    def document(self) -> Word:
        """Return the whole source as the body of a here-document whose delimiter is not quoted."""
        parts: list[Part] = []
        self._quoted(parts, end="", escapes="$`\\")
        return word_of(self.source, parts)

    # Words

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
        parts.append(Substitution(script=Lexer(before + inner, self._build).script(), quoted=quoted))

    def _dollar(self, parts: list[Part], *, quoted: bool) -> None:
        source, at = self.source, self.at
        following = source[at + 1 : at + 2]
        if following == "'" and not quoted:
            found = re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL).match(source, at + 2)
            if not found:
                raise Unreadable(self._broken_off("'", at))
            parts.append(Text(unescaped(found.group()[:-1]), quoted=True))
            self.at = found.end()
        elif following == '"' and not quoted:
            self.at += 1  # a translated text: there are no translations
        elif following == "(":
            if source.startswith("((", at + 1) and (end := self._end_of_arithmetic(at + 3)):
                expression = Lexer(source[at + 3 : end], self._build).document()
                self.at = end + 2
                parts.append(ArithmeticPart(expression=expression, quoted=quoted))
                return
            self.at += 2
            tokens: list[Token] = []
            try:
                self._read(tokens, stop=")")
            except Unreadable:
                if source.startswith("((", at + 1) and self.at >= len(source):
                    raise Unreadable(self._broken_off(")", at)) from None
                raise
            script = self._build(tokens, source, None)
            if script.problem:
                raise Unreadable(script.problem)
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

    def _arithmetic_command(self, at: int, line: int) -> ArithmeticCommand | None:
        end = self._end_of_arithmetic(at + 2)
        if not end:
            return None
        self.at = end + 2
        expression = Lexer(self.source[at + 2 : end], self._build).document()
        return ArithmeticCommand(expression=expression, line=line)

    def _counting(self, at: int, line: int) -> Counting | None:
        """Read the head of a loop that counts."""
        end = self._end_of_arithmetic(at + 2)
        parts = self.source[at + 2 : end].split(";") if end else []
        if len(parts) != 3:  # noqa: PLR2004 - where it begins, how long it goes on, its step
            return None
        self.at = end + 2
        first, condition, step = (Lexer(part, self._build).document() for part in parts)
        return Counting(first=first, condition=condition, step=step, line=line)

    def _braces(self, *, quoted: bool) -> Parameter:
        """Read ``${...}`` behind its opening brace."""
        source, start = self.source, self.at
        length = source.startswith("#", start) and not re.compile(r"#(?:\}|[-:?+=#%/])").match(source, start)
        indirect = source.startswith("!", start) and not source.startswith("!}", start)
        at = start + (length or indirect)
        name = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]").match(source, at)
        self.at = name.end() if name else at
        if source.startswith("[", self.at):
            raise UnsupportedSyntax(source, "an array")
        if indirect and source.startswith(("*", "@"), self.at):
            raise UnsupportedSyntax(source, "${!...}")
        operator = re.compile(r":[-=?+]|[-=?+]|##?|%%?|//|/#|/%|/|\^\^?|,,?|:|@").match(source, self.at)
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
                keeps_quotes = text.lstrip(":")[:1] in "-=?+" if text != ":" else True
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

    # What stands in double brackets

    def _condition(self) -> Test:
        test = self._alternatives()
        if self._next_in_condition() != "]]":
            raise Unreadable(self._conditional("syntax error in conditional expression"))
        self.at += 2
        return test

    def _next_in_condition(self) -> str:
        """Return what comes next inside ``[[ ]]``: an operator, ``]]``, the beginning of a word, or nothing at the end."""
        while self.at < len(self.source):
            before = self.at
            self._skip_blanks()
            if self.source.startswith("\n", self.at):
                self.at += 1
            if self.at == before:
                break
        if self.at >= len(self.source):
            raise Unreadable(self._end_of_file())
        found = re.compile(r"\]\](?=[\s;&|)]|$)|&&|\|\||[()<>]|!(?=\s)").match(self.source, self.at)
        return found.group() if found else "word"

    def _alternatives(self) -> Test:
        tests = [self._conjunction()]
        while self._next_in_condition() == "||":
            self.at += 2
            tests.append(self._conjunction())
        return tests[0] if len(tests) == 1 else Test(operator="||", tests=tuple(tests))

    def _conjunction(self) -> Test:
        tests = [self._single()]
        while self._next_in_condition() == "&&":
            self.at += 2
            tests.append(self._single())
        return tests[0] if len(tests) == 1 else Test(operator="&&", tests=tuple(tests))

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

    # case

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
            body = self._build(tokens, self.source, None)
            if body.problem:
                raise Unreadable(body.problem)
            clauses.append(Clause(patterns=tuple(patterns), body=body, end=end))
            if end == "esac":
                break
        return Case(word=word, clauses=tuple(clauses), line=line)

    def _pattern(self) -> Word:
        self._skip_lines()
        word = self._word()
        self._skip_blanks()
        return word

    def _skip_lines(self) -> None:
        before = -1
        while before != self.at:
            before = self.at
            self._skip_blanks()
            if self.source.startswith("\n", self.at):
                self.at += 1
        if self.at >= len(self.source):
            raise Unreadable(self._end_of_file())

    # What is wrong

    def _broken_off(self, wanted: str, at: int | None = None) -> SyntaxProblem:
        line = lines_of(self.source) + 1 if at is None else self._line_at(at)
        return SyntaxProblem(line=line, text=f"unexpected EOF while looking for matching `{wanted}'")

    def _end_of_file(self) -> SyntaxProblem:
        return SyntaxProblem(line=lines_of(self.source) + 1, text="syntax error: unexpected end of file")

    def _conditional(self, text: str) -> SyntaxProblem:
        return SyntaxProblem(line=self._line_at(min(self.at, len(self.source))), text=text)


def _follows_name(tokens: Sequence[Token]) -> bool:
    """Return whether the last word is the name in the head of a loop or a function."""
    before = [token for token in tokens[-8:] if token.kind != "newline"][-2:]
    return len(before) > 1 and before[0].is_reserved and before[0].text in HEADS


def lines_of(source: str) -> int:
    """Return how many lines a source has; the last may have no end."""
    return source.count("\n") + (not source.endswith("\n"))


def part_source(part: Part) -> str:
    """Return an expansion as it was written, where a here-document's delimiter holds one."""
    return part.raw if isinstance(part, Parameter) else ""
