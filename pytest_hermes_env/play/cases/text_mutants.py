"""SQL, shell scripts, patterns, and programs in languages like C, as somebody who is wrong in one place would write them.

Place in the flow: `wrong_programs` asks a verifier about them where gold writes no Python.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from pytest_hermes_env.play.cases.mutants import Mutant
from pytest_hermes_env.play.cases.one_value import spread

MOST_OF_A_WAY = 3
_OF_PATTERNS = re.compile(r"\.(?:re|rx|regexp?|pattern)$|pattern|regex", re.IGNORECASE)
_HIGHER = ("a number one higher", r"(?<![\w.$#{-])\d{1,9}(?![\w.\])}-])", lambda found: str(int(found[0]) + 1))
_SQL = (
    ("an outer join made an inner one", r"(?i)\b(?:LEFT|RIGHT|FULL)\s+(?:OUTER\s+)?JOIN\b", "JOIN"),
    ("DISTINCT dropped", r"(?i)\bDISTINCT\s+", ""),
    ("a boundary moved", r"<=", "<"),
    ("a boundary moved", r">=", ">"),
    ("a boundary moved", r"<(?![=>])", "<="),
    ("a boundary moved", r"(?<![<>])>(?!=)", ">="),
    ("duplicates dropped", r"(?i)\bUNION\s+ALL\b", "UNION"),
    ("the order turned", r"(?i)\s+DESC\b", " ASC"),
    ("rows counted in place of values", r"(?i)\bCOUNT\(\s*(?!\*|DISTINCT)[^()]*\)", "COUNT(*)"),
    ("another operator", r"(?i)\bAND\b(?![^()]*\bBETWEEN\b)", "OR"),
    ("another function", r"(?i)\bSUM\(", "MAX("),
    ("the order dropped", r"(?i)\s+ORDER\s+BY\s+[^();]*?(?=\s+LIMIT\b|;|\s*\Z)", ""),
    ("a later key of the order dropped", r"(?i)(?<=\bORDER BY )([^,();]+),[^();]*?(?=\s+LIMIT\b|;|\s*\Z)", r"\1"),
    ("a default dropped", r"(?i)\b(?:COALESCE|IFNULL)\(((?:[^(),]|\([^()]*\))+),[^()]*\)", r"\1"),
    ("a filter of groups dropped", r"(?i)\s+HAVING\s+[^();]*?(?=\s+ORDER\b|;|\s*\Z)", ""),
    ("a condition dropped", r"(?i)\s+AND\s+[^();]*?(?=\s+(?:AND|OR|GROUP|ORDER|LIMIT|LEFT|JOIN|WHERE)\b|[;)]|\s*\Z)", ""),
    ("groups put together", r"(?i)\bPARTITION\s+BY\s+[\w., ]+?(?=\s+ORDER\b|\))", ""),
    ("another function", r"(?i)\b(?:DENSE_)?RANK\(", "ROW_NUMBER("),
    ("another function", r"(?i)\bROW_NUMBER\(", "RANK("),
    ("the least for the most", r"(?i)\bMAX\(", "MIN("),
    ("the most for the least", r"(?i)\bMIN\(", "MAX("),
    _HIGHER,
)
_SHELL = (
    ("quotes dropped", r'"(\$\{?\w+\}?(?:/\$\{?\w+\}?)*)"', r"\1"),
    ("quotes dropped", r'"(\$\w+)"(?=[/*])', r"\1"),
    ("a test turned", r"-(?:eq)\b", "-ne"),
    ("a boundary moved", r"-ge\b", "-gt"),
    ("a boundary moved", r"-le\b", "-lt"),
    ("a boundary moved", r"-gt\b", "-ge"),
    ("a boundary moved", r"-lt\b", "-le"),
    ("numbers in the order of texts", r"\bsort -n", "sort -"),
    ("duplicates kept", r"\bsort -u\b|\|\s*uniq\b", lambda found: "sort" if found[0].startswith("sort") else ""),
    ("a whole line no longer asked for", r"\bgrep -(\w*)x", r"grep -\1i"),
    ("capital letters told apart", r"\bgrep -(\w*)i", r"grep -\1e"),
    ("a branch never taken", r"\bif \[[^\n]*?\]+; then", "if false; then"),
    ("the order of another language", r"\bLC_ALL=C +", ""),
    ("below, too", r" -maxdepth 1\b", ""),
    ("of any type", r" -type [fd]\b", ""),
    ("the shortest for the longest", r"(?<=\w)(%%|##)(?=[^}\n]+\})", lambda found: found[0][0]),
    ("the longest for the shortest", r"(?<=\w)(?<!%)(?<!#)(%|#)(?![%#])(?=[^}\n]+\})", lambda found: 2 * found[0]),
    ("backslashes read as signs", r"\bread -r\b", "read"),
    ("a part of a pipe dropped", r"\|\s*(?:LC_ALL=C )?[a-z][^|\n]*(?=\|)", ""),
    ("an option dropped", r"(?<=[a-z]) -[a-zA-Z](?= [^-\[\]])", ""),
    ("an order dropped", r"(?<=\w) -k\d[\d,.]*[nr]*(?= -k|\s)", ""),
    ("another exit code", r"\bexit [1-9]\b", "exit 0"),
    ("an option dropped", r"(?m)^shopt [^\n]*\n|^set -[^\n]*\n", ""),
    _HIGHER,
    ("a check dropped", r"(?m)^([ \t]*)\[[^\n]*\] *(?:\|\||&&) *(?:continue|exit[ \d]*|return[ \d]*)$", r"\1:"),
)
_PATTERN = (
    ("the beginning may stand anywhere", r"\A\^|\A\\A", ""),
    ("the end may stand anywhere", r"\$\s*\Z|\\Z\s*\Z", ""),
    ("the end of a word may stand anywhere", r"\\b", ""),
    ("any character for one", r"\\\.", "."),
    ("none is enough", r"(?<=[\])\w])\+", "*"),
    ("any number of them", r"\{\d+(?:,\d*)?\}", "+"),
    ("what may be missing must be there", r"(?<=[\])\w])\?", ""),
    ("more digits", r"\[(\d)-[0-8]\]", r"[\1-9]"),
    ("an alternative dropped", r"\|[^|()\[\]]+(?=[|)])|(?<=\()[^|()\[\]]+\|", ""),
)
_LIKE_C = (
    ("a comparison turned", r"(?<![=!<>])==", "!="),
    ("a comparison turned", r"!=", "=="),
    ("a boundary moved", r"<=(?!>)", "<"),
    ("a boundary moved", r">=", ">"),
    ("a boundary moved", r"(?<= )<(?= )", "<="),
    ("a boundary moved", r"(?<= )>(?= )", ">="),
    ("another operator", r"&&", "||"),
    ("another operator", r"\|\|", "&&"),
    ("another operator", r"(?<=[\w)\]] )\+(?= [\w(])(?! 0\b)", "-"),
    ("another operator", r"(?<=[\w)\]] )-(?= [\w(])(?! 0\b)", "+"),
    ("a sign dropped", r"(?<![=!<>\w])!(?=[\w(])", ""),
    ("a call dropped", r"\.(?:trim|toLowerCase|toUpperCase|sort|reverse)\(\)", ""),
    ("a call dropped", r"\b(?:tolower|toupper|int)(?=\()", ""),
    ("the least for the most", r"\bMath\.max\b", "Math.min"),
    ("the most for the least", r"\bMath\.min\b", "Math.max"),
    ("the first only", r"(?<=[^/\s*]/)g(?=[,)i])", ""),
    ("a statement dropped", r"(?m)^([ \t]*)(?:continue|break|next|last|return|throw\b[^\n;]*);$", r"\1;"),
    _HIGHER,
)
_LANGUAGES = {".sql": _SQL, ".sh": _SHELL, ".bash": _SHELL} | dict.fromkeys(
    (".js", ".cjs", ".mjs", ".ts", ".awk", ".pl", ".php", ".go", ".c", ".rs", ".java", ".lua"), _LIKE_C
)


def is_of_a_language(path: str, text: str) -> bool:
    """Tell whether a text is a program, or a pattern, whose mutants `text_mutants` makes: read as fields and values, it would be misread."""
    return path.endswith((".sed", ".rb", ".cpp", ".h", ".cs", ".kt")) or bool(_ways_of(path, text))


def text_mutants(path: str, text: str, most: int) -> list[Mutant]:
    """Return the mutants of a text, at most so many; none of one that is neither SQL, nor a shell script, nor a pattern of one line."""
    found = {new.text: new for way in _ways_of(path, text) for new in _of_way(text, *way)}
    return spread([one for one in found.values() if one.text != text], most)


def of_patterns_in(code: str) -> Iterator[Mutant]:
    """Yield Python code of which a pattern that it gives to `re` is changed."""
    for found in re.finditer(r"\bre\.\w+\(\s*r(?P<quote>['\"])(?P<pattern>.+?)(?P=quote)(?=\s*[,)])", code):
        for way in _PATTERN:
            for made in _of_way(found["pattern"], *way):
                text = f"{code[: found.start('pattern')]}{made.text}{code[found.end('pattern') :]}"
                line = code.count("\n", 0, found.start())
                yield Mutant(name=made.name, line=line + 1, text=text, before=found["pattern"], after=made.text)


def _ways_of(path: str, text: str) -> tuple[tuple[str, str, object], ...]:
    if (ways := _LANGUAGES.get(posixpath.splitext(path)[1])) is not None:
        return ways
    if text.startswith(("#!/bin/sh", "#!/bin/bash", "#!/usr/bin/env bash")):
        return _SHELL
    if re.match(r"(?i)\s*(?:SELECT|WITH)\b", text):
        return _SQL
    return _PATTERN if is_pattern(path, text.strip()) else ()


def is_pattern(path: str, text: str) -> bool:
    """Tell whether a text is a regular expression, by its name, or as one line with classes or groups that begins or ends at a border."""
    try:
        re.compile(text)
    except re.error:
        return False
    is_bound = (
        _OF_PATTERNS.search(path) is not None or text.startswith(("^", "\\A", "\\b")) or text.endswith(("$", "\\Z", "\\b"))
    )
    return "\n" not in text and is_bound and re.search(r"\\[dws]|[\[({]", text) is not None


def _of_way(text: str, name: str, pattern: str, new: object) -> Iterator[Mutant]:
    for found in [*re.finditer(pattern, text)][:MOST_OF_A_WAY]:
        made = new(found) if callable(new) else found.expand(str(new))
        line = text.count("\n", 0, found.start())
        changed = f"{text[: found.start()]}{made}{text[found.end() :]}"
        before, after = ((one.splitlines() or [""])[min(line, one.count("\n"))].strip() for one in (text, changed))
        yield Mutant(name=name, line=line + 1, text=changed, before=before, after=after)
