"""sed: substitution, deletion and printing of lines by number, by pattern or in a range."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_hermes_env.sandbox.commands.options import read_options
from pytest_hermes_env.sandbox.commands.patterns import compiled
from pytest_hermes_env.sandbox.commands.process import Process, UnsupportedOption, lines_of

__all__ = ["sed"]

ESCAPE = re.compile(r"&|\\(.)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class _Address:
    """A line number, ``$`` as -1, or a pattern."""

    number: int = 0
    pattern: re.Pattern[str] | None = None

    def holds(self, line: str, number: int, last: int) -> bool:
        if self.pattern is not None:
            return self.pattern.search(line) is not None
        return number == (last if self.number == -1 else self.number)


@dataclass(kw_only=True)
class _Command:
    """One command of a script, and whether its range is open at the moment."""

    name: str
    first: _Address | None = None
    second: _Address | None = None
    is_negated: bool = False
    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    flags: str = ""
    text: str = ""
    is_open: bool = False

    def applies(self, line: str, number: int, last: int) -> bool:
        return self._selects(line, number, last) != self.is_negated

    def _selects(self, line: str, number: int, last: int) -> bool:
        if self.first is None:
            return True
        if self.second is None:
            return self.first.holds(line, number, last)
        if self.is_open:
            ends = self.second.holds(line, number, last) or 0 < self.second.number <= number
            self.is_open = not ends
            return not (self.second.pattern is None and 0 < self.second.number < number)
        if self.first.holds(line, number, last):
            is_over = self.second.pattern is None and 0 < self.second.number <= number
            self.is_open = not is_over
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
            if self.script[self.at] == "#":
                end = self.script.find("\n", self.at)
                self.at = len(self.script) if end < 0 else end
                continue
            found.append(self._command())

    def _skip(self, letters: str) -> None:
        while self.at < len(self.script) and self.script[self.at] in letters:
            self.at += 1

    def _command(self) -> _Command:
        first = self._address()
        second = None
        if first is not None and self._peek() == ",":
            self.at += 1
            second = self._address()
            if second is None:
                raise UnsupportedOption(f"sed {self.script}")
        self._skip(" \t")
        is_negated = self._peek() == "!"
        self.at += is_negated
        name = self._peek()
        self.at += 1
        command = _Command(name=name, first=first, second=second, is_negated=is_negated)
        if name == "s":
            delimiter = self._peek()
            self.at += 1
            pattern, command.replacement = self._until(delimiter), self._until(delimiter, keeps_escape=True)
            found = re.compile(r"[gpiI]*").match(self.script, self.at)
            command.flags = found.group() if found else ""
            self.at += len(command.flags)
            ignore_case = bool({"i", "I"} & set(command.flags))
            command.pattern = compiled(pattern, extended=self.extended, ignore_case=ignore_case)
            if any(int(number) > command.pattern.groups for number in re.findall(r"\\(\d)", command.replacement)):
                raise UnsupportedOption(f"sed {self.script}")
        elif name in {"a", "i"}:
            end = self.script.find("\n", self.at)
            end = len(self.script) if end < 0 else end
            command.text = self.script[self.at : end].lstrip().removeprefix("\\").lstrip(" \t")
            self.at = end
        elif name not in {"d", "p", "q"}:
            raise UnsupportedOption(f"sed {self.script}")
        self._skip(" \t")
        if self._peek() not in {"", ";", "\n", "}", "#"}:
            raise UnsupportedOption(f"sed {self.script}")
        return command

    def _peek(self) -> str:
        return self.script[self.at : self.at + 1]

    def _address(self) -> _Address | None:
        found = re.compile(r"\d+|\$").match(self.script, self.at)
        if found:
            self.at = found.end()
            return _Address(number=-1 if found.group() == "$" else int(found.group()))
        if self._peek() == "/":
            self.at += 1
            return _Address(pattern=compiled(self._until("/"), extended=self.extended))
        return None

    def _until(self, delimiter: str, *, keeps_escape: bool = False) -> str:
        out = ""
        while self.at < len(self.script):
            letter = self.script[self.at]
            if letter == "\\" and self.at + 1 < len(self.script):
                following = self.script[self.at + 1]
                out += following if following == delimiter and not keeps_escape else letter + following
                if keeps_escape and following == delimiter and delimiter not in "&\\123456789n":
                    out = out[:-2] + following
                self.at += 2
                continue
            self.at += 1
            if letter == delimiter:
                return out
            out += letter
        raise UnsupportedOption(f"sed {self.script}")


def sed(process: Process) -> int:
    """Edit lines by a script; ``-n`` prints only what the script prints, ``-i`` writes the files back."""
    if any(re.match(r"-[nErs]*i.|--in-place=", word) for word in process.arguments):
        raise UnsupportedOption("sed -i with a suffix")
    long = {"quiet": "n", "silent": "n", "regexp-extended": "E", "expression": "e:", "in-place": "i"}
    options = read_options(process.words, "nErie:s", long)
    scripts, operands = options.all("e"), options.operands
    if not scripts:
        if not operands:
            raise UnsupportedOption("sed without a script")
        scripts, operands = [operands[0]], operands[1:]
    commands = _Reader("\n".join(scripts), extended="E" in options or "r" in options).commands()
    found = list(process.inputs(operands, complaint="can't read {name}", code=2))
    if "i" in options:
        for name, data in found:
            process.files.write(process.path(name), _edited(data, commands, is_quiet="n" in options))
    else:
        process.write(_edited(b"".join(data for _, data in found), commands, is_quiet="n" in options))
    return process.code


def _edited(data: bytes, commands: list[_Command], *, is_quiet: bool) -> bytes:
    out: list[str] = []
    raw = lines_of(data)
    for command in commands:
        command.is_open = False
    for number, one in enumerate(raw, 1):
        text = one.decode(errors="surrogateescape")
        end = "\n" if text.endswith("\n") else ""
        line, is_deleted, is_last, after = text.removesuffix("\n"), False, False, []
        for command in commands:
            if not command.applies(line, number, len(raw)):
                continue
            if command.name == "d":
                is_deleted = True
                break
            if command.name == "s":
                line, changes = _substituted(line, command)
                if changes and "p" in command.flags:
                    out.append(line + "\n")
            elif command.name == "p":
                out.append(line + (end or "\n"))
            elif command.name == "i":
                out.append(command.text + "\n")
            elif command.name == "a":
                after.append(command.text + "\n")
            elif command.name == "q":
                is_last = True
                break
        if not is_deleted and not is_quiet:
            out.append(line + (end or ("\n" if after else "")))
        out += after
        if is_last:
            break
    return "".join(out).encode(errors="surrogateescape")


def _substituted(line: str, command: _Command) -> tuple[str, int]:
    """Return the line as the command changes it, and how often it did."""
    assert command.pattern is not None

    def put(found: re.Match[str]) -> str:
        return ESCAPE.sub(lambda escape: _meant(escape, found), command.replacement)

    return command.pattern.subn(put, line, count=0 if "g" in command.flags else 1)


def _meant(escape: re.Match[str], found: re.Match[str]) -> str:
    """Return what ``&`` or an escape in a replacement stands for."""
    letter = escape[1]
    if letter is None:
        return found.group()
    if letter.isdigit():
        return found.group(int(letter)) or ""
    if letter in "UuLlE":
        raise UnsupportedOption(f"sed with \\{letter}")
    return {"n": "\n", "t": "\t"}.get(letter, letter)
