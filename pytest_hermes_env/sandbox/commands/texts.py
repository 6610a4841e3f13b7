"""Commands that read text and write text: cat, head, tail, wc, sort, uniq, cut, tr, tee, tac, rev, nl."""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Sequence
from dataclasses import dataclass

from pytest_hermes_env.sandbox.commands.options import read_options
from pytest_hermes_env.sandbox.commands.patterns import CLASSES
from pytest_hermes_env.sandbox.commands.process import Process, UnsupportedOption, lines_of

__all__ = ["TEXTS"]


def cat(process: Process) -> int:
    """Write files one after the other; ``-n``, ``-b`` number lines, ``-A`` shows ends and tabs, ``-s`` squeezes blank lines."""
    options = read_options(process.words, "nbAsEu", {"number": "n", "show-all": "A", "show-ends": "E", "squeeze-blank": "s"})
    data = process.content(options.operands)
    if not set(options.letters) - {"u"}:
        process.write(data)
        return process.code
    number, was_blank = 0, False
    for raw in lines_of(data):
        line = raw
        is_blank = line == b"\n"
        if "s" in options and is_blank and was_blank:
            continue
        was_blank = is_blank
        if ("b" in options and not is_blank) or ("n" in options and "b" not in options):
            number += 1
            process.write(f"{number:6d}\t")
        if "A" in options or "E" in options:
            line = line.replace(b"\n", b"$\n")
        if "A" in options:
            line = b"".join(_shown(byte) for byte in line)
        process.write(line)
    return process.code


def _shown(byte: int) -> bytes:
    if byte == 9:  # noqa: PLR2004 - tab
        return b"^I"
    if byte == 10:  # noqa: PLR2004 - line break
        return b"\n"
    prefix, low = (b"M-", byte - 128) if byte >= 128 else (b"", byte)  # noqa: PLR2004
    if low < 32:  # noqa: PLR2004
        return prefix + b"^" + bytes([low + 64])
    return prefix + (b"^?" if low == 127 else bytes([low]))  # noqa: PLR2004


def head_or_tail(process: Process) -> int:
    """Write the first or last lines (``-n``) or bytes (``-c``): all but the last N (``head -N``), or from one on (``tail +N``)."""
    words = list(process.words)
    if len(words) > 1 and (old_style := re.fullmatch(r"-(\d+)([qv]*)", words[1])):
        words[1:2] = ["-n", old_style[1], *(f"-{letter}" for letter in old_style[2])]
    options = read_options(words, "n:c:qv", {"lines": "n:", "bytes": "c:", "quiet": "q", "silent": "q", "verbose": "v"})
    text = options.get("c") or options.get("n", "10")
    found = re.fullmatch(r"([+-]?)(\d+)([kKM]?)", text)
    if not found:
        raise UnsupportedOption(f"{process.name} with the count {text!r}")
    count = int(found[2]) * {"": 1, "k": 1024, "K": 1024, "M": 1024 * 1024}[found[3]]
    if process.name.endswith("head"):
        part = slice(-count if count else None) if found[1] == "-" else slice(count)
    else:
        part = slice(max(count - 1, 0), None) if found[1] == "+" else slice(-count if count else sys.maxsize, None)
    has_headers = ("v" in options or len(options.operands) > 1) and "q" not in options
    separator = ""
    for name, data in process.inputs(options.operands, complaint="cannot open '{name}' for reading"):
        if has_headers:
            process.write(f"{separator}==> {'standard input' if name == '-' else name} <==\n")
            separator = "\n"
        process.write(data[part] if "c" in options else b"".join(lines_of(data)[part]))
    return process.code


def wc(process: Process) -> int:
    """Count lines, words, characters and bytes."""
    long = {"lines": "l", "words": "w", "bytes": "c", "chars": "m"}
    options = read_options(process.words, "lwcm", long)
    chosen = [letter for letter in "lwmc" if letter in options] or list("lwc")
    rows = [(_counts(data, chosen), name) for name, data in process.inputs(options.operands)]
    if len(options.operands) > 1:
        rows.append(([sum(counts[at] for counts, _ in rows) for at in range(len(chosen))], "total"))
    width = _width(process, options.operands, chosen)
    for counts, name in rows:
        text = " ".join(str(count).rjust(width) for count in counts)
        process.write(f"{text}{f' {name}' if options.operands else ''}\n")
    return process.code


def _counts(data: bytes, chosen: list[str]) -> list[int]:
    counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data), "m": len(data.decode(errors="ignore"))}
    return [counts[letter] for letter in chosen]


def _width(process: Process, operands: Sequence[str], chosen: list[str]) -> int:
    """Return GNU's column width: of the summed file sizes, 7 where one is no regular file, 1 for a single number."""
    if len(chosen) == 1 and len(operands) <= 1:
        return 1
    files = [process.path(name) for name in operands if name != "-"]
    if not operands or "-" in operands:
        return 7
    return len(str(sum(len(process.files.read(path)) for path in files if process.files.is_file(path)))) or 1


def sort(process: Process) -> int:
    """Sort lines by their bytes; ``-n``, ``-r``, ``-u``, ``-f``, ``-k``, ``-t``, ``-o``."""
    long = {"numeric-sort": "n", "reverse": "r", "unique": "u", "ignore-case": "f", "key": "k:", "field-separator": "t:"}
    options = read_options(process.words, "nrufsbk:t:o:", long)
    inputs = process.inputs(options.operands, complaint="cannot read: {name}", code=2)
    lines = [line.removesuffix(b"\n") for _, data in inputs for line in lines_of(data)]
    if process.code:
        return process.code
    keys = [_key(text, options.letters) for text in options.all("k")] or [_Key(flags=options.letters)]

    def order(line: bytes) -> tuple[object, ...]:
        return tuple(key.of(line, options.get("t")) for key in keys)

    is_reverse = "r" in options
    if "u" in options:
        lines = list({order(line): line for line in reversed(lines)}.values())
    elif "s" not in options:
        lines.sort(reverse=is_reverse)
    lines.sort(key=order, reverse=is_reverse)
    text = b"".join(line + b"\n" for line in lines)
    if "o" in options:
        process.files.write(process.path(options.get("o")), text)
    else:
        process.write(text)
    return 0


@dataclass(frozen=True, kw_only=True)
class _Key:
    """One sort key: how it is compared, and its first and last field; without them the whole line."""

    flags: Container[str]
    first: int = 0
    last: int = 0

    def of(self, line: bytes, separator: str) -> object:
        part = self._part(line, separator)
        if "n" in self.flags:
            found = re.match(rb"\s*(-?\d*\.?\d*)", part)
            digits = found[1] if found else b""
            return float(digits) if digits.strip(b"-.") else 0.0
        return part.upper() if "f" in self.flags else part

    def _part(self, line: bytes, separator: str) -> bytes:
        if not self.first:
            return line
        fields = line.split(separator.encode()) if separator else re.findall(rb"\s*\S+", line)
        return separator.encode().join(fields[self.first - 1 : self.last or None])


def _key(text: str, letters: tuple[str, ...]) -> _Key:
    found = re.fullmatch(r"(\d+)([nfb]*)(?:,(\d+)([nfb]*))?", text)
    if not found:
        raise UnsupportedOption(f"sort -k {text}")
    return _Key(flags=found[2] + (found[4] or "") or letters, first=int(found[1]), last=int(found[3] or 0))


def uniq(process: Process) -> int:
    """Write each run of equal lines once; ``-c`` counts, ``-d`` only repeated, ``-u`` only single, ``-i`` whatever the case."""
    options = read_options(process.words, "cdui", {"count": "c", "repeated": "d", "unique": "u", "ignore-case": "i"})
    if len(options.operands) > 1:
        raise UnsupportedOption("uniq with an output file")
    data = process.content(options.operands)
    runs: list[tuple[bytes, int]] = []
    for raw in lines_of(data):
        line = raw.removesuffix(b"\n")
        same = runs and (runs[-1][0] == line or ("i" in options and runs[-1][0].lower() == line.lower()))
        if same:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((line, 1))
    for line, count in runs:
        if ("d" in options and count == 1) or ("u" in options and count > 1):
            continue
        process.write((f"{count:7d} ".encode() if "c" in options else b"") + line + b"\n")
    return process.code


def _ranges(process: Process, text: str) -> list[tuple[int, int]]:
    parts = [re.fullmatch(r"(\d*)(-?)(\d*)", part) for part in text.split(",")]
    if not all(part and part.group() not in {"", "-"} for part in parts):
        raise UnsupportedOption(f"{process.name} with the list {text!r}")
    return [(int(part[1] or 1), int(part[3] or 10**9) if part[2] else int(part[1])) for part in parts if part is not None]


def cut(process: Process) -> int:
    """Write parts of lines: fields (``-f``, ``-d``), characters (``-c``) or bytes (``-b``)."""
    options = read_options(
        process.words, "d:f:c:b:s", {"delimiter": "d:", "fields": "f:", "characters": "c:", "only-delimited": "s"}
    )
    chosen = next((letter for letter in "fcb" if letter in options), None)
    if chosen is None:
        return process.complain(
            "you must specify a list of bytes, characters, or fields\nTry 'cut --help' for more information."
        )
    ranges = _ranges(process, options.get(chosen))
    delimiter = (options.get("d") or "\t").encode()

    def holds(number: int) -> bool:
        return any(first <= number <= last for first, last in ranges)

    for _, data in process.inputs(options.operands):
        for raw in lines_of(data):
            line = raw.removesuffix(b"\n")
            if chosen != "f":
                process.write(bytes(byte for number, byte in enumerate(line, 1) if holds(number)) + b"\n")
            elif delimiter in line:
                fields = line.split(delimiter)
                process.write(delimiter.join(field for number, field in enumerate(fields, 1) if holds(number)) + b"\n")
            elif "s" not in options:
                process.write(line + b"\n")
    return process.code


ESCAPES = {b"n": 10, b"t": 9, b"r": 13, b"0": 0, b"a": 7, b"b": 8, b"f": 12, b"v": 11}
"""Letters after a backslash in a set of tr → their bytes."""


def _set(process: Process, text: str) -> bytes:
    """Return the bytes of a set: ranges, escapes and classes stand for theirs."""
    names = set(re.findall(r"\[:(\w+):\]", text)) - CLASSES.keys()
    if names:
        raise UnsupportedOption(f"{process.name} [:{min(names)}:]")
    everything = bytes(range(256))
    found = bytearray()
    for part in re.finditer(rb"\[:(\w+):\]|(\\?.)(?:-(\\?.))?", text.encode(errors="surrogateescape"), re.DOTALL):
        if part[1]:
            found += b"".join(re.findall(f"[{CLASSES[part[1].decode()]}]".encode(), everything))
        else:
            first = _letter(part[2])
            found += bytes(range(first, (_letter(part[3]) if part[3] else first) + 1))
    return bytes(found)


def _letter(text: bytes) -> int:
    return ESCAPES.get(text[1:], text[-1])


def tr(process: Process) -> int:
    """Translate, delete (``-d``) or squeeze (``-s``) bytes; ``-c`` means all others."""
    options = read_options(process.words, "cCds", {"delete": "d", "squeeze-repeats": "s", "complement": "c"})
    sets = [_set(process, text) for text in options.operands]
    if not sets or len(sets) > 2:  # noqa: PLR2004
        raise UnsupportedOption(f"tr {' '.join(process.arguments)}")
    first = bytes(byte for byte in range(256) if byte not in sets[0]) if "c" in options or "C" in options else sets[0]
    data = process.stdin
    squeezed = sets[-1] if len(sets) > 1 else first
    if "d" in options:
        data = bytes(byte for byte in data if byte not in first)
    elif len(sets) > 1:
        second = sets[1][: len(first)].ljust(len(first), sets[1][-1:]) if sets[1] else first
        data = data.translate(bytes.maketrans(first, second))
    if "s" in options:
        data = bytes(byte for at, byte in enumerate(data) if at == 0 or byte != data[at - 1] or byte not in squeezed)
    process.write(data)
    return 0


def tee(process: Process) -> int:
    """Write standard input to files, and on."""
    options = read_options(process.words, "a", {"append": "a"})
    process.write(process.stdin)
    for name in options.operands:
        with process.complaining(name):
            process.files.write(process.path(name), process.stdin, append="a" in options)
    return process.code


def tac(process: Process) -> int:
    """Write lines in reverse order."""
    options = read_options(process.words, "")
    for _, data in process.inputs(options.operands, complaint="failed to open '{name}' for reading"):
        process.write(b"".join(reversed(lines_of(data))))
    return process.code


def rev(process: Process) -> int:
    """Write each line backwards."""
    options = read_options(process.words, "")
    for _, data in process.inputs(options.operands, complaint="cannot open {name}"):
        for raw in lines_of(data):
            line = raw.removesuffix(b"\n")
            end = b"\n" if raw.endswith(b"\n") else b""
            process.write(line.decode(errors="surrogateescape")[::-1].encode(errors="surrogateescape") + end)
    return process.code


def nl(process: Process) -> int:
    """Number the lines that are not empty (``-b a``: all)."""
    options = read_options(process.words, "b:", {"body-numbering": "b:"})
    style = options.get("b", "t")
    if style not in {"a", "t"}:
        raise UnsupportedOption(f"nl -b {style}")
    number = 0
    for _, data in process.inputs(options.operands):
        for line in lines_of(data):
            if style == "a" or line != b"\n":
                number += 1
                process.write(f"{number:6d}\t".encode() + line)
            else:
                process.write(b"       " + line)
    return process.code


TEXTS = {
    "cat": cat,
    "cut": cut,
    "head": head_or_tail,
    "nl": nl,
    "rev": rev,
    "sort": sort,
    "tac": tac,
    "tail": head_or_tail,
    "tee": tee,
    "tr": tr,
    "uniq": uniq,
    "wc": wc,
}
"""Name → program."""
