"""Commands that look for something: grep and find, and diff."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence

from pytest_hermes_env.sandbox.commands.options import Options, read_options
from pytest_hermes_env.sandbox.commands.patterns import compiled
from pytest_hermes_env.sandbox.commands.process import Process, Program, UnsupportedOption, lines_of

__all__ = ["SEARCH"]

_GREP_LONG = {
    "ignore-case": "i",
    "line-number": "n",
    "recursive": "r",
    "files-with-matches": "l",
    "files-without-match": "L",
    "count": "c",
    "quiet": "q",
    "silent": "q",
    "invert-match": "v",
    "extended-regexp": "E",
    "fixed-strings": "F",
    "word-regexp": "w",
    "line-regexp": "x",
    "only-matching": "o",
    "no-messages": "s",
    "no-filename": "h",
    "with-filename": "H",
    "after-context": "A:",
    "before-context": "B:",
    "context": "C:",
    "regexp": "e:",
    "max-count": "m:",
    "include": "include:",
    "exclude": "exclude:",
    "exclude-dir": "exclude-dir:",
    "text": "a",
}
_STDIN = "(standard input)"


def grep(process: Process) -> int:
    """Write the lines that match; recursive search goes through names in the order of their bytes."""
    words = [word for word in process.words if not word.startswith("--color")]
    options = read_options(words, "inrRlLcqvEFGwxoshHA:B:C:e:m:a", _GREP_LONG)
    patterns, operands = options.all("e"), options.operands
    if not patterns:
        if not operands:
            raise UnsupportedOption("grep without a pattern")
        patterns, operands = [operands[0]], operands[1:]
    matcher = _matcher(process.name, [one for pattern in patterns for one in pattern.split("\n")], options)
    is_recursive = "r" in options or "R" in options
    has_names = "H" in options or ((len(operands) > 1 or is_recursive) and "h" not in options)
    found = False
    for name, data in _grepped(process, operands or (("",) if is_recursive else ("-",)), options, is_recursive=is_recursive):
        found = _grep_one(process, options, matcher, name, data, has_name=has_names) or found
        if found and "q" in options:
            return 0
    return process.code or int(not found)


Matcher = Callable[[str], "list[tuple[int, int]]"]


def _matcher(name: str, patterns: list[str], options: Options) -> Matcher:
    is_extended, is_fixed = "E" in options or name == "egrep", "F" in options or name == "fgrep"
    ready = [compiled(one, extended=is_extended, ignore_case="i" in options, fixed=is_fixed) for one in patterns]

    def spans(line: str) -> list[tuple[int, int]]:
        found = []
        for pattern in ready:
            if "x" in options:
                whole = pattern.fullmatch(line)
                found += [whole.span()] if whole else []
                continue
            for match in pattern.finditer(line):
                if "w" in options and not _is_word(line, match):
                    continue
                found.append(match.span())
        return sorted(found)

    return spans


def _is_word(line: str, match: re.Match[str]) -> bool:
    before, after = line[: match.start()][-1:], line[match.end() :][:1]
    return not re.match(r"\w", before) and not re.match(r"\w", after)


def _grepped(process: Process, operands: Sequence[str], options: Options, *, is_recursive: bool) -> Iterator[tuple[str, bytes]]:
    """Yield each file's shown name and content; complain of what cannot be read."""
    for name in operands:
        path = process.path(name or ".")
        if name == "-":
            yield _STDIN, process.stdin
        elif is_recursive and process.files.is_dir(path):
            for below in process.files.walk(path):
                inner = posixpath.relpath(below, path)
                if _is_wanted(inner, options):
                    yield posixpath.join(name, inner), process.files.read(below)
        elif _is_wanted(posixpath.basename(name), options):
            try:
                data = process.files.read(path)
            except OSError as error:
                process.code = 2
                if "s" not in options:
                    process.complain(f"{name}: {os.strerror(error.errno or 0)}", code=2)
            else:
                yield name, data


def _is_wanted(inner: str, options: Options) -> bool:
    *directories, base = inner.split("/")
    if any(fnmatch.fnmatchcase(part, glob) for part in directories for glob in options.all("exclude-dir")):
        return False
    if any(fnmatch.fnmatchcase(base, glob) for glob in options.all("exclude")):
        return False
    included = options.all("include")
    return not included or any(fnmatch.fnmatchcase(base, glob) for glob in included)


def _grep_one(process: Process, options: Options, matcher: Matcher, name: str, data: bytes, *, has_name: bool) -> bool:
    lines = [line.removesuffix(b"\n").decode(errors="surrogateescape") for line in lines_of(data)]
    limit = int(options.get("m") or 10**9)
    hits: dict[int, list[tuple[int, int]]] = {}
    for number, line in enumerate(lines):
        if len(hits) >= limit:
            break
        spans = matcher(line)
        if bool(spans) != ("v" in options):
            hits[number] = spans
    prefix = f"{name}:" if has_name else ""
    if "q" in options:
        return bool(hits)
    if "l" in options or "L" in options:
        if bool(hits) == ("l" in options):
            process.write(f"{name}\n")
        return bool(hits) == ("l" in options)
    if "c" in options:
        process.write(f"{prefix}{len(hits)}\n")
        return bool(hits)
    if b"\0" in data and "a" not in options and hits:
        process.write(f"grep: {name}: binary file matches\n")
        return True
    if "o" in options:
        for number, spans in hits.items():
            position = f"{number + 1}:" if "n" in options else ""
            for start, end in spans:
                if end > start:
                    process.write(f"{prefix}{position}{lines[number][start:end]}\n")
        return bool(hits)
    _write_with_context(process, options, name if has_name else None, lines, hits)
    return bool(hits)


def _write_with_context(
    process: Process, options: Options, name: str | None, lines: list[str], hits: dict[int, list[tuple[int, int]]]
) -> None:
    around = options.get("C") or "0"
    before, after = int(options.get("B") or around), int(options.get("A") or around)
    shown = sorted({near for hit in hits for near in range(max(hit - before, 0), min(hit + after + 1, len(lines)))})
    last: int | None = None
    for number in shown:
        if last is not None and number > last + 1 and (before or after):
            process.write("--\n")
        mark = ":" if number in hits else "-"
        head = (f"{name}{mark}" if name is not None else "") + (f"{number + 1}{mark}" if "n" in options else "")
        process.write(f"{head}{lines[number]}\n")
        last = number


def find(process: Process) -> int:
    """Write the paths below directories that satisfy every test, in the order of their bytes."""
    words = list(process.arguments)
    starts: list[str] = []
    while words and not words[0].startswith(("-", "(", "!")):
        starts.append(words.pop(0))
    tests, actions, depths = _find_expression(words)
    for start in starts or ["."]:
        path = process.path(start)
        if not process.files.exists(path):
            process.complain(f"'{start}': No such file or directory")
            continue
        found = list(_all_below(process, start, path, 0, depths[1]))
        if "delete" in actions:
            found.reverse()
        for shown, place, depth in found:
            if depth < depths[0] or not all(test(process, shown, place) for test in tests):
                continue
            for action in actions or ["print"]:
                if action == "delete":
                    (process.files.remove_directory if process.files.is_dir(place) else process.files.remove)(place)
                else:
                    process.write(shown + ("\0" if action == "print0" else "\n"))
    return process.code


FindTest = Callable[[Process, str, str], bool]
"""Returns whether a path is wanted: its process, the path as it is shown, and absolute."""


def _is_empty(process: Process, _shown: str, path: str) -> bool:
    return not (process.files.list_directory(path) if process.files.is_dir(path) else process.files.read(path))


def _name(shown: str) -> str:
    return posixpath.basename(shown.rstrip("/"))


_FIND_TESTS: dict[str, Callable[[str], FindTest]] = {
    "-type": lambda kind: lambda process, _shown, path: process.files.is_dir(path) == (kind == "d"),
    "-path": lambda glob: lambda _process, shown, _path: fnmatch.fnmatchcase(shown, glob),
    "-name": lambda glob: lambda _process, shown, _path: fnmatch.fnmatchcase(_name(shown), glob),
    "-iname": lambda glob: lambda _process, shown, _path: fnmatch.fnmatchcase(_name(shown).lower(), glob.lower()),
}


def _find_expression(words: list[str]) -> tuple[list[FindTest], list[str], tuple[int, int]]:
    """Return the tests, the actions, and the least and the greatest depth."""
    tests: list[FindTest] = []
    actions: list[str] = []
    depths = {"-mindepth": 0, "-maxdepth": 10**9}
    is_negated = False
    while words:
        word = words.pop(0)
        if word in {"!", "-not"}:
            is_negated = not is_negated
            continue
        if word in {"-print", "-print0", "-delete"}:
            actions.append(word[1:])
        elif word in depths and words and words[0].isdigit():
            depths[word] = int(words.pop(0))
        elif word == "-empty" or (word in _FIND_TESTS and words and (word != "-type" or words[0] in {"f", "d"})):
            test = _is_empty if word == "-empty" else _FIND_TESTS[word](words.pop(0))
            tests.append(_not(test) if is_negated else test)
        elif word not in {"-a", "-and"}:
            raise UnsupportedOption(f"find {word}")
        is_negated = False
    return tests, actions, (depths["-mindepth"], depths["-maxdepth"])


def _not(test: FindTest) -> FindTest:
    return lambda process, shown, path: not test(process, shown, path)


def _all_below(process: Process, shown: str, path: str, depth: int, most: int) -> Iterator[tuple[str, str, int]]:
    yield shown, path, depth
    if depth < most and process.files.is_dir(path):
        for entry in process.files.list_directory(path):
            yield from _all_below(process, posixpath.join(shown, entry), posixpath.join(path, entry), depth + 1, most)


def diff(process: Process) -> int:
    """Compare two files: plainly, unified (``-u``), or only whether they differ (``-q``)."""
    options = read_options(process.words, "uq", {"unified": "u", "brief": "q"})
    if len(options.operands) != 2:  # noqa: PLR2004 - two files
        raise UnsupportedOption(f"diff {' '.join(process.arguments)}")
    inputs = process.inputs(options.operands, code=2)
    texts = [[line.decode(errors="surrogateescape") for line in lines_of(data)] for _, data in inputs]
    if process.code:
        return process.code
    if texts[0] == texts[1]:
        return 0
    if "q" in options:
        process.write(f"Files {options.operands[0]} and {options.operands[1]} differ\n")
    elif "u" in options:
        _unified(process, options.operands, texts)
    else:
        _plain(process, texts)
    return 1


def _marked(mark: str, line: str) -> str:
    return f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def _unified(process: Process, names: Sequence[str], texts: list[list[str]]) -> None:
    import difflib  # noqa: PLC0415

    stamp = "1970-01-01 00:00:00.000000000 +0000"
    lines = list(difflib.unified_diff(texts[0], texts[1], names[0], names[1], stamp, stamp))
    for line in lines:
        process.write(line if line.startswith(("---", "+++", "@@")) else _marked(line[0], line[1:]))


DIFF_LETTERS = {"replace": "c", "delete": "d", "insert": "a"}
"""difflib's word for a change → diff's letter."""


def _plain(process: Process, texts: list[list[str]]) -> None:
    import difflib  # noqa: PLC0415

    def span(first: int, last: int) -> str:
        return str(first + 1) if last - first == 1 else f"{first + 1},{last}" if last > first else str(first)

    for kind, a, b, c, d in difflib.SequenceMatcher(None, texts[0], texts[1], autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        process.write(f"{span(a, b)}{DIFF_LETTERS[kind]}{span(c, d)}\n")
        process.write("".join(_marked("< ", line) for line in texts[0][a:b]))
        process.write("---\n" if kind == "replace" else "")
        process.write("".join(_marked("> ", line) for line in texts[1][c:d]))


SEARCH: dict[str, Program] = {"grep": grep, "egrep": grep, "fgrep": grep, "find": find, "diff": diff}
"""Name → program."""
