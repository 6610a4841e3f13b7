"""Commands about bytes and about the machine: base64, od, xxd, checksums; date, id, uname and the like, always the same."""

from __future__ import annotations

import base64 as codec
import binascii
import hashlib
import re

from pytest_hermes_env.sandbox.commands.inputs import inputs
from pytest_hermes_env.sandbox.commands.options import read_options
from pytest_hermes_env.sandbox.commands.process import Process, UnsupportedOption

__all__ = ["FACTS"]


def base64(process: Process) -> int:
    """Encode, or decode with ``-d``; ``-w`` sets the width of lines, 0 for one."""
    options = read_options(process, "dw:i", {"decode": "d", "wrap": "w:", "ignore-garbage": "i"})
    failures: list[str] = []
    data = b"".join(one.data for one in inputs(process, options.operands, failures))
    if failures:
        return 1
    if "d" in options:
        text = b"".join(data.split(b"\n"))
        try:
            process.write(codec.b64decode(text, validate=True))
        except binascii.Error:
            whole = text[: len(text) // 4 * 4]
            process.write(
                codec.b64decode(re.sub(rb"[^A-Za-z0-9+/=].*", b"", whole)[: len(whole) // 4 * 4] or b"", validate=False)
            )
            process.err += b"base64: invalid input\n"
            return 1
        return 0
    width = int(options.get("w") or "76")
    text = codec.b64encode(data)
    if not width:
        process.write(text)
    else:
        process.write(b"".join(text[at : at + width] + b"\n" for at in range(0, len(text), width)))
    return 0


def od(process: Process) -> int:
    """Write bytes as hexadecimal numbers (``-An -v -tx1``)."""
    words = [part for word in process.arguments for part in _od_words(word)]
    process.words = ("od", *words)
    options = read_options(process, "A:vt:", {"output-duplicates": "v"})
    if (options.get("A"), options.get("t")) != ("n", "x1"):
        raise UnsupportedOption(f"od {' '.join(process.arguments)}")
    failures: list[str] = []
    data = b"".join(one.data for one in inputs(process, options.operands, failures))
    for at in range(0, len(data), 16):
        process.write("".join(f" {byte:02x}" for byte in data[at : at + 16]) + "\n")
    return 1 if failures else 0


def _od_words(word: str) -> list[str]:
    found = re.fullmatch(r"-(A)(n)|-(t)(x1)|-(t)(x1)z", word)
    return [word] if not found else [f"-{found[1] or found[3]}", found[2] or found[4]]


def xxd(process: Process) -> int:
    """Write bytes as plain hexadecimal text (``-p``)."""
    options = read_options(process, "p")
    if "p" not in options:
        raise UnsupportedOption("xxd without -p")
    failures: list[str] = []
    text = b"".join(one.data for one in inputs(process, options.operands, failures)).hex()
    process.write("".join(text[at : at + 60] + "\n" for at in range(0, len(text), 60)))
    return 1 if failures else 0


def checksum(process: Process) -> int:
    """Write the checksum that the command is named after."""
    options = read_options(process, "b", {"binary": "b"})
    failures: list[str] = []
    for one in inputs(process, options.operands, failures):
        digest = hashlib.new(process.name.removesuffix("sum"), one.data, usedforsecurity=False).hexdigest()
        process.write(f"{digest} {'*' if 'b' in options else ' '}{one.name}\n")
    return 1 if failures else 0


def date(process: Process) -> int:
    """Write the time of this machine, which stands still at the first second of 2026."""
    import datetime as dt  # noqa: PLC0415

    words = [word for word in process.arguments if word not in {"-u", "--utc"}]
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    if not words:
        process.write(now.strftime("%a %b %e %H:%M:%S UTC %Y\n"))
    elif len(words) == 1 and words[0].startswith("+"):
        process.write(now.strftime(words[0][1:].replace("%N", "000000000").replace("%s", str(int(now.timestamp())))) + "\n")
    else:
        raise UnsupportedOption(f"date {' '.join(words)}")
    return 0


def _says(answers: dict[tuple[str, ...], str]) -> object:
    def program(process: Process) -> int:
        if process.arguments not in answers:
            raise UnsupportedOption(f"{process.name} {' '.join(process.arguments)}")
        process.write(answers[process.arguments] + "\n")
        return 0

    return program


def env(process: Process) -> int:
    """Write the variables."""
    names = process.arguments if process.name == "printenv" else ()
    if process.name == "env" and process.arguments:
        raise UnsupportedOption(f"env {' '.join(process.arguments)}")
    if names:
        found = [process.variables[name] for name in names if name in process.variables]
        process.write("".join(f"{value}\n" for value in found))
        return 0 if len(found) == len(names) else 1
    process.write("".join(f"{name}={value}\n" for name, value in sorted(process.variables.items())))
    return 0


FACTS = {
    "base64": base64,
    "date": date,
    "env": env,
    "hostname": _says({(): "sandbox"}),
    "id": _says({("-u",): "0", ("-g",): "0", ("-un",): "root", (): "uid=0(root) gid=0(root) groups=0(root)"}),
    "md5sum": checksum,
    "nproc": _says({(): "2"}),
    "od": od,
    "printenv": env,
    "sha1sum": checksum,
    "sha256sum": checksum,
    "sha512sum": checksum,
    "uname": _says({(): "Linux", ("-s",): "Linux", ("-m",): "x86_64"}),
    "whoami": _says({(): "root"}),
    "xxd": xxd,
}
"""Name → program."""
