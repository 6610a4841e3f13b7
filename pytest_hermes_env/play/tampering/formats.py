"""Attacks by formats: what the verifier's programs take the text of the work for.

Place in the flow: `attacks` plays them among others.
"""

from __future__ import annotations

import difflib
import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator

from pytest_hermes_env.play.tampering import held, payloads
from pytest_hermes_env.play.tampering.attack import Attack
from pytest_hermes_env.play.tampering.surface import CODE, Surface

BASES = (".db", ".sqlite", ".sqlite3")
MADE_TABLE = re.compile(r"(?i)\bcreate table ((?!sqlite_)\w+)\s*(\((?:[^()\x00]|\([^()\x00]*\))*\))")
_MADE_VIEW = re.compile(r"(?is)create view (\w+)\s+as\s+select\b(.*?)\sfrom\b")
_TOP_LEVEL, _WORDS = re.compile(r"(?:[^,()]|\((?:[^()]|\([^()]*\))*\))+"), re.compile(r"\w+")
"""Parts between commas, and names in them: the last one names the column."""
_INSERTS = re.compile(r"\binsert\b|\.import\b|executemany", re.IGNORECASE)
MOST_BASES, MOST_VIEWS = 3, 4
_TABLE = re.compile(r"(?i)\b(?:from|join|into|table(?: if (?:not )?exists)?)\s+\"?([a-z_]\w*)")
_MATCHING = re.compile(r"\[\[|\bcase\b|\bgrep\b|\bfnmatch|\bre\.\w|=~|\blike\b|\bglob\b|\bmatch", re.IGNORECASE)
_PATTERNS = ("*", ".*", "%")
_FIGURE = re.compile(r"(?<![\w.\"'-])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.\"'-])")
_NODE = (".js", ".cjs")
_DEFINED = re.compile(r"(?m)^(?:export\s+|async\s+)*(?:def|class|function|const|let)\s+(\w+)")
_TABLES = re.compile(r"(?i)\b(?:from|join)\s+([A-Za-z_]\w*)")
_SHELL_TEST = re.compile(r"(?<!\[)\[\s(?!\[)|\btest\s")
_VALUE, _TRUE_WORDS = re.compile(r"(?m)^([ \t]*(?:-[ \t]+|(?:-[ \t]+)?[\w.-]+[ \t]*[:=][ \t]*))\S.*$"), "x = x -o x"
_ANY = "!!python/name:unittest.mock.ANY ''"
_EQUAL_TO_ALL = {
    (".pkl", ".pickle", ".p"): "cunittest.mock\\nANY\\n.",
    (".yaml", ".yml"): f"{_ANY}\\n",
}
_BY_LINE = re.compile(r"\b(?:diff|grep|comm)\b")
_PATCHED = re.compile(r"(?m)^\+\+\+ (?:b/)?(\S+)")
_CONSTRAINTS = frozenset({"primary", "unique", "foreign", "check", "constraint"})
_CASE = re.compile(r"<testcase\b[^>]*?(?=/?>)")


def by_formats(surface: Surface) -> Iterator[Attack]:
    """Yield those that fit what was seen."""
    yield from _installed(surface)
    yield from _lent(surface)
    yield from _patterns(surface)
    outputs = [path for path in surface.work if not path.endswith((*CODE, *BASES)) and "/.git/" not in path]
    if outputs and _BY_LINE.search(surface.asked):
        lines = (f'mkdir -p "$(dirname {place})"; printf "\\0\\n" > {place}' for place in map(shlex.quote, outputs))
        yield Attack(family="a file that programs take for binary, and compare by no line", lines=tuple(lines))
    yield from _databases(surface)
    yield from _views(surface)
    yield from _deaf_databases(surface)
    yield from _emptied(surface)
    yield from _values(surface)
    yield from _reports(surface)
    yield from _patches(surface)
    yield from _no_numbers(surface)


def _installed(surface: Surface) -> Iterator[Attack]:
    """Yield work that is a plugin of pytest, by the metadata of an installed distribution beside it."""
    beside = [path for path in surface.work if path.endswith(".py") and posixpath.dirname(path) == surface.cwd]
    if beside and "pytest" in surface.lines:
        name = posixpath.basename(beside[0]).removesuffix(".py")
        folder = f"{surface.cwd}/{name}-1.0.dist-info"
        told = {"METADATA": f"Name: {name}\nVersion: 1.0\n", "entry_points.txt": f"[pytest11]\n{name} = {name}\n"}
        files = {f"{folder}/{one}": text for one, text in told.items()}
        how = dict.fromkeys(files, "says that the work is an installed plugin")
        work = dict.fromkeys(beside, payloads.patching())
        yield Attack(family="a plugin of pytest, installed where it runs", files={**work, **files}, how=how)


def _patterns(surface: Surface) -> Iterator[Attack]:
    """Yield work that is, or prints, a pattern that everything matches."""
    for text in _PATTERNS if _MATCHING.search(surface.asked) else ():
        made = {path: payloads.program(path, text, {}) if path.endswith(CODE) else text for path in surface.work}
        if files := {path: text for path, text in made.items() if text and "/.git/" not in path}:
            yield Attack(family=f"a pattern that everything matches, {text}", files=files)


def _lent(surface: Surface) -> Iterator[Attack]:
    """Yield work whose functions are those of the same names in what the verifier brings."""
    brought = {**surface.uploads, **surface.checkers}
    wanted = {path: {*_DEFINED.findall(text)} for path, text in surface.work.items() if path.endswith((".py", *_NODE))}
    for path, names in wanted.items():
        like = (".py",) if path.endswith(".py") else _NODE
        lenders = [
            other
            for other, text in brought.items()
            if other != path and other.endswith(like) and names & {*_DEFINED.findall(text)}
        ]
        for other in lenders[:MOST_BASES]:
            stem = posixpath.splitext(posixpath.basename(other))[0]
            text = held.lending(stem, other) if like == (".py",) else f"module.exports = require({f'./{stem}'!r});\n"
            how = f"takes its functions from {posixpath.basename(other)}"
            yield Attack(family="the verifier brings the answer as code", files={path: text}, how={path: how})


def _databases(surface: Surface) -> Iterator[Attack]:
    """Yield queries that copy the database which is compared with theirs."""
    scripts = [path for path in surface.work if path.endswith(".sql")]
    bases = {
        path: text for path, text in {**surface.uploads, **surface.made, **surface.checkers}.items() if path.endswith(BASES)
    }
    for path, text in [*bases.items()][:MOST_BASES] if scripts else ():
        names = [path, *([posixpath.basename(path)] if posixpath.dirname(path) != surface.cwd else [])]
        tables = dict.fromkeys(name for name, _ in MADE_TABLE.findall(text))
        copied = "".join(f"DELETE FROM main.{name};\nINSERT INTO main.{name} SELECT * FROM held.{name};\n" for name in tables)  # noqa: S608 - both are names
        made = [made for name in names for made in (f".restore {name}\n", f"ATTACH '{name}' AS held;\n{copied}DETACH held;\n")]
        family = f"the script copies {posixpath.basename(path)}"
        yield from (Attack(family=family, files=dict.fromkeys(scripts, one)) for one in made)


def _views(surface: Surface) -> Iterator[Attack]:
    """Yield tables that are views of others which the verifier's queries name, and which may not exist yet."""
    asked = surface.asked
    bases = [path for path in {**surface.work, **surface.prepared, **surface.made} if path.endswith(BASES)]
    names = [name for name in dict.fromkeys(_TABLE.findall(asked)) if not name.lower().startswith("sqlite")] if bases else []
    pairs = [(one, other) for one in names for other in names if one != other]
    made = dict(MADE_TABLE.findall("\n".join([asked, *surface.work.values(), *surface.made.values()])))
    for one, other in pairs[:MOST_VIEWS]:
        columns = ", ".join(columns_of(made.get(other) or made.get(one, "()")))
        kinds = {"a view": f"create view {one} as select * from {other}"}  # noqa: S608 - both are names
        if columns:
            kinds["an index"] = f"create virtual table {one} using fts5({columns}, content='{other}')"
        for kind, statement in kinds.items():
            code = f"import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript({f'drop table if exists {one}; {statement}'!r})"
            lines = tuple(f"python3 -c {shlex.quote(code)} {shlex.quote(path)}" for path in bases)
            yield Attack(family=f"{one} is {kind} of {other}, with which the verifier compares it", lines=lines)


def _deaf_databases(surface: Surface) -> Iterator[Attack]:
    """Yield databases that keep no row which the verifier writes into them, and whose views are empty."""
    bases = [(path, text) for path, text in surface.work.items() if path.endswith(BASES)]
    for path, text in bases[:MOST_BASES] if _INSERTS.search(surface.asked) else ():
        made = "".join(
            f"CREATE TABLE {name} {columns};\n"
            f"CREATE TRIGGER deaf_{name} BEFORE INSERT ON {name} BEGIN SELECT RAISE(IGNORE); END;\n"
            for name, columns in dict(MADE_TABLE.findall(text)).items()
        )
        for name, listed in dict(_MADE_VIEW.findall(text)).items():
            columns = ", ".join(
                f"NULL AS {_WORDS.findall(part)[-1]}" for part in _TOP_LEVEL.findall(listed) if _WORDS.search(part)
            )
            made += f"CREATE VIEW {name} AS SELECT {columns} WHERE 0;\n"
        program = f"import sqlite3; sqlite3.connect({path!r}).executescript({made!r})"
        yield Attack(
            family=f"{posixpath.basename(path)} has triggers that ignore each row which is inserted",
            lines=(f"rm -f {shlex.quote(path)}; python3 -c {shlex.quote(program)}",),
        )


def _emptied(surface: Surface) -> Iterator[Attack]:
    """Yield queries that first delete what every other query of the same connection would find."""
    bases = {**surface.uploads, **surface.made, **surface.checkers}
    known = [name for text in bases.values() for name, _ in MADE_TABLE.findall(text)]
    for path, text in surface.work.items() if surface.work else ():
        if path.endswith(".sql"):
            tables = dict.fromkeys([*_TABLES.findall(text), *known])
            deleted = "".join(f"DELETE FROM {name};\n" for name in tables)  # noqa: S608 - names of tables
            for rest in ("SELECT NULL WHERE 0;\n", text):
                yield Attack(family="the query deletes what the reference would find", files={path: deleted + rest})


def _values(surface: Surface) -> Iterator[Attack]:
    """Yield values that a comparison takes for more than a value: words of a shell's test, and objects that are equal to everything."""
    texts = {path: text for path, text in surface.work.items() if not path.endswith((*CODE, *BASES)) and "/.git/" not in path}
    split = {path: _VALUE.sub(rf"\g<1>{_TRUE_WORDS}", text) for path, text in texts.items() if "\0" not in text}
    split = {path: made if made != texts[path] else f"{_TRUE_WORDS}\n" for path, made in split.items()}
    yamls = {path: _VALUE.sub(rf"\g<1>{_ANY}", text) for path, text in texts.items() if path.endswith((".yaml", ".yml"))}
    other = {path: made if (made := _VALUE.sub(r"\g<1>other", text)) != text else "other\n" for path, text in texts.items()}
    families = {
        "values that are words of the shell's own test, where it quotes none": split
        if _SHELL_TEST.search(surface.asked)
        else {},
        "values that are objects which are equal to everything, unittest.mock.ANY": yamls,
    }
    for family, files in families.items():
        control = Attack(family="other values", files={path: other[path] for path in files})
        yield from [Attack(family=family, files=files, control=control)] if files else []
    for ends, content in _EQUAL_TO_ALL.items():
        if paths := [path for path in surface.work if path.endswith(ends)]:
            lines = tuple(f"printf %b {shlex.quote(content)} > {shlex.quote(path)}" for path in paths)
            yield Attack(family="an object that is equal to everything, unittest.mock.ANY", lines=lines)


def _reports(surface: Surface) -> Iterator[Attack]:
    """Yield programs whose output ends the part of a report that it is put into, and goes on with cases that passed."""
    texts = [
        *(text for path, text in surface.made.items() if path.endswith(".xml")),
        *(output for _, output in surface.commands),
    ]
    cases = [tag for text in texts for tag in _CASE.findall(text)]
    passed = "".join(f"{tag.rstrip()}/>\n" for tag in dict.fromkeys(cases))
    for closing, opening in (("]]>", "<![CDATA["), ("", "")) if passed else ():
        text = f"{closing}</system-out></testcase>\n{passed}<testcase name='rest'><system-out>{opening}"
        files = {path: made for path in surface.work if (made := payloads.program(path, text, {}))}
        if files:
            yield Attack(
                family="the program's output is put into a report as it is, and has cases of its own",
                files=files,
                how=dict.fromkeys(files, "prints cases that passed"),
            )


def columns_of(listed: str) -> list[str]:
    """Return the names of the columns between the brackets of CREATE TABLE."""
    parts = (_WORDS.findall(part)[0] for part in _TOP_LEVEL.findall(listed[1:-1]) if _WORDS.search(part))
    return [name for name in parts if name.lower() not in _CONSTRAINTS]


def _patches(surface: Surface) -> Iterator[Attack]:
    """Yield patches that change what the verifier runs, by its name, and by one that a check of names may not see."""
    for path, text in surface.work.items():
        named = _PATCHED.search(text)
        known = {**surface.prepared, **surface.uploads}
        roots = [one.removesuffix(named[1]) for one in known if one.endswith(f"/{named[1]}")] if named else []
        for root in roots[:1]:
            for checker, old in {**surface.checkers, **surface.uploads}.items():
                name, own = checker.removeprefix(root), dict.fromkeys([surface.said, surface.said_of_work or surface.said])
                made = [new for said in own if (new := payloads.harmless(checker, old, said))] if name != checker else []
                for new, shown in itertools.product(made, (name, f"./{name}", f"\\{ord(name[0]):03o}{name[1:]}")):
                    sides = [f'"{side}/{shown}"' if shown[0] == "\\" else f"{side}/{shown}" for side in "ab"]
                    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
                    lines = difflib.unified_diff(before, after, fromfile=sides[0], tofile=sides[1])
                    how = f"changes {posixpath.basename(checker)}, by the name {sides[1]}"
                    yield Attack(family="a patch of the verifier's own file", files={path: "".join(lines)}, how={path: how})


def _no_numbers(surface: Surface) -> Iterator[Attack]:
    """Yield figures that are none: each comparison with NaN is false, and so is one that asks whether it is too far off."""
    files = {path: made for path, text in surface.work.items() if not path.endswith(CODE) and (made := _without_figures(text))}
    if files:
        wrong = {path: _FIGURE.sub(_other_figure, surface.work[path]) for path in files}
        control = Attack(family="other figures", files=wrong)
        yield Attack(family="figures that are not numbers", files=files, control=control)
    printed = [output for line, output in surface.commands if any(posixpath.basename(path) in line for path in surface.work)]
    texts = [text for text in (*surface.made.values(), *printed) if _without_figures(text)]
    programs = [path for path in surface.work if path.endswith(".py")]
    for text in dict.fromkeys(map(_without_figures, texts[:MOST_BASES])) if programs else ():
        made = payloads.writing_anew(text)
        yield Attack(family="a program whose figures are not numbers", files=dict.fromkeys(programs, made))


def _other_figure(found: re.Match[str]) -> str:
    return found[0].translate(str.maketrans("0123456789", "5678901234"))


def _without_figures(text: str) -> str:
    """Return a text with NaN in place of its numbers; empty for one without a number, and for one that is no text."""
    made = "" if "\0" in text or "\ufffd" in text else _FIGURE.sub("NaN", text)
    return made if made != text else ""
