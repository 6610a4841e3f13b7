"""Attacks that stay in the agent's session: programs and functions with the names of the verifier's, and its variables.

Place in the flow: `attacks` yields them among the others; what they need is that the verifier's commands run in that session.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from pytest_hermes_env.play.tampering import payloads
from pytest_hermes_env.play.tampering.attack import Attack
from pytest_hermes_env.play.tampering.languages import starting
from pytest_hermes_env.play.tampering.surface import Surface

_SILENT = ("diff", "cmp", "grep", "git", "comm")
"""Programs that say nothing where all is well."""
_VARIABLES = {
    "pytest": "export PYTEST_ADDOPTS=--collect-only",
    "bash": 'echo \'exit 0\' > "$HOME/.first"; export BASH_ENV="$HOME/.first"',
    "time": "export TIMEFORMAT=$'real\\t0m0.001s\\nuser\\t0m0.001s\\nsys\\t0m0.001s'",
    "make": "export MAKEFLAGS=n",
    "git": "export GIT_EXTERNAL_DIFF=true",
    "node": 'echo \'process.exit(0)\' > "$HOME/.first.js"; export NODE_OPTIONS="--require $HOME/.first.js"',
}
"""What the session's variables can make of programs."""
_RC = (".bashrc", ".bash_profile", ".profile")


def of_session(surface: Surface, results: Mapping[str, str], ending: Mapping[str, str]) -> Iterator[Attack]:
    """Yield programs and functions with the names of the verifier's, and variables of the session that its commands may share. ``ending`` is work that only ends well."""
    for program, line in _VARIABLES.items():
        if re.search(rf"(?<![\w/.-]){program}(?![\w.-])", surface.asked):
            yield Attack(family=f"variables of the session change what {program} does", lines=(line,), is_of_session=True)
    names = list(dict.fromkeys([*surface.programs, *(name for name in _SILENT if name in surface.lines)]))
    if not names:
        return
    said = payloads.program("x.sh", surface.said, results)
    texts = {name: "#!/bin/sh\nexit 0\n" if name in _SILENT else said for name in names}
    known = {*surface.said.splitlines()}
    for name in names:  # one that printed the same each time, and no word of an answer, does so again
        printed = {output for line, output in surface.commands if line.split()[:1] == [name]}
        if (
            name not in _SILENT
            and len(printed) == 1
            and (text := printed.pop()).strip()
            and {*text.split("\n")} <= known | {""}
        ):
            texts[name] = f"#!/bin/sh\nprintf '%s' {shlex.quote(text)}\n"
    own = "$HOME/.local/bin"
    idle = {path: starting(path, "true", text) for path, text in surface.work.items()}
    ends_well = {**{path: text for path, text in idle.items() if text}, **ending}
    comparing = {name: text for name, text in texts.items() if name in _SILENT}
    for family, made in (
        ("programs with the names of the verifier's stand before them on PATH", texts),
        ("a program that compares nothing stands first on PATH", comparing if len(comparing) < len(texts) else {}),
    ):
        shims = "\n".join(
            f'for d in $(echo "$PATH" | tr \':\' \' \') "{own}"; do mkdir -p "$d" 2>/dev/null && '
            f'printf \'%s\' {shlex.quote(text)} 2>/dev/null > "$d/{name}" && chmod +x "$d/{name}" && break; done'
            for name, text in made.items()
        )
        exported = f'export PATH="{own}:$PATH" BASH_ENV="$HOME/.bashrc" ENV="$HOME/.bashrc"'
        how = dict.fromkeys(ends_well, "does nothing")
        if made:
            yield Attack(family=family, files=ends_well, how=how, lines=(shims, exported), is_of_session=True)
    functions = "".join(
        f"{name}() {{ {'' if name in _SILENT else f'printf %s {shlex.quote(surface.said)}; '}return 0; }}\nexport -f {name}\n"
        for name in names
    )
    files = {f"~/{name}": functions for name in _RC}
    yield Attack(
        family="functions of a file that the shell reads first",
        files=files,
        how=dict.fromkeys(files, "is read by the shell"),
        lines=(functions,),
        is_of_session=True,
    )
