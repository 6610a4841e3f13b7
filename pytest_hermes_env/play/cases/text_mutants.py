"""SQL, shell scripts and patterns as somebody who is wrong in one place would write them.

Place in the flow: `wrong_programs` asks a verifier about them where gold writes no Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_hermes_env.play.cases.kinds_of_input import NAMES_WITH_BLANKS, Kind
from pytest_hermes_env.play.cases.mutants import Mutant
from pytest_hermes_env.play.cases.one_value import spread

MOST_OF_A_WAY = 3
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
)
_LANGUAGES = ((".sql", _SQL), (".sh", _SHELL), (".bash", _SHELL))


def text_mutants(path: str, text: str, most: int) -> list[Mutant]:
    """Return the mutants of a text, at most so many; none of one that is neither SQL, nor a shell script, nor a pattern of one line."""
    found = {new.text: new for way in _ways_of(path, text) for new in _of_way(text, *way)}
    return spread([one for one in found.values() if one.text != text], most)


def kind_of_names(path: str, text: str) -> Kind | None:
    """Return the kind of input that a mutant of a text is compared with gold on, beside those like the verifier's own."""
    return NAMES_WITH_BLANKS if _ways_of(path, text) is _SHELL else None


def _ways_of(path: str, text: str) -> tuple[tuple[str, str, object], ...]:
    for suffix, ways in _LANGUAGES:
        if path.endswith(suffix):
            return ways
    if text.startswith(("#!/bin/sh", "#!/bin/bash", "#!/usr/bin/env bash")):
        return _SHELL
    if re.match(r"(?i)\s*(?:SELECT|WITH)\b", text):
        return _SQL
    return _PATTERN if _is_pattern(text.strip()) else ()


def _is_pattern(text: str) -> bool:
    """Tell whether a text is a regular expression: one line with classes or groups that begins or ends at a border."""
    try:
        re.compile(text)
    except re.error:
        return False
    is_bound = text.startswith(("^", "\\A", "\\b")) or text.endswith(("$", "\\Z", "\\b"))
    return "\n" not in text and is_bound and re.search(r"\\[dws]|[\[({]", text) is not None


def _of_way(text: str, name: str, pattern: str, new: object) -> Iterator[Mutant]:
    for found in [*re.finditer(pattern, text)][:MOST_OF_A_WAY]:
        made = new(found) if callable(new) else found.expand(str(new))
        line = text.count("\n", 0, found.start())
        changed = f"{text[: found.start()]}{made}{text[found.end() :]}"
        before, after = ((one.splitlines() or [""])[min(line, one.count("\n"))].strip() for one in (text, changed))
        yield Mutant(name=name, line=line + 1, text=changed, before=before, after=after)
