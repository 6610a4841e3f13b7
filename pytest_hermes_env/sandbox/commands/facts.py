"""Commands about bytes and about the machine: base64, od, checksums; date, id, uname and the like, always the same."""

from __future__ import annotations

import base64 as codec
import binascii
import hashlib

from pytest_hermes_env.sandbox.commands.options import read_options
from pytest_hermes_env.sandbox.commands.process import Process, Program, UnsupportedOption

__all__ = ["FACTS"]


def base64(process: Process) -> int:
    """Encode, or decode with ``-d``; ``-w`` sets the width of lines, 0 for one."""
    options = read_options(process.words, "dw:", {"decode": "d", "wrap": "w:"})
    data = process.content(options.operands)
    if process.code:
        return process.code
    if "d" in options:
        try:
            process.write(codec.b64decode(data.replace(b"\n", b""), validate=True))
        except binascii.Error:
            raise UnsupportedOption("base64 -d of what is no base64") from None
        return 0
    text = codec.b64encode(data)
    width = int(options.get("w", "76"))
    process.write(b"".join(text[at : at + width] + b"\n" for at in range(0, len(text), width)) if width else text)
    return 0


def od(process: Process) -> int:
    """Write bytes as hexadecimal numbers (``-An -v -tx1``)."""
    options = read_options(process.words, "A:vt:")
    if (options.get("A"), options.get("t")) != ("n", "x1"):
        raise UnsupportedOption(f"od {' '.join(process.arguments)}")
    data = process.content(options.operands)
    for at in range(0, len(data), 16):
        process.write("".join(f" {byte:02x}" for byte in data[at : at + 16]) + "\n")
    return process.code


def checksum(process: Process) -> int:
    """Write the checksum that the command is named after."""
    options = read_options(process.words, "")
    algorithm = process.name.rpartition("/")[2].removesuffix("sum")
    for name, data in process.inputs(options.operands):
        process.write(f"{hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()}  {name}\n")
    return process.code


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


def _says(answers: dict[tuple[str, ...], str]) -> Program:
    def program(process: Process) -> int:
        if process.arguments not in answers:
            raise UnsupportedOption(f"{process.name} {' '.join(process.arguments)}")
        process.write(answers[process.arguments] + "\n")
        return 0

    return program


def env(process: Process) -> int:
    """Write the variables, or the values of those that are named."""
    variables, names = process.variables, process.arguments
    if not names:
        process.write("".join(f"{name}={value}\n" for name, value in sorted(variables.items())))
        return 0
    process.write("".join(f"{variables[name]}\n" for name in names if name in variables))
    return int(not set(names) <= variables.keys())


FACTS: dict[str, Program] = {
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
}
"""Name → program."""
