"""Commands that look for something: grep and find, and diff."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterator

from pytest_hermes_env.sandbox.commands.inputs import lines_of, reason
from pytest_hermes_env.sandbox.commands.options import Options, read_options
from pytest_hermes_env.sandbox.commands.patterns import BadPattern, compiled
from pytest_hermes_env.sandbox.commands.process import Process, UnsupportedOption

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
    "color": "color:",
    "text": "a",
}


def grep(process: Process) -> int:
    """Write the lines that match; recursive search goes through names in the order of their bytes."""
    words = [word for word in process.words if not word.startswith("--color")]
    process.words = tuple(words)
    options = read_options(process, "inrRlLcqvEFGPwxoshHA:B:C:e:m:a", _GREP_LONG)
    if "P" in options:
        raise UnsupportedOption("grep -P")
    operands = list(options.operands)
    patterns = options.all("e")
    if not patterns:
        if not operands:
            process.err += b"Usage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.\n"
            return 2
        patterns = [operands.pop(0)]
    try:
        matcher = _matcher(process.name, [one for pattern in patterns for one in pattern.split("\n")], options)
    except BadPattern as bad:
        process.err += f"grep: {bad}\n".encode()
        return 2
    is_recursive = "r" in options or "R" in options
    has_names = "H" in options or ((len(operands) > 1 or is_recursive) and "h" not in options)
    found, failed = False, False
    if not operands and not is_recursive:
        found = _grep_one(process, options, matcher, "(standard input)", process.stdin, has_name="H" in options)
        return 0 if found else 1
    for name, data in _grepped(process, operands or ["."], options, is_recursive=is_recursive, shows_dot=bool(operands)):
        if isinstance(data, str):
            failed = True
            if "s" not in options:
                process.complain(f"{name}: {data}")
            continue
        found = _grep_one(process, options, matcher, name, data, has_name=has_names) or found
        if found and "q" in options:
            return 0
    return 2 if failed else 0 if found else 1


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


def _grepped(
    process: Process, operands: list[str], options: Options, *, is_recursive: bool, shows_dot: bool
) -> Iterator[tuple[str, bytes | str]]:
    """Give each file's shown name and content, or why it cannot be read."""
    for name in operands:
        if name == "-":
            yield "(standard input)", process.stdin
            continue
        path = process.path(name)
        if process.files.is_dir(path):
            if not is_recursive:
                yield name, "Is a directory"
                continue
            for below in process.files.walk(path):
                inner = posixpath.relpath(below, path)
                if _is_wanted(inner, options):
                    shown = posixpath.join(name, inner) if shows_dot else inner
                    yield shown, process.files.read(below)
            continue
        try:
            data = process.files.read(path)
        except OSError as error:
            yield name, reason(error)
        else:
            if _is_wanted(posixpath.basename(name), options):
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
        process.write(
            f"grep: {name}: binary file matches\n"
            if name != "(standard input)"
            else "grep: (standard input): binary file matches\n"
        )
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
    code = 0
    for start in starts or ["."]:
        path = process.path(start)
        if not process.files.exists(path):
            process.err += f"find: '{start}': No such file or directory\n".encode(errors="surrogateescape")
            code = 1
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
    return code


FindTest = Callable[[Process, str, str], bool]


def _find_expression(words: list[str]) -> tuple[list[FindTest], list[str], tuple[int, int]]:
    tests: list[FindTest] = []
    actions: list[str] = []
    least, most = 0, 10**9
    is_negated = False

    def add(test: FindTest) -> None:
        nonlocal is_negated
        tests.append((lambda process, shown, path: not test(process, shown, path)) if is_negated else test)
        is_negated = False

    while words:
        word = words.pop(0)
        if word in {"!", "-not"}:
            is_negated = not is_negated
        elif word in {"-a", "-and"}:
            continue
        elif word in {"-print", "-print0", "-delete"}:
            actions.append(word[1:])
        elif word == "-empty":
            add(
                lambda process, _shown, path: (
                    not (process.files.list_directory(path) if process.files.is_dir(path) else process.files.read(path))
                )
            )
        elif word in {"-name", "-iname", "-path", "-type", "-maxdepth", "-mindepth"} and words:
            value = words.pop(0)
            if word == "-maxdepth":
                most = int(value)
            elif word == "-mindepth":
                least = int(value)
            elif word == "-type":
                if value not in {"f", "d"}:
                    raise UnsupportedOption(f"find -type {value}")
                add(_is_of_type(is_dir=value == "d"))
            elif word == "-path":
                add(_path_fits(value))
            else:
                add(_name_fits(value, ignores_case=word == "-iname"))
        else:
            raise UnsupportedOption(f"find {word}")
    return tests, actions, (least, most)


def _is_of_type(*, is_dir: bool) -> FindTest:
    return lambda process, _shown, path: process.files.is_dir(path) == is_dir


def _path_fits(glob: str) -> FindTest:
    return lambda _process, shown, _path: fnmatch.fnmatchcase(shown, glob)


def _name_fits(glob: str, *, ignores_case: bool) -> FindTest:
    def fits(process: Process, shown: str, path: str) -> bool:
        del process, path
        name = posixpath.basename(shown.rstrip("/"))
        return fnmatch.fnmatchcase(name.lower(), glob.lower()) if ignores_case else fnmatch.fnmatchcase(name, glob)

    return fits


def _all_below(process: Process, shown: str, path: str, depth: int, most: int) -> Iterator[tuple[str, str, int]]:
    yield shown, path, depth
    if depth < most and process.files.is_dir(path):
        for entry in process.files.list_directory(path):
            yield from _all_below(process, posixpath.join(shown, entry), posixpath.join(path, entry), depth + 1, most)


def diff(process: Process) -> int:
    """Compare two files: plainly, unified (``-u``), or only whether they differ (``-q``)."""
    options = read_options(process, "uqs", {"unified": "u", "brief": "q"})
    if len(options.operands) != 2:  # noqa: PLR2004 - two files
        raise UnsupportedOption(f"diff {' '.join(process.arguments)}")
    texts = []
    for name in options.operands:
        try:
            data = process.stdin if name == "-" else process.files.read(process.path(name))
        except OSError as error:
            process.complain(f"{name}: {reason(error)}")
            return 2
        texts.append([line.decode(errors="surrogateescape") for line in lines_of(data)])
    if texts[0] == texts[1]:
        if "s" in options:
            process.write(f"Files {options.operands[0]} and {options.operands[1]} are identical\n")
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


def _unified(process: Process, names: list[str], texts: list[list[str]]) -> None:
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


SEARCH = {"grep": grep, "egrep": grep, "fgrep": grep, "find": find, "diff": diff}
"""Name → program."""
