"""Commands that other commands run: what stands behind ``timeout 60``, ``env A=1`` or ``bash -c``.

Place in the flow: ``terminal`` of a fake sandbox asks the script for them, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_WRAPPER = re.compile(r"(?:/usr)?(?:/bin/)?(?P<name>timeout|env|nice|nohup|setsid|stdbuf|ionice|sudo|command|exec|time)(?=\s)")
_WITH_ARGUMENT = {"timeout": "sk", "nice": "n", "env": "uC", "sudo": "ug", "stdbuf": "ioe", "ionice": "cnp"}
"""The options that take the next word, by program."""
_OPTION = re.compile(r"\s+(-\S+)")
_WORD = re.compile(r"\s+\S+")
_ASSIGNMENT = re.compile(r"\s+[A-Za-z_]\w*=\S*")
_GIVEN = re.compile(
    r"\b(?:ba|da|z)?sh\s+(?:-\w+\s+)*-\w*c\s+(?:(?P<quote>['\"])(?P<script>.*?)(?P=quote)|(?P<word>[^\s'\"]+))"
    r"|\bxargs\b(?:\s+-\S+(?:\s+\d+)?)*\s+(?P<command>[^-\s|;&].*)"
    r"|\s-exec(?:dir)?\s+(?P<run>.+?)\s+(?:\\;|\+)",
    re.DOTALL,
)


def wrapped(text: str) -> str:
    """Return the command that a program such as ``timeout`` runs with its own output and exit code; empty for any other command."""
    found = _WRAPPER.match(text)
    if found is None:
        return ""
    name, at = found["name"], found.end()
    while option := _OPTION.match(text, at):
        if name == "command" and re.match(r"-\w*[vV]", option[1]):
            return ""  # it asks whether there is such a command
        at = option.end()
        is_followed = len(option[1]) == 2 and option[1][1] in _WITH_ARGUMENT.get(name, "")  # noqa: PLR2004 - a dash and a letter
        at = word.end() if is_followed and (word := _WORD.match(text, at)) else at
    if name == "timeout" and (duration := _WORD.match(text, at)):
        at = duration.end()
    while name in {"env", "sudo"} and (assigned := _ASSIGNMENT.match(text, at)):
        at = assigned.end()
    rest = text[at:].strip()
    return wrapped(rest) or rest


def handed_on(line: str) -> Iterator[str]:
    """Yield the commands that a line gives to another shell, to xargs or to find, which run them where no script can be asked."""
    for found in _GIVEN.finditer(line):
        yield next(text for text in found.group("script", "word", "command", "run") if text is not None)
