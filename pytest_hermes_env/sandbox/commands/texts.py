"""Commands that read text and write text: cat, head, tail, wc, sort, uniq, cut, tr, tee, tac, rev, nl."""

from __future__ import annotations

import re

from pytest_hermes_env.sandbox.commands.inputs import inputs, lines_of, reason
from pytest_hermes_env.sandbox.commands.options import Options, read_options
from pytest_hermes_env.sandbox.commands.process import Process, UnsupportedOption

__all__ = ["TEXTS"]


def cat(process: Process) -> int:
    """Write files one after the other; ``-n``, ``-b`` number lines, ``-A`` shows ends and tabs, ``-s`` squeezes blank lines."""
    options = read_options(process, "nbAsEu", {"number": "n", "show-all": "A", "show-ends": "E", "squeeze-blank": "s"})
    failures: list[str] = []
    data = b"".join(one.data for one in inputs(process, options.operands, failures))
    if not options.values.keys() - {"u"}:
        process.write(data)
        return 1 if failures else 0
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
    return 1 if failures else 0


def _shown(byte: int) -> bytes:
    if byte == 9:  # noqa: PLR2004 - tab
        return b"^I"
    if byte == 10:  # noqa: PLR2004 - line break
        return b"\n"
    prefix, low = (b"M-", byte - 128) if byte >= 128 else (b"", byte)  # noqa: PLR2004
    if low < 32:  # noqa: PLR2004
        return prefix + b"^" + bytes([low + 64])
    return prefix + (b"^?" if low == 127 else bytes([low]))  # noqa: PLR2004


def _count(process: Process, text: str) -> tuple[str, int]:
    found = re.fullmatch(r"([+-]?)(\d+)([kKM]?)", text)
    if not found:
        raise UnsupportedOption(f"{process.name} with the count {text!r}")
    return found[1], int(found[2]) * {"": 1, "k": 1024, "K": 1024, "M": 1024 * 1024}[found[3]]


def _old_style(process: Process) -> Process:
    """Write ``head -5`` and ``tail +3`` as ``-n``."""
    words = list(process.words)
    if len(words) > 1 and (found := re.fullmatch(r"-(\d+)([qv]*)", words[1])):
        words[1:2] = ["-n", found[1], *(f"-{letter}" for letter in found[2])]
    process.words = tuple(words)
    return process


def head(process: Process) -> int:
    """Write the first lines (``-n``) or bytes (``-c``)."""
    options = read_options(
        _old_style(process), "n:c:qv", {"lines": "n:", "bytes": "c:", "quiet": "q", "silent": "q", "verbose": "v"}
    )
    sign, count = _count(process, options.get("c") or options.get("n") or "10")

    def part(data: bytes) -> bytes:
        pieces: list[bytes] | bytes = data if "c" in options else lines_of(data)
        chosen = pieces[:count] if sign != "-" else pieces[: max(len(pieces) - count, 0)]
        return chosen if isinstance(chosen, bytes) else b"".join(chosen)

    return _with_headers(process, options, part)


def tail(process: Process) -> int:
    """Write the last lines (``-n``) or bytes (``-c``), or from one on (``+N``)."""
    options = read_options(
        _old_style(process), "n:c:qv", {"lines": "n:", "bytes": "c:", "quiet": "q", "silent": "q", "verbose": "v"}
    )
    sign, count = _count(process, options.get("c") or options.get("n") or "10")

    def part(data: bytes) -> bytes:
        pieces: list[bytes] | bytes = data if "c" in options else lines_of(data)
        chosen = pieces[max(count - 1, 0) :] if sign == "+" else pieces[max(len(pieces) - count, 0) :]
        return chosen if isinstance(chosen, bytes) else b"".join(chosen)

    return _with_headers(process, options, part)


def _with_headers(process: Process, options: Options, part: object) -> int:
    failures: list[str] = []
    names = options.operands
    has_headers = ("v" in options or len(names) > 1) and "q" not in options
    is_first = True
    for one in inputs(process, names, failures, complaint="cannot open '{name}' for reading: {reason}"):
        if has_headers:
            name = "standard input" if one.name == "-" else one.name
            process.write(f"{'' if is_first else chr(10)}==> {name} <==\n")
        is_first = False
        process.write(part(one.data))  # type: ignore[operator]
    return 1 if failures else 0


def wc(process: Process) -> int:
    """Count lines, words, characters and bytes."""
    long = {"lines": "l", "words": "w", "bytes": "c", "chars": "m"}
    options = read_options(process, "lwcm", long)
    chosen = [letter for letter in "lwmc" if letter in options] or list("lwc")
    failures: list[str] = []
    rows = [(_counts(one.data, chosen), one.name) for one in inputs(process, options.operands, failures)]
    if len(options.operands) > 1:
        rows.append(
            ([sum(column) for column in zip(*(counts for counts, _ in rows), strict=True)] or [0] * len(chosen), "total")
        )
    width = _width(process, options.operands, chosen)
    for counts, name in rows:
        text = " ".join(str(count).rjust(width) for count in counts)
        process.write(f"{text}{f' {name}' if options.operands else ''}\n")
    return 1 if failures else 0


def _counts(data: bytes, chosen: list[str]) -> list[int]:
    counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data), "m": len(data.decode(errors="ignore"))}
    return [counts[letter] for letter in chosen]


def _width(process: Process, operands: list[str], chosen: list[str]) -> int:
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
    options = read_options(process, "nrufsbk:t:o:", long)
    failures: list[str] = []
    data = b"".join(
        one.data if one.data.endswith(b"\n") or not one.data else one.data + b"\n"
        for one in inputs(process, options.operands, failures, complaint="cannot read: {name}: {reason}")
    )
    if failures:
        return 2
    lines = [line.removesuffix(b"\n") for line in lines_of(data)]
    keys = [_key(process, text, options) for text in options.all("k")] or [_Key(flags="".join(options.values))]

    def order(line: bytes) -> tuple[object, ...]:
        return tuple(key.of(line, options.get("t")) for key in keys)

    is_reverse = "r" in options
    if "u" in options:
        lines = list({order(line): line for line in reversed(lines)}.values())
    elif "s" not in options:
        lines.sort(reverse=is_reverse)
    lines.sort(key=order, reverse=is_reverse)
    text = b"".join(line + b"\n" for line in lines)
    target = options.get("o")
    if target is not None:
        process.files.write(process.path(target), text)
    else:
        process.write(text)
    return 0


class _Key:
    """One sort key: which fields, and how they are compared."""

    def __init__(self, *, flags: str, first: int = 0, last: int = 0) -> None:
        self.flags, self.first, self.last = flags, first, last

    def of(self, line: bytes, separator: str | None) -> object:
        part = self._part(line, separator)
        if "n" in self.flags:
            found = re.match(rb"\s*(-?\d*\.?\d*)", part)
            digits = found[1] if found else b""
            return float(digits) if digits.strip(b"-.") else 0.0
        if "f" in self.flags:
            return part.upper()
        return part

    def _part(self, line: bytes, separator: str | None) -> bytes:
        if not self.first:
            return line
        fields = line.split(separator.encode()) if separator else re.findall(rb"\s*\S+", line)
        joined = (separator or "").encode()
        return joined.join(fields[self.first - 1 : self.last or None])


def _key(process: Process, text: str, options: Options) -> _Key:
    found = re.fullmatch(r"(\d+)([nrfb]*)(?:,(\d+)([nrfb]*))?", text)
    if not found or "r" in (found[2] + (found[4] or "")):
        raise UnsupportedOption(f"{process.name} -k {text}")
    flags = found[2] + (found[4] or "") or "".join(options.values)
    return _Key(flags=flags, first=int(found[1]), last=int(found[3] or 0))


def uniq(process: Process) -> int:
    """Write each run of equal lines once; ``-c`` counts, ``-d`` only repeated, ``-u`` only single, ``-i`` whatever the case."""
    options = read_options(process, "cdui", {"count": "c", "repeated": "d", "unique": "u", "ignore-case": "i"})
    if len(options.operands) > 1:
        raise UnsupportedOption("uniq with an output file")
    failures: list[str] = []
    data = b"".join(one.data for one in inputs(process, options.operands, failures))
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
    return 1 if failures else 0


def _ranges(process: Process, text: str) -> list[tuple[int, int]]:
    parts = [re.fullmatch(r"(\d*)(-?)(\d*)", part) for part in text.split(",")]
    if not all(part and part.group() not in {"", "-"} for part in parts):
        raise UnsupportedOption(f"{process.name} with the list {text!r}")
    return [(int(part[1] or 1), int(part[3] or 10**9) if part[2] else int(part[1])) for part in parts if part is not None]


def cut(process: Process) -> int:
    """Write parts of lines: fields (``-f``, ``-d``), characters (``-c``) or bytes (``-b``)."""
    options = read_options(process, "d:f:c:b:s", {"delimiter": "d:", "fields": "f:", "characters": "c:", "only-delimited": "s"})
    chosen = next((letter for letter in "fcb" if letter in options), None)
    if chosen is None:
        process.complain("you must specify a list of bytes, characters, or fields")
        process.err += b"Try 'cut --help' for more information.\n"
        return 1
    ranges = _ranges(process, options.get(chosen) or "")
    delimiter = (options.get("d") or "\t").encode()
    failures: list[str] = []

    def holds(number: int) -> bool:
        return any(first <= number <= last for first, last in ranges)

    for one in inputs(process, options.operands, failures):
        for raw in lines_of(one.data):
            line = raw.removesuffix(b"\n")
            if chosen != "f":
                process.write(bytes(byte for number, byte in enumerate(line, 1) if holds(number)) + b"\n")
            elif delimiter in line:
                fields = line.split(delimiter)
                process.write(delimiter.join(field for number, field in enumerate(fields, 1) if holds(number)) + b"\n")
            elif "s" not in options:
                process.write(line + b"\n")
    return 1 if failures else 0


_CLASSES = {
    "upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "lower": "abcdefghijklmnopqrstuvwxyz",
    "digit": "0123456789",
    "alpha": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "alnum": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "space": "\t\n\v\f\r ",
    "blank": "\t ",
    "punct": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
}


def _set(process: Process, text: str) -> bytes:
    found = bytearray()
    data = re.sub(r"\[:(\w+):\]", lambda match: _class(process, match[1]), text).encode(errors="surrogateescape")
    escapes = {110: 10, 116: 9, 114: 13, 92: 92, 48: 0, 97: 7, 98: 8, 102: 12, 118: 11}
    plain: list[tuple[int, bool]] = []
    at = 0
    while at < len(data):
        if data[at] == 92 and at + 1 < len(data):  # noqa: PLR2004 - a backslash
            plain.append((escapes.get(data[at + 1], data[at + 1]), True))
            at += 2
        else:
            plain.append((data[at], False))
            at += 1
    at = 0
    while at < len(plain):
        if at + 2 < len(plain) and plain[at + 1] == (45, False):
            found += bytes(range(plain[at][0], plain[at + 2][0] + 1))
            at += 3
        else:
            found.append(plain[at][0])
            at += 1
    return bytes(found)


def _class(process: Process, name: str) -> str:
    if name not in _CLASSES:
        raise UnsupportedOption(f"{process.name} [:{name}:]")
    return re.sub(r"([\\-])", r"\\\1", _CLASSES[name])


def tr(process: Process) -> int:
    """Translate, delete (``-d``) or squeeze (``-s``) bytes; ``-c`` means all others."""
    options = read_options(process, "cCds", {"delete": "d", "squeeze-repeats": "s", "complement": "c"})
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
    options = read_options(process, "a", {"append": "a"})
    process.write(process.stdin)
    code = 0
    for name in options.operands:
        try:
            process.files.write(process.path(name), process.stdin, append="a" in options)
        except OSError as error:
            process.complain(f"{name}: {reason(error)}")
            code = 1
    return code


def tac(process: Process) -> int:
    """Write lines in reverse order."""
    options = read_options(process, "")
    failures: list[str] = []
    for one in inputs(process, options.operands, failures, complaint="failed to open '{name}' for reading: {reason}"):
        process.write(b"".join(reversed(lines_of(one.data))))
    return 1 if failures else 0


def rev(process: Process) -> int:
    """Write each line backwards."""
    options = read_options(process, "")
    failures: list[str] = []
    for one in inputs(process, options.operands, failures, complaint="cannot open {name}: {reason}"):
        for raw in lines_of(one.data):
            line = raw.removesuffix(b"\n")
            end = b"\n" if raw.endswith(b"\n") else b""
            process.write(line.decode(errors="surrogateescape")[::-1].encode(errors="surrogateescape") + end)
    return 1 if failures else 0


def nl(process: Process) -> int:
    """Number the lines that are not empty (``-b a``: all)."""
    options = read_options(process, "b:", {"body-numbering": "b:"})
    style = options.get("b", "t")
    if style not in {"a", "t"}:
        raise UnsupportedOption(f"nl -b {style}")
    failures: list[str] = []
    number = 0
    for one in inputs(process, options.operands, failures):
        for line in lines_of(one.data):
            if style == "a" or line != b"\n":
                number += 1
                process.write(f"{number:6d}\t".encode() + line)
            else:
                process.write(b"       " + line)
    return 1 if failures else 0


TEXTS = {
    "cat": cat,
    "cut": cut,
    "head": head,
    "nl": nl,
    "rev": rev,
    "sort": sort,
    "tac": tac,
    "tail": tail,
    "tee": tee,
    "tr": tr,
    "uniq": uniq,
    "wc": wc,
}
"""Name → program."""
