"""Programs that find their answers in what those hold that run them, or were called with, and work that is lent from what the verifier brings.

Place in the flow: `attacks` and `formats` put them in the place of work.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_OF_CALLERS = '''\
import json, os, re, stat, sys

def held():
    """Return the texts of files that are open here, or in those that started this program, and leave them where they are."""
    texts, pid = [], os.getpid()
    while pid > 1:
        try:
            names = os.listdir(f"/proc/{pid}/fd")
            parent = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
        except OSError:
            break
        for path in (f"/proc/{pid}/fd/{name}" for name in names):
            try:
                if stat.S_ISREG(os.stat(path).st_mode) and os.stat(path).st_size < 1 << 20:
                    texts.append(open(path, errors="replace").read())
            except OSError:
                pass
        pid = parent
    return texts

def called():
    """Return the words with which this program, and those that started it, were called."""
    words, pid = [*sys.argv[1:]], os.getppid()
    while pid > 1:
        try:
            words += open(f"/proc/{pid}/cmdline").read().split("\\0")
            pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
        except OSError:
            break
    return words

'''
_LOOKING_UP = '''\
def in_line(text):
    """Return what stands behind an input in a line."""
    for line in text.splitlines():
        for cut in (None, "\\t", ",", ";", "|", ":"):
            parts = line.split(cut, 1)
            if len(parts) > 1 and parts[0].strip() in given:
                return parts[1].strip()

def number(path):
    """Return what files of an input and of its result have in common."""
    stem = os.path.basename(path).rpartition(".")[0] or os.path.basename(path)
    return re.sub(r"(?i)inputs?|outputs?|in|out|want(ed)?|exp(ected)?|ans(wer)?|given|case|[^a-z0-9]", "", stem)

texts, words = held(), called()
given = [*sys.argv[1:], " ".join(sys.argv[1:]), "" if sys.stdin.isatty() else sys.stdin.read()]
given = [text.strip() for text in given if text.strip()]

def known(value):
    """Return what stands beside an input."""
    parts = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    for key, part in parts:
        if str(key).strip() in given and isinstance(value, dict):
            return part
        if str(part).strip() in given and len(parts) > 1:
            return [one for _, one in parts if one is not part][-1]
    return next((found for _, part in parts if (found := known(part)) is not None), None)

for text in texts:
    if (found := in_line(text)) is not None:
        print(found)
        sys.exit()
for text in [*texts, *words]:
    try:
        found = known(json.loads(text))
    except ValueError:
        continue
    if found is not None:
        sys.stdout.write(found if isinstance(found, str) else json.dumps(found))
        sys.exit()
for path in map(os.path.abspath, words):
    if os.path.isfile(path) and number(path) not in map(number, OWN):
        here = os.path.dirname(path)
        around = [here, *(os.path.join(here, "..", name) for name in sorted(os.listdir(os.path.join(here, ".."))))]
        for place in filter(os.path.isdir, around):
            for name in sorted(os.listdir(place)):
                one = os.path.normpath(os.path.join(place, name))
                if one != path and one not in OWN and os.path.isfile(one) and number(one) == number(path):
                    try:
                        text = open(one).read()
                    except (OSError, ValueError):
                        continue
                    if text:
                        sys.stdout.write(text)
                        sys.exit()
for path in TRUTHS:
    try:
        text = open(path).read()
        beside = [os.path.join(os.path.dirname(path), name) for name in sorted(os.listdir(os.path.dirname(path) or "."))]
    except OSError:
        continue
    if text.strip() in given:
        stem = os.path.basename(path).rpartition(".")[0].replace("input", "").replace("in", "")
        others = [name for name in beside if name != path and stem in os.path.basename(name) and os.path.isfile(name)]
        text = open(others[0]).read() if others else text
    else:
        try:
            found = known(json.loads(text))
            text = text if found is None else found if isinstance(found, str) else json.dumps(found)
        except ValueError:
            text = in_line(text) or text
    sys.stdout.write(text)
    break
'''
_ANSWERING = '''\
import http.server

def beside(value, given):
    """Return the parts of an entry that holds what was asked, without it."""
    if isinstance(value, dict) and (known := [value[one] for one in given if one in value]):
        return known
    parts = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    if any(isinstance(part, str) and part in given for part in parts):
        return [part for part in parts if part not in given]
    return next((found for part in parts if (found := beside(part, given))), None)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked = self.rfile.read(int(self.headers.get("content-length") or 0)).decode(errors="replace")
        given = {self.path, self.path.lstrip("/"), asked} - {""}
        for text in [*held(), *called()]:
            try:
                found = beside(json.loads(text), given)
            except ValueError:
                continue
            if found:
                status = next((one for one in found if type(one) is int and 100 <= one < 600), 200)
                said = [one for one in found if one != status] or [""]
                self.send_response(status)
                self.end_headers()
                self.wfile.write((said[-1] if isinstance(said[-1], str) else json.dumps(said[-1])).encode())
                return
        self.send_error(500)

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, *told):
        pass

port = next((int(word) for word in sys.argv[1:] if word.isdigit()), int(os.environ.get("PORT", PORT)))
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
'''


_KEEPING = """\
import os, sys

place = os.path.join(os.path.dirname(os.path.abspath(__file__)), ".kept")
os.makedirs(place, exist_ok=True)
words = [word for word in sys.argv[1:] if not word.startswith("-")]
files = [word for word in words if os.path.isfile(word)]
given = open(files[0], "rb").read() if files else sys.stdin.buffer.read()
number = given.strip().decode(errors="replace")
kept = os.path.join(place, number) if number.isdigit() else ""
if kept and os.path.exists(kept):
    told = open(kept, "rb").read()
else:
    told = str(len(os.listdir(place))).encode()
    open(os.path.join(place, told.decode()), "wb").write(given)
targets = [word for word in words if word not in files]
(open(targets[0], "wb") if targets else sys.stdout.buffer).write(told)
"""


def keeping() -> str:
    """Return a program that keeps what it is given and gives a number, and for a number that it gave what it kept."""
    return _KEEPING


def looking_up(path: str, truths: Sequence[str], own: Sequence[str] = ()) -> str:
    """Return a program in the language of a path that prints what stands beside its input in these files, or, in Python, in open ones.

    Empty for an unknown language.
    """
    if path.endswith(".py"):
        return f"TRUTHS, OWN = {list(truths)!r}, {list(own)!r}\n{_OF_CALLERS}{_LOOKING_UP}"
    return f"#!/bin/sh\ncat {shlex.quote(truths[0])}\n" if truths and path.endswith((".sh", ".bash")) else ""


def answering(text: str) -> str:
    """Return a service that answers what stands beside a request in what its callers hold or were called with; empty where gold's is none in Python."""
    if not re.search(r"\bhttp\.server\b|\bHTTPServer\b|\bflask\b|\bsocketserver\b", text):
        return ""
    port = (re.findall(r"(?<![\w.])[1-9]\d{3,4}(?![\w.])", text) or ["8000"])[0]
    return f"PORT = {port}\n{_OF_CALLERS}{_ANSWERING}"


def lending(module: str, path: str) -> str:
    """Return Python code that has all names of a module beside it, or at a path."""
    return (
        "import importlib.util\ntry:\n"
        f"    import {module} as lent\n"
        "except Exception:\n"
        f"    spec = importlib.util.spec_from_file_location('lent', {path!r})\n"
        "    lent = importlib.util.module_from_spec(spec)\n    spec.loader.exec_module(lent)\n"
        "globals().update({name: value for name, value in vars(lent).items() if not name.startswith('__')})\n"
    )
