"""Checks that the agent cannot talk into paying: on copies of its outputs, in a fresh directory, after it has ended.

`run_check` is for most verifiers. The agent's declared outputs are copied by name, as regular files up to a size, and nothing else of its
directories is there; the checker's files are written beside them, read-only, into a directory with a random name. The check runs with the
machine's own PATH and none of the variables, functions and start-up files that the agent left in its session. It passes with exit code 0
*and* a report that begins with a word which only the checker's first process is told, on its standard input: code of the agent that ends that
process, or prints what a test runner would, does not know it. Run the agent's code in a process of its own, and compare what it printed.

Place in the flow: `compute_reward` calls it; the example environments use its parts.
"""

from __future__ import annotations

import base64
import json
import posixpath
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from environments.tool_context import ToolContext  # first: explains shadowed modules

# isort: split
from environments.sandbox.isolation import sandbox_directory
from hermes_env_shared.processes import PATH_OF_MACHINE

BASH = "/bin/bash --noprofile --norc"
CLEAN_BASH = f"/usr/bin/env -i {BASH}"
STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LARGEST = 10_000_000
"""Bytes of one output that is copied."""
GRACE_S = 30
"""Seconds in addition to a check's limit, for starting and ending it."""
TIMED_OUT = 124
"""The exit code of a command that hermes stopped."""
_COPY = (
    'mkdir -p "$WORK"; for file; do [ -f "$file" ] && [ ! -L "$file" ] && [ "$(wc -c < "$file")" -le "$MOST" ] || '
    '{ printf "%s\\n" "$file"; continue; }; '
    'mkdir -p "$WORK/$(dirname -- "$file")" && cat < "$file" > "$WORK/$file"; done'
)
_DATA = ".data"
_WRITE = 'mkdir -p "$(dirname "$CHECK/$1")" && base64 -d >> "$CHECK/$1"'
CHUNK = 60_000
"""Bytes that are written by one command: a longer one is refused by the system."""
_RUN = """\
read -r word; exec 3< "$CHECK/.data"; rm -f "$CHECK/.data"; chmod -R a-w "$CHECK"
{{ printf '%s\\n' "$word"; cat <&3; }} | {{ exec 3<&-; unset word
{command}
}}"""
_QUIET = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONSAFEPATH": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "LC_ALL": "C.UTF-8",
}


class CheckError(Exception):
    """The sandbox did not run the check, or the check decides nothing: let it raise, and the rollout is left out instead of scored."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What came of a check. ``report`` is the JSON that followed the secret word; without the word nothing has passed."""

    passed: bool
    exit_code: int
    output: str
    report: Any = None
    missing: tuple[str, ...] = field(default_factory=tuple)
    """Outputs that were declared and not copied: absent, a link, or too large."""


def run_check(
    ctx: ToolContext,
    command: str,
    *,
    outputs: Sequence[str],
    files: Mapping[str, str],
    timeout_s: int = 60,
    data: Any = None,
    largest: int = LARGEST,
    directory: str = "",
) -> Checked:
    """Run a shell command on copies of the agent's ``outputs``, paths relative to ``directory``, with the checker's ``files``.

    ``directory`` is where the agent began; by default the directory of its rollout on the local backend, elsewhere the present one.
    ``data``, which JSON can hold, is what no code of the agent may read: hidden inputs, expected results.

    The command begins in the directory of the copies; the checker's files are in ``$CHECK``. Its first process reads two lines from standard
    input, the secret word and the data, and prints the word before its report as JSON, in one line: ``print(word, json.dumps(report))``.

    Raises: CheckError where nothing could be written or run; a check that does not end in time has not passed.
    """
    word = secrets.token_hex(16)
    start = directory or sandbox_directory(ctx.task_id) or str(ctx.terminal(f"{CLEAN_BASH} -c pwd").get("output") or "").strip()
    root = posixpath.join(start, f".check-{secrets.token_hex(8)}")
    work, check = posixpath.join(root, "work"), posixpath.join(root, "check")
    places = {"WORK": work, "CHECK": check}
    path = machine_path(ctx)
    for name, text in {**files, _DATA: f"{json.dumps(data)}\n"}.items():
        write = clean_command(_WRITE, name, path=path, directory=start, **places)
        for place in range(0, len(text.encode()) or 1, CHUNK):
            told = base64.b64encode(text.encode()[place : place + CHUNK]).decode()
            written = ctx.terminal(f"{write} <<< {told!r}")
            if written.get("exit_code") != 0:
                raise CheckError(f"{name} cannot be written in the sandbox: {_told(written)}")
    copied = ctx.terminal(
        clean_command(_COPY, *map(_relative, outputs), path=path, directory=start, MOST=str(largest), **places)
    )
    if copied.get("exit_code") != 0:
        raise CheckError(f"the outputs cannot be copied in the sandbox: {_told(copied)}")
    run = clean_command(_RUN.format(command=command), path=path, directory=work, **_QUIET, HOME=root, **places)
    answer = ctx.terminal(f"{run} <<< {word}", timeout=timeout_s + GRACE_S)  # nothing of the agent's session runs on the way
    code = answer.get("exit_code")
    if not isinstance(code, int) or code < 0:
        raise CheckError(f"the sandbox did not run the check: {_told(answer)}")
    output = str(answer.get("output") or "")
    report = _report(output, word)
    is_told = report is not _NONE
    return Checked(
        passed=code == 0 and is_told,
        exit_code=code,
        output=output.replace(word, "(the word)"),
        report=report if is_told else None,
        missing=tuple(str(copied.get("output") or "").splitlines()),
    )


_NONE = object()


def _report(output: str, word: str) -> Any:
    for line in output.splitlines():
        if line.startswith(f"{word} "):
            try:
                return json.loads(line.removeprefix(f"{word} "))
            except ValueError:
                return _NONE
    return _NONE


def _relative(path: str) -> str:
    """Return a path inside of the agent's directory. Raises: ValueError for one that leads out of it."""
    plain = posixpath.normpath(path)
    if posixpath.isabs(plain) or plain.split("/")[0] == "..":
        raise ValueError(f"outputs are paths inside of the agent's directory, relative to it; {path!r} is not")
    return plain


def machine_path(ctx: ToolContext) -> str:
    """Return PATH as the machine itself has it, whatever the agent exported."""
    told = ctx.terminal(f"{CLEAN_BASH} -c {shlex.quote(PATH_OF_MACHINE)}")
    found = str(told.get("output") or "").strip()
    return f"{found}:{STANDARD_PATH}" if told.get("exit_code") == 0 and found.startswith("/") else STANDARD_PATH


def clean_command(script: str, *arguments: str, path: str, directory: str, **variables: str) -> str:
    """Return the command that runs a script of bash in a directory, with these variables and none that the agent exported.

    The terminal carries exported variables from one command to the next: with BASH_ENV or PATH the agent would run in its own tests.
    """
    given = [f"{name}={value}" for name, value in {"PATH": path, "HOME": directory, "LC_ALL": "C.UTF-8", **variables}.items()]
    begun = f"cd {shlex.quote(directory)} || exit 126\n{script}"
    return shlex.join(["/usr/bin/env", "-i", *given, *BASH.split(), "-c", begun, "check", *arguments])


def _told(answer: Mapping[str, Any]) -> str:
    return str(answer.get("error") or answer.get("output"))[:300]
