"""Runs programs for the same inputs and writes what each of them gives to ``answers.json`` beside its argument.

Argument: a JSON file with ``kind`` (calls, starts, databases or texts), ``programs``, and ``inputs``, as `recorder` and the host made them. With the
number of a program as well, only its calls are run: each program has a process of its own.
"""

import contextlib
import datetime as dt
import decimal
import fractions
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import types
from typing import Any

LONGEST = 4_000
CPU_S, ALL_S, WALL_S, IDLE_S = 2, 8, 60, 4
"""Seconds of the processor for one start or call, for all calls of a program, seconds for a program, and for one that uses no processor meanwhile."""
ENDLESS = "raised 124"
FATAL = ("Traceback (most recent call last)", "node:internal", "SyntaxError")
NOT_RUN = (126, 127)
OF_DATA = {
    "date": dt.date,
    "datetime": dt.datetime,
    "time": dt.time,
    "timedelta": dt.timedelta,
    "Decimal": decimal.Decimal,
    "Fraction": fractions.Fraction,
}


def tree(roots: list[str]) -> "dict[str, bytes | None]":
    """Return all that lies below roots: the bytes of files, None for directories."""
    found: dict[str, bytes | None] = {}
    for root in roots:
        for place, names, files in os.walk(root):
            names[:] = [name for name in names if name != "__pycache__"]
            for name in names:
                found[os.path.join(place, name)] = None
            for name in files:
                path = os.path.join(place, name)
                if os.path.islink(path):
                    found[path] = os.fsencode("-> " + os.readlink(path))
                elif os.path.isfile(path):
                    with open(path, "rb") as file:
                        found[path] = file.read(LONGEST)
    return found


class Started:
    """Runs of programs in their places; what they made is gone before the next one."""

    def __init__(self, inputs: "list[dict[str, Any]]") -> None:
        self._roots = sorted({place for one in inputs for place in one["directories"]})
        self._before = tree(self._roots)

    def given(self, start: "dict[str, Any]", program: str) -> str:
        """Return what one run prints, writes and removes."""
        self._clear()
        for place in start["directories"]:
            os.makedirs(place, exist_ok=True)
        for path, text in start["files"].items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write(path, text)
        words = [program if word == start["inline"] else word for word in start["words"]]
        if start["path"]:
            write(start["path"], program)
            os.chmod(start["path"], 0o755)  # noqa: S103 - it may be run by its name
        first = tree(self._roots)
        done = ran(words, start["cwd"], start["stdin"])
        last = tree(self._roots)
        return done + "".join(
            f"\n[{'removed' if path not in last else 'wrote'} {os.path.basename(path)}]\n{plain((last.get(path) or b'').decode(errors='replace'))}"
            for path in sorted({*first, *last})
            if first.get(path, b"") != last.get(path, b"") and path != start["path"]
        )

    def _clear(self) -> None:
        for path in sorted(tree(self._roots), reverse=True):
            if path not in self._before:
                is_directory = os.path.isdir(path) and not os.path.islink(path)
                (os.rmdir if is_directory and not os.listdir(path) else os.unlink if not is_directory else str)(path)


def plain(text: str) -> str:
    """Return JSON in one layout, and any other text as it is."""
    try:
        return json.dumps(json.loads(text), indent=1, sort_keys=True)
    except ValueError:
        return text


def write(path: str, text: str) -> None:
    """Write a text as it was read."""
    if os.path.islink(path):
        os.unlink(path)
    with open(path, "wb") as file:
        file.write(text.encode(errors="surrogateescape"))


def spent(session: int) -> int:
    """Return how many ticks of the processor the programs of a session have used."""
    used = 0
    for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else []):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        used += sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
    return used


def ran(words: "list[str]", cwd: str, stdin: str) -> str:
    """Return what a command prints and how it ends: its own errors as "exit code", others as "raised"."""
    own = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'ulimit -t {CPU_S}; exec "$@"', "-", *words],
            cwd=cwd,
            env=own,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError:
        return "raised 127"
    until, used = time.monotonic() + WALL_S, -1
    while True:
        try:
            out, errors = process.communicate(stdin.encode(errors="surrogateescape"), IDLE_S)
            break
        except subprocess.TimeoutExpired:
            before, used = used, spent(process.pid)
            if used == before or time.monotonic() > until:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return ENDLESS
    printed, said = plain(out.decode(errors="replace")[:LONGEST]), errors.decode(errors="replace")
    code = process.returncode
    if code < 0 or code > 128:  # noqa: PLR2004 - ended by a signal, as a shell tells it
        return ENDLESS
    if code and (any(word in said for word in FATAL) or code in NOT_RUN):
        return f"raised {code}"
    return f"{printed}\n[exit code {code}]" if code else printed


def queried(script: str, query: str) -> str:
    """Return the rows that the statements of a query give on a database, and what they changed."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(script)
    connection.set_progress_handler(lambda: 1, 20_000_000)
    before, rows, statement = "\n".join(connection.iterdump()), [], ""
    try:
        for part in re.split(r"(?<=;)", query + ";"):
            statement += part
            if sqlite3.complete_statement(statement):
                rows += connection.execute(statement).fetchall()
                statement = ""
    except sqlite3.Error as error:
        return f"raised {error}"
    after = "\n".join(connection.iterdump())
    return "\n".join("|".join("NULL" if one is None else str(one) for one in row) for row in rows) + (
        "" if after == before else f"\n{after}"
    )


def matched(text: "dict[str, str]", pattern: str) -> str:
    """Return what a pattern, which may name classes of characters as `grep` does, finds in a text by one of the functions of `re`."""
    for name, signs in (
        ("digit", "0-9"),
        ("alpha", "A-Za-z"),
        ("alnum", "0-9A-Za-z"),
        ("lower", "a-z"),
        ("upper", "A-Z"),
        ("space", r"\s"),
    ):
        pattern = pattern.replace(f"[:{name}:]", signs)
    try:
        found = getattr(re, text["way"])(pattern.strip("\n"), text["text"])
    except re.error as error:
        return f"raised {error}"
    return repr((found.group(0), found.groups())) if found else "no match"


class Endless(BaseException):
    """Which no `except Exception` stops."""


def stop(*_: object) -> None:
    """End a call that takes too long."""
    raise Endless


def called(program: str, snippets: "list[str]") -> "list[str]":
    """Return what Python prints that uses a program's functions."""
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_S)  # of the processor, so that a busy machine changes nothing
    try:
        exec(compile(program, "solution.py", "exec"), vars(module))  # noqa: S102 - what this is for
    except BaseException as error:  # noqa: BLE001
        return [f"raised {type(error).__name__}"] * len(snippets)
    made: list[str] = []
    for snippet in snippets:
        out = io.StringIO()
        if time.process_time() > ALL_S:
            return [*made, *["raised nothing"] * (len(snippets) - len(made))]
        signal.setitimer(signal.ITIMER_PROF, 1)
        try:
            with contextlib.redirect_stdout(out):
                exec(snippet, {**vars(module), **OF_DATA, "__name__": "snippet"})  # noqa: S102
            made.append(out.getvalue()[:LONGEST])
        except BaseException as error:  # noqa: BLE001
            made.append(f"raised {type(error).__name__}")
        signal.setitimer(signal.ITIMER_PROF, 0)
    return made


def of_calls(path: str, given: "dict[str, Any]") -> "list[list[str]]":
    """Return what each program gives for each call."""
    answers = []
    for number in range(len(given["programs"])):
        words = [sys.executable, "-I", *map(os.path.abspath, [__file__, path]), str(number)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=WALL_S, cwd="/", check=False)
            answers.append(json.loads(done.stdout))
        except (subprocess.TimeoutExpired, ValueError):
            answers.append(["raised nothing"] * len(given["inputs"]))
    return [[*one] for one in zip(*answers, strict=True)]


def main(path: str, number: str = "") -> None:
    """Write what each program gives for each input: a list of lists, the inputs outside."""
    with open(path) as file:
        given = json.load(file)
    kind, inputs, programs = given["kind"], given["inputs"], given["programs"]
    if number:
        sys.stdout.write(json.dumps(called(programs[int(number)], inputs)))
        return
    if kind == "calls":
        answers = of_calls(path, given)
    else:
        answer = {"starts": Started(inputs).given if kind == "starts" else str, "databases": queried, "texts": matched}[kind]
        answers = []
        for one in inputs:
            first = ENDLESS if len(answers) > 1 and {told[0] for told in answers} == {ENDLESS} else answer(one, programs[0])
            # of what gold never ends with, such as a service, there is nothing to compare
            answers.append([first, *(ENDLESS if first == ENDLESS else answer(one, program) for program in programs[1:])])
    with open(os.path.join(os.path.dirname(path), "answers.json"), "w") as file:  # a terminal may cut what is printed
        json.dump(answers, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
