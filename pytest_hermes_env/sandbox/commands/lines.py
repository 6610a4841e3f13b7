"""Commands that read text and write text: cat, head, tail, wc, sort, uniq, cut, tr, tee, diff.

Source: GNU coreutils 9.1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from pytest_hermes_env.sandbox.commands.patterns import CLASSES
from pytest_hermes_env.sandbox.commands.process import Process, Program, lines_of, quoted, shown
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["LINES"]

DIGITS_OF_A_PIPE = 7
"""The least width of wc's columns if one input is no regular file."""


def cat(process: Process) -> int:
    """Write files one after the other; ``-n`` numbers the lines."""
    options = process.options("n", {"number": "n"})
    number = 0
    for _, data in process.inputs(options.operands):
        if "n" not in options:
            process.write(data)
            continue
        if len(options.operands) > 1 and not data.endswith(b"\n"):
            raise NotExact("cat -n of a file without a line break at its end")
        for line in lines_of(data):
            number += 1
            process.write(f"{number:6d}\t".encode() + line)
    return process.code


def head_or_tail(process: Process) -> int:
    """Write the first or last lines (``-n``) or bytes (``-c``): all but the last N (``head -N``), or from one on (``tail +N``)."""
    is_head = process.name.endswith("head")
    if process.arguments and (old := re.fullmatch(r"-(\d+)", process.arguments[0])):
        process.arguments = ["-n", old[1], *process.arguments[1:]]
    options = process.options("n:c:qv", {"lines": "n:", "bytes": "c:", "quiet": "q"})
    found = re.fullmatch(r"([+-]?)(\d{1,9})", options.get("c") or options.get("n", "10"))
    if not found or ("c" in options and "n" in options) or any(name.startswith("+") for name in options.operands):
        raise NotExact(f"this {process.name}")
    count = int(found[2])
    if not count and not is_head and not found[1]:
        raise NotExact("tail of nothing")
    if is_head:
        part = slice(-count if count else None) if found[1] == "-" else slice(count)
    else:
        part = slice(max(count - 1, 0), None) if found[1] == "+" else slice(-count if count else sys.maxsize, None)
    has_headers = ("v" in options or len(options.operands) > 1) and "q" not in options
    separator = ""
    for name in options.operands or ("-",):
        if name == "-":
            data = process.streams.source.take(leaves_rest=is_head)
        else:
            inputs = list(process.inputs((name,), complaint=_cannot_open))
            if not inputs:
                continue
            data = inputs[0][1]
        if has_headers:
            process.write(f"{separator}==> {'standard input' if name == '-' else name} <==\n")
            separator = "\n"
        process.write(data[part] if "c" in options else b"".join(lines_of(data)[part]))
    return process.code


def _cannot_open(name: str) -> str:
    return f"cannot open {quoted(name)} for reading"


def wc(process: Process) -> int:
    """Count lines, words, characters and bytes."""
    options = process.options("lwc", {"lines": "l", "words": "w", "bytes": "c"})
    chosen = [letter for letter in "lwc" if letter in options] or list("lwc")
    is_file, names = process.streams.source.is_file, options.operands
    rows: list[tuple[list[int], str]] = []
    sizes: list[int] = []
    for name, data in process.inputs(names):
        rows.append(([_count(letter, data) for letter in chosen], name))
        sizes.append(len(data))
    if process.code and rows:
        raise NotExact("wc of files of which some do not exist")
    if len(names) > 1:
        rows.append(
            ([sum(column) for column in zip(*(counts for counts, _ in rows), strict=True)] or [0] * len(chosen), "total")
        )
    width = len(str(sum(sizes)))
    if len(chosen) == 1 and len(names) <= 1:
        width = 1
    elif (not names or "-" in names) and not is_file:
        width = max(width, DIGITS_OF_A_PIPE)
    for counts, name in rows:
        text = " ".join(str(count).rjust(width) for count in counts)
        process.write(f"{text}{f' {name}' if names else ''}\n")
    return process.code


def _count(letter: str, data: bytes) -> int:
    if letter == "w":
        if re.search(rb"[^\t-\r -~]", data):
            raise NotExact("wc -w of what is not plain text")
        return len(data.split())
    return data.count(b"\n") if letter == "l" else len(data)


def sort(process: Process) -> int:
    """Sort lines; by whole numbers (``-n``), backwards (``-r``), each once (``-u``)."""
    options = process.options("nru", {"numeric-sort": "n", "reverse": "r", "unique": "u"})
    lines = []
    for name in options.operands or ("-",):
        lines += [
            line.removesuffix(b"\n")
            for line in lines_of(process.content((name,), complaint=lambda name: f"cannot read: {shown(name)}", code=2))
        ]
        if process.code:
            return process.code
    lines = list(dict.fromkeys(lines)) if "u" in options else lines
    lines.sort(reverse="r" in options)
    if "n" in options:
        numbers = {line: _number(line) for line in lines}
        if "u" in options and len(set(numbers.values())) < len(numbers):
            raise NotExact("sort -nu of equal numbers")
        lines.sort(key=numbers.__getitem__, reverse="r" in options)
    process.write(b"".join([line + b"\n" for line in lines]))
    return 0


def _number(line: bytes) -> int:
    found = re.match(rb"[ \t]*(-?\d{1,15})?(?![-.\d])", line)
    if found is None:
        raise NotExact("sort -n of these numbers")
    return int(found[1] or 0)


def uniq(process: Process) -> int:
    """Write each run of equal lines once; ``-c`` counts, ``-d`` only repeated, ``-u`` only single."""
    options = process.options("cdu", {"count": "c", "repeated": "d", "unique": "u"})
    if len(options.operands) > 1 or ("d" in options and "u" in options):
        raise NotExact("this uniq")
    runs: list[tuple[bytes, int]] = []
    for raw in lines_of(process.content(options.operands)):
        line = raw.removesuffix(b"\n")
        if runs and runs[-1][0] == line:
            runs[-1] = (line, runs[-1][1] + 1)
        else:
            runs.append((line, 1))
    for line, count in runs:
        if not (("d" in options and count == 1) or ("u" in options and count > 1)):
            process.write((f"{count:7d} ".encode() if "c" in options else b"") + line + b"\n")
    return process.code


def cut(process: Process) -> int:
    """Write parts of lines: fields (``-f``, ``-d``), characters (``-c``) or bytes (``-b``), which are the same."""
    long = {"delimiter": "d:", "fields": "f:", "characters": "c:", "bytes": "b:", "only-delimited": "s"}
    options = process.options("d:f:c:b:s", long)
    chosen = [letter for letter in "fcb" if letter in options]
    delimiter = options.get("d", "\t").encode()
    if len(chosen) != 1 or len(delimiter) != 1 or (chosen != ["f"] and ("d" in options or "s" in options)):
        raise NotExact("this cut")
    ranges = _ranges(options.get(chosen[0]))
    for _, data in process.inputs(options.operands):
        for raw in lines_of(data):
            line = raw.removesuffix(b"\n")
            if chosen != ["f"]:
                kept = bytes([byte for number, byte in enumerate(line, 1) if _is_within(number, ranges)])
            elif delimiter in line:
                fields = enumerate(line.split(delimiter), 1)
                kept = delimiter.join([field for number, field in fields if _is_within(number, ranges)])
            elif "s" in options:
                continue
            else:
                kept = line
            process.write(kept + b"\n")
    return process.code


def _ranges(text: str) -> list[tuple[int, int]]:
    parts = [re.fullmatch(r"([1-9]\d{0,5})?(-?)([1-9]\d{0,5})?", part) for part in text.split(",")]
    ranges = [(int(part[1] or 1), int(part[3] or sys.maxsize) if part[2] else int(part[1] or 0)) for part in parts if part]
    if not all(part and (part[1] or part[3]) for part in parts) or any(first > last for first, last in ranges):
        raise NotExact("this list of cut")
    return ranges


def _is_within(number: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= number <= last for first, last in ranges)


def tr(process: Process) -> int:
    """Translate, delete (``-d``) or squeeze (``-s``) bytes; ``-c`` means all others."""
    options = process.options("cCds", {"delete": "d", "squeeze-repeats": "s", "complement": "c"}, runs_command=True)
    texts = options.operands
    if len(texts) != (1 if "d" in options or ("s" in options and len(texts) == 1) else 2) or (
        "d" in options and "s" in options
    ):
        raise NotExact("this tr")
    if len(texts) > 1 and "[:" in texts[1] and (texts[0], texts[1]) not in CASES:
        raise NotExact("this tr")
    sets = [_set(text) for text in texts]
    first = bytes(byte for byte in range(256) if byte not in sets[0]) if "c" in options or "C" in options else sets[0]
    data = process.streams.source.take()
    if "d" in options:
        data = data.translate(None, first)
    elif len(sets) > 1:
        second = sets[1][: len(first)].ljust(len(first), sets[1][-1:])
        table = bytearray(range(256))
        for old, new in zip(first, second, strict=True):
            table[old] = new
        data = data.translate(bytes(table))
    if "s" in options:
        squeezed = sets[-1] if len(sets) > 1 else first
        data = bytes(byte for at, byte in enumerate(data) if not at or byte != data[at - 1] or byte not in squeezed)
    process.write(data)
    return 0


CASES = {("[:upper:]", "[:lower:]"), ("[:lower:]", "[:upper:]")}
ESCAPES = {b"\\n": 10, b"\\t": 9, b"\\r": 13, b"\\\\": 92}


def _set(text: str) -> bytes:
    """Return the bytes of a set: ranges, escapes and classes stand for theirs."""
    if (
        not text
        or not text.isascii()
        or set(re.findall(r"\[:(\w*):?\]?", text)) - CLASSES.keys()
        or re.search(r"\[=|\[.\*", text)
    ):
        raise NotExact("this set of tr")
    found = bytearray()
    for part in re.finditer(rb"\[:(\w+):\]|(\\?.)(?:-(\\?.))?", text.encode(), re.DOTALL):
        if part[1]:
            found += b"".join(re.findall(f"[{CLASSES[part[1].decode()]}]".encode(), bytes(range(128))))
            continue
        first, last = _byte(part[2]), _byte(part[3] or part[2])
        if first > last:
            raise NotExact("this set of tr")
        found += bytes(range(first, last + 1))
    return bytes(found)


def _byte(text: bytes) -> int:
    if len(text) == 1 and text != b"\\":
        return text[0]
    if text not in ESCAPES:
        raise NotExact("this set of tr")
    return ESCAPES[text]


def tee(process: Process) -> int:
    """Write standard input to files, and on."""
    options = process.options("a", {"append": "a"})
    data = process.streams.source.take()
    process.write(data)
    for name in options.operands:
        with process.complaining(shown(name)):
            process.disk.write(name, data, append="a" in options)
    return process.code


def diff(process: Process) -> int:
    """Compare two files: whether they differ (``-q``, or with an output that nobody reads); how they differ is not known."""
    options = process.options("uq", {"brief": "q", "unified": "u"})
    if len(options.operands) != 2 or not all(process.disk.is_file(name) for name in options.operands):  # noqa: PLR2004 - two
        raise NotExact("this diff")
    one, other = options.operands
    if process.disk.read(one) == process.disk.read(other):
        return 0
    if "q" in options:
        process.write(f"Files {shown(one)} and {shown(other)} differ\n")
    elif process.streams.out.path != "/dev/null":
        raise NotExact("how two files differ")
    return 1


LINES: dict[str, Program] = {
    "cat": cat,
    "cut": cut,
    "diff": diff,
    "head": head_or_tail,
    "sort": sort,
    "tail": head_or_tail,
    "tee": tee,
    "tr": tr,
    "uniq": uniq,
    "wc": wc,
}
"""Name → program."""
