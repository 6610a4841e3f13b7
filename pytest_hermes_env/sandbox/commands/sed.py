"""sed: one substitution, deletion or printing, of all lines, of numbered lines or of those that match.

Source: GNU sed 4.9.
"""

from __future__ import annotations

import re

from pytest_hermes_env.sandbox.commands.patterns import compiled
from pytest_hermes_env.sandbox.commands.process import Process, lines_of
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["sed"]

ADDRESS = r"([1-9]\d{0,8}|\$|/(?:[^/\\\n\[]|\\[^\n])+/)"
SCRIPT = re.compile(
    rf"(?:{ADDRESS}(?:,{ADDRESS})?)?(!?)(?:([dp])|s([/|,#:@])((?:(?!\5)[^\\\n]|\\[^\n])+)\5((?:(?!\5)[^\\\n]|\\[^\n])*)\5([gpiI]*))"
)
REPLACED = re.compile(r"&|\\(.)")
MISSING_INPUT = 2


class _Script:
    """One command of sed."""

    def __init__(self, script: str, *, extended: bool) -> None:
        found = SCRIPT.fullmatch(script.strip(" ;"))
        if not found:
            raise NotExact(f"sed {script}")
        first, last, negation, letter, delimiter, pattern, new, flags = found.groups()
        self.name, self.is_negated, self.flags = letter or "s", bool(negation), (flags or "").lower()
        self.matches = self.pattern = None
        self.span = (first, last or first)
        is_numbered = all(one is None or one[0] != "/" for one in self.span)
        if not is_numbered:
            if last:
                raise NotExact("sed from a line that matches to another")
            self.matches = compiled(first[1:-1].replace("\\/", "/"), extended=extended, finds_text=True, is_sed=True)
        if letter:
            return
        if delimiter == "|" and (extended or "\\|" in pattern + new):
            raise NotExact("sed with this delimiter")
        if re.search(r"\[[^]]*$", pattern) or (f"\\{delimiter}" in pattern + new and delimiter not in "/,#:@"):
            raise NotExact("sed with a delimiter in brackets")
        pattern, self.new = (text.replace(f"\\{delimiter}", delimiter) for text in (pattern, new))
        self.pattern = compiled(pattern, extended=extended, ignore_case="i" in self.flags, finds_text=True, is_sed=True)
        for escape in re.findall(r"\\(.)", self.new):
            is_group = escape.isdigit() and 0 < int(escape) <= self.pattern.groups
            if (escape.isalnum() and not is_group and escape not in "nt") or not escape.isascii():
                raise NotExact(f"sed {script}")
        if "g" in self.flags and self.pattern.fullmatch(""):
            raise NotExact("sed of what matches nothing")

    def selects(self, line: str, number: int, last: int) -> bool:
        """Return whether the command applies to a line."""
        if self.matches is not None:
            return (self.matches.search(line) is not None) != self.is_negated
        begin, end = (last if one == "$" else int(one or 0) for one in self.span)
        return (begin <= number <= max(begin, end) or self.span[0] is None) != self.is_negated

    def changed(self, line: str) -> tuple[str, int]:
        """Return a line as the substitution leaves it, and how often it changed it."""
        assert self.pattern is not None
        return self.pattern.subn(
            lambda found: REPLACED.sub(lambda escape: _meant(escape, found), self.new), line, count="g" not in self.flags
        )


def sed(process: Process) -> int:
    """Edit lines by a script; ``-n`` prints only what the script prints, ``-i`` writes the files back."""
    if any(re.match(r"-[nErs]*i.|--in-place=", word) for word in process.arguments):
        raise NotExact("sed -i with a suffix")
    options = process.options("nErie:", {"quiet": "n", "regexp-extended": "E", "expression": "e:", "in-place": "i"})
    scripts, operands = options.given.get("e", []), list(options.operands)
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    if len(scripts) != 1 or ("i" in options and not operands):
        raise NotExact("this sed")
    script = _Script(scripts[0], extended="E" in options or "r" in options)
    found = list(process.inputs(operands, complaint=lambda name: f"can't read {name}", code=MISSING_INPUT))
    if len(operands) > 1 and (process.code or any(not data.endswith(b"\n") for _, data in found)):
        raise NotExact("sed of these files")
    if "i" in options:
        for name, data in found:
            process.disk.write(name, _edited(process, data, script, is_quiet="n" in options))
    else:
        process.write(_edited(process, b"".join([data for _, data in found]), script, is_quiet="n" in options))
    return process.code


def _edited(process: Process, data: bytes, script: _Script, *, is_quiet: bool) -> bytes:
    out: list[str] = []
    lines = lines_of(data)
    if "i" in script.flags and not data.isascii():
        raise NotExact("sed of what is not ASCII")
    for number, raw in enumerate(lines, 1):
        text = process.text(raw)
        line, end = text.removesuffix("\n"), "\n" if text.endswith("\n") else ""
        prints, changes = int(not is_quiet), 0
        if script.selects(line, number, len(lines)):
            if script.name == "s":
                line, changes = script.changed(line)
            prints = 0 if script.name == "d" else prints + (script.name == "p" or (changes > 0 and "p" in script.flags))
        if prints > 1 and not end:
            raise NotExact("sed that prints a last line without a line break twice")
        out.append(f"{line}{end}" * prints)
    return "".join(out).encode()


def _meant(escape: re.Match[str], found: re.Match[str]) -> str:
    """Return what ``&`` or an escape in a replacement stands for."""
    letter = escape[1]
    if letter is None:
        return found[0]
    if letter.isdigit():
        return found[int(letter)] or ""
    return {"n": "\n", "t": "\t"}.get(letter, letter)
