"""The inputs that a verifier gives to gold's program: gold is played once more with a few lines that write down how it is used.

Place in the flow: `wrong_programs` makes other inputs of them (`starts`, `databases`, `calls`), and compares what a wrong program gives with what gold gives.

A program is told by whoever starts it: its command line, standard input and files. A function is told by its calls from outside, a query by
a copy of the database on which it is asked, whatever asks it.
"""

from __future__ import annotations

import json
import posixpath
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_hermes_env.play.cases.code_changes import is_code
from pytest_hermes_env.play.inputs.calls import is_of_data

OWN = "/var/tmp/uses"  # noqa: S108 - of the sandbox
"""Where the uses are written in the sandbox."""
INSIDE = Path(__file__).with_name("inside")
MOST_CALLS = 200
_PYTHON = """
def _told(own, most):
    import ast, functools, json, os, re, subprocess, sys, types
    spaces = globals()
    if __name__ == "__main__":
        given = os.path.join(own, "stdin-%d" % os.getpid())
        with open(given, "wb") as file:
            file.write(b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read())
        subprocess.run(["python3", "-I", own + "/recorder.py", own, spaces.get("__file__", ""), given], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.dup2(os.open(given, os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0)
    exec(compile(CODE, spaces.get("__file__", "solution.py"), "exec"), spaces)
    depth, calls, objects = [], [], {}
    def note(kind, number, name, args, kwargs):
        try:
            text = "%s(%s)" % (name, ", ".join([*map(repr, args), *("%s=%r" % one for one in kwargs.items())]))
            text = re.sub(r"\\bdatetime\\.(?=(?:date|datetime|time|timedelta)\\()", "", text)
            ast.parse(text)
            calls.append(text)
            with open(os.path.join(own, "%d.%s" % (os.getpid(), kind)), "a") as file:
                file.write(json.dumps([number, text]) + chr(10))
        except Exception:  # what has no text is no input that can be given again
            pass
    def watched(name, function, cls=None):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if not depth and len(calls) < most:
                if cls is None:
                    note("calls", 0, name, args, kwargs)
                else:
                    is_new = id(args[0]) not in objects
                    number, _ = objects.setdefault(id(args[0]), (len(objects), args[0]))
                    if is_new:
                        note("objects", number, type(args[0]).__name__, *((args[1:], kwargs) if name == "__init__" else ((), {})))
                    if name != "__init__":
                        note("objects", number, "one." + name, args[1:], kwargs)
            depth.append(name)
            try:
                return function(*args, **kwargs)
            finally:
                depth.pop()
        return call
    plain = {"__init__", "__len__", "__contains__", "__getitem__", "__setitem__", "__delitem__", "__call__"}
    if __name__ != "__main__":
        for name, value in [*spaces.items()]:
            if getattr(value, "__module__", "") != __name__ or value is _told:
                continue
            if isinstance(value, types.FunctionType):
                spaces[name] = watched(name, value)
            for method, function in [*vars(value).items()] if isinstance(value, type) else ():
                if isinstance(function, types.FunctionType) and (method in plain or not method.startswith("_")):
                    try:
                        setattr(value, method, watched(method, function, name))
                    except (AttributeError, TypeError):  # which its class may forbid
                        pass

CODE = {code!r}
_told({own!r}, {most})
"""
_SHELL = """{first}
__given={own}/stdin-$$
if [ -t 0 ]; then : > $__given; else cat > $__given; fi
python3 -I {own}/recorder.py {own} "$0" $__given > /dev/null 2>&1
exec < $__given
unset __given
{code}"""
_NODE = """
if (require.main === module && !process.env.__TOLD) {{
  const fs = require('fs'), run = require('child_process').spawnSync, given = '{own}/stdin-' + process.pid;
  let input = '';
  try {{ input = fs.readFileSync(0); }} catch (error) {{ }}
  fs.writeFileSync(given, input);
  run('python3', ['-I', '{own}/recorder.py', '{own}', __filename, given]);
  const done = run(process.execPath, process.argv.slice(1), {{ input, env: {{ ...process.env, __TOLD: '1' }}, stdio: ['pipe', 'inherit', 'inherit'] }});
  process.exit(done.status === null ? 1 : done.status);
}}
{code}"""
_AWK = """BEGIN {{ system("python3 -I {own}/recorder.py {own} '' -") }}
{code}"""
_QUERY = "VACUUM INTO '{own}/' || hex(randomblob(8)) || '.base'"


@dataclass(frozen=True, kw_only=True)
class Used:
    """How a verifier used gold's program: the ``starts`` of it, Python that prints what its ``calls`` gave, and the ``databases`` it asked, as SQL."""

    starts: tuple[Mapping[str, Any], ...] = ()
    calls: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()


def language_of(path: str, code: str) -> str:
    """Return the language of a program: python, shell, node, awk, sql, or none."""
    suffix, first = posixpath.splitext(path)[1], code.partition("\n")[0]
    by_suffix = {".py": "python", ".sh": "shell", ".bash": "shell", ".js": "node", ".cjs": "node", ".awk": "awk", ".sql": "sql"}
    if suffix in by_suffix:
        return by_suffix[suffix]
    if first.startswith("#!"):
        return next((name for word, name in _BY_WORD.items() if word in first), "")
    if code.lstrip().upper().startswith(("SELECT", "WITH ")):
        return "sql"
    return "python" if is_code(code) and not suffix else ""


_BY_WORD = {"python": "python", "bash": "shell", "/sh": "shell", "node": "node", "awk": "awk"}


def telling(path: str, code: str) -> str:
    """Return a program that writes down how it is used and does the same; of a query, one that only writes down."""
    language, first = language_of(path, code), code.partition("\n")[0]
    is_named = first.startswith("#!")
    head = f"{first}\n" if is_named else ""
    body = code[len(head) :]
    if language == "python":
        return head + _PYTHON.replace("{code!r}", repr(body)).replace("{own!r}", repr(OWN)).replace("{most}", str(MOST_CALLS))
    if language == "sql":
        return _QUERY.format(own=OWN)
    if language == "shell":
        return _SHELL.format(first=first if is_named else "", own=OWN, code=body)
    return {"node": head + _NODE, "awk": head + _AWK}.get(language, "{code}").format(own=OWN, code=body if language else code)


def recorder() -> dict[str, bytes]:
    """Return what must lie in the sandbox beside a telling program."""
    return {f"{OWN}/recorder.py": (INSIDE / "recorder.py").read_bytes()}


def used(files: Mapping[str, bytes], path: str) -> Used:
    """Return the uses that a telling program at ``path`` has written, from all files of its sandbox."""
    told = {name: data for name, data in files.items() if name.startswith(f"{OWN}/")}
    starts = [json.loads(told[name]) for name in sorted(told) if name.endswith(".start")]
    calls = [f"print(repr({call}))" for name in sorted(told) if name.endswith(".calls") for _, call in _calls(told[name])]
    for name in sorted(told):
        uses: dict[int, list[str]] = {}
        for number, call in _calls(told[name]) if name.endswith(".objects") else ():
            uses.setdefault(number, []).append(f"print(repr({call}))" if call.startswith("one.") else f"one = {call}")
        calls += ["\n".join(one) for one in uses.values() if one[0].startswith("one = ")]
    databases = [_script_of(data) for name, data in told.items() if name.endswith(".base")]
    return Used(
        starts=tuple(_plain(start, path) for start in starts),
        calls=tuple(dict.fromkeys(calls)),
        databases=tuple(sorted(one for one in {*databases} if one)),
    )


def _calls(data: bytes) -> list[tuple[int, str]]:
    """Return the calls that were written, with the number of their object: those that can be given again."""
    return [(number, call) for number, call in map(json.loads, data.splitlines()) if is_of_data(call)]


def _plain(start: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return a start without the program that told it: ``path`` is where it stands, or ``inline`` the word that is its text."""
    words: Sequence[str] = start["words"]
    inline = next((word for word in words if OWN in word and "recorder.py" in word), "")
    own = start["path"] or ("" if inline else _after(words, "-f") or path)
    own = own and posixpath.join(start["cwd"], own)
    files = {name: text for name, text in start["files"].items() if name != own and f"{OWN}/recorder.py" not in text}
    return {**start, "path": own, "inline": inline, "files": files}


def _after(words: Sequence[str], option: str) -> str:
    return next((words[place + 1] for place, word in enumerate(words[:-1]) if word == option), "")


def _script_of(data: bytes) -> str:
    """Return the statements that make a database."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "base"
        path.write_bytes(data)
        connection = sqlite3.connect(path)
        try:
            return "\n".join(connection.iterdump())
        except sqlite3.Error:
            return ""
        finally:
            connection.close()
