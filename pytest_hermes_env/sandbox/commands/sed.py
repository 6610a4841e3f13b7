"""sed: substitution, deletion and printing of lines by number, by pattern or in a range.

Source: GNU sed 4.9.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_hermes_env.sandbox.commands.patterns import compiled
from pytest_hermes_env.sandbox.commands.process import Process, lines_of
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["sed"]

LAST = -1
ADDRESS = re.compile(r"[1-9]\d{0,8}|\$")
FLAGS = re.compile(r"g?p?[iI]?g?p?")
REPLACED = re.compile(r"&|\\(.)", re.DOTALL)
MISSING_INPUT = 2


@dataclass(frozen=True, kw_only=True)
class _Address:
    """A line number, or a pattern."""

    number: int = 0
    pattern: re.Pattern[str] | None = None

    def holds(self, line: str, number: int, last: int) -> bool:
        if self.pattern is not None:
            return self.pattern.search(line) is not None
        return number == (last if self.number == LAST else self.number)


@dataclass(kw_only=True)
class _Command:
    """One command of a script, and whether its range is open at the moment."""

    name: str
    first: _Address | None
    second: _Address | None
    is_negated: bool
    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    flags: str = ""
    is_open: bool = False

    def applies(self, line: str, number: int, last: int) -> bool:
        return self._selects(line, number, last) != self.is_negated

    def _selects(self, line: str, number: int, last: int) -> bool:
        if self.first is None:
            return True
        if self.second is None:
            return self.first.holds(line, number, last)
        if self.is_open:
            self.is_open = not (self.second.holds(line, number, last) or 0 < self.second.number <= number)
            return not (self.second.pattern is None and 0 < self.second.number < number)
        if self.first.holds(line, number, last):
            self.is_open = not (self.second.pattern is None and 0 < self.second.number <= number)
            return True
        return False


class _Reader:
    """Reads a script from left to right."""

    def __init__(self, script: str, *, extended: bool) -> None:
        self.script, self.extended, self.at = script, extended, 0

    def commands(self) -> list[_Command]:
        found: list[_Command] = []
        while True:
            self._skip(" \t\n;")
            if self.at >= len(self.script):
                return found
            found.append(self._command())

    def _skip(self, letters: str) -> None:
        while self.at < len(self.script) and self.script[self.at] in letters:
            self.at += 1

    def _peek(self) -> str:
        return self.script[self.at : self.at + 1]

    def _unknown(self) -> NotExact:
        return NotExact(f"sed {self.script}")

    def _command(self) -> _Command:
        first, second = self._address(), None
        if first is not None and self._peek() == ",":
            self.at += 1
            second = self._address()
            if second is None:
                raise self._unknown()
        is_negated = self._peek() == "!"
        self.at += is_negated
        command = _Command(name=self._peek(), first=first, second=second, is_negated=is_negated)
        self.at += 1
        if command.name == "s":
            self._substitution(command)
        elif command.name not in {"d", "p", "q"} or (command.name == "q" and second):
            raise self._unknown()
        self._skip(" \t")
        if self._peek() not in {"", ";", "\n"}:
            raise self._unknown()
        return command

    def _substitution(self, command: _Command) -> None:
        delimiter = self._peek()
        self.at += 1
        if not delimiter or delimiter in "\\\n" or delimiter.isalnum() or not delimiter.isascii():
            raise self._unknown()
        pattern, command.replacement = self._until(delimiter), self._until(delimiter, is_replacement=True)
        found = FLAGS.match(self.script, self.at)
        command.flags = found[0].lower() if found else ""
        self.at += len(command.flags)
        command.pattern = self._compiled(pattern, ignore_case="i" in command.flags)
        numbers = [int(number) for number in re.findall(r"\\(?:\\|(\d))", command.replacement) if number]
        if any(not 0 < number <= command.pattern.groups for number in numbers) or re.search(
            r"(?<!\\)(?:\\\\)*\\[a-mo-su-zA-Z\n]", command.replacement
        ):
            raise self._unknown()

    def _compiled(self, pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
        if not pattern:
            raise self._unknown()
        return compiled(pattern, extended=self.extended, ignore_case=ignore_case, finds_text=True, is_sed=True)

    def _address(self) -> _Address | None:
        found = ADDRESS.match(self.script, self.at)
        if found:
            self.at = found.end()
            if self._peek() == "~":
                raise self._unknown()
            return _Address(number=LAST if found[0] == "$" else int(found[0]))
        if self._peek() == "/":
            self.at += 1
            return _Address(pattern=self._compiled(self._until("/")))
        return None

    def _until(self, delimiter: str, *, is_replacement: bool = False) -> str:
        """Return the text up to the delimiter, which loses its backslash where it has one."""
        out = ""
        while self.at < len(self.script):
            letter = self.script[self.at]
            following = self.script[self.at + 1 : self.at + 2]
            self.at += 1
            if letter == delimiter:
                return out
            if letter == "\n":
                break
            if (
                letter == "["
                and not is_replacement
                and delimiter in self.script[self.at : self.script.find("]", self.at + 1) + 1]
            ):
                break  # whether a delimiter in brackets ends the pattern
            if letter == "\\":
                self.at += 1
                if following == delimiter and delimiter not in "/,:;#@!_%\"'~<>=":
                    break  # whether the delimiter keeps its special meaning
                out += following if following == delimiter else letter + following
            else:
                out += letter
        raise self._unknown()


def sed(process: Process) -> int:
    """Edit lines by a script; ``-n`` prints only what the script prints, ``-i`` writes the files back."""
    if any(re.match(r"-[nErs]*i.|--in-place=", word) for word in process.arguments):
        raise NotExact("sed -i with a suffix")
    options = process.options("nErie:", {"quiet": "n", "regexp-extended": "E", "expression": "e:", "in-place": "i"})
    scripts, operands = options.given.get("e", []), list(options.operands)
    if not scripts:
        if not operands:
            raise NotExact("sed without a script")
        scripts = [operands.pop(0)]
    commands = _Reader("\n".join(scripts), extended="E" in options or "r" in options).commands()
    found = list(process.inputs(operands, complaint="can't read {}", code=MISSING_INPUT))
    if process.code and found:
        raise NotExact("sed of files of which some do not exist")
    if "i" in options and not operands:
        raise NotExact("sed -i without a file")
    if "i" in options:
        for name, data in found:
            process.disk.write(name, _edited(process, data, commands, is_quiet="n" in options))
    elif any(not data.endswith(b"\n") for _, data in found[:-1]) and any(data for _, data in found[1:]):
        raise NotExact("sed of a file without a line break at its end")
    else:
        process.write(_edited(process, b"".join([data for _, data in found]), commands, is_quiet="n" in options))
    return process.code


def _edited(process: Process, data: bytes, commands: list[_Command], *, is_quiet: bool) -> bytes:
    out: list[str] = []
    raw = lines_of(data)
    is_ascii = data.isascii()
    for command in commands:
        command.is_open = False
        if not is_ascii and "i" in command.flags:
            raise NotExact("sed of what is not ASCII")
    for number, one in enumerate(raw, 1):
        text = process.text(one)
        end = "\n" if text.endswith("\n") else ""
        line, is_deleted, is_last = text.removesuffix("\n"), False, False
        printed = 0
        for command in commands:
            if not command.applies(line, number, len(raw)):
                continue
            if command.name == "s":
                line, changes = _substituted(line, command)
            if command.name == "p" or (command.name == "s" and changes and "p" in command.flags):
                out.append(line + end)
                printed += 1
            is_deleted, is_last = command.name == "d", command.name == "q"
            if is_deleted or is_last:
                break
        if not is_deleted and not is_quiet:
            out.append(line + end)
            printed += 1
        if printed > 1 and not end:
            raise NotExact("sed that prints a last line without a line break twice")
        if is_last:
            break
    return "".join(out).encode()


def _substituted(line: str, command: _Command) -> tuple[str, int]:
    """Return the line as the command changes it, and how often it did."""
    assert command.pattern is not None

    def put(found: re.Match[str]) -> str:
        return REPLACED.sub(lambda escape: _meant(escape, found), command.replacement)

    return command.pattern.subn(put, line, count=0 if "g" in command.flags else 1)


def _meant(escape: re.Match[str], found: re.Match[str]) -> str:
    """Return what ``&`` or an escape in a replacement stands for."""
    letter = escape[1]
    if letter is None:
        return found[0]
    if letter.isdigit():
        return found[int(letter)] or ""
    return {"n": "\n", "t": "\t"}.get(letter, letter)
