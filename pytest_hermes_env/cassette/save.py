"""Saves a recording: redacts it, scans the result for secrets, and writes the file."""

from __future__ import annotations

from pathlib import Path

from pytest_hermes_env.atomic_files import replace_file
from pytest_hermes_env.cassette.format import text_of
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.scan import leak_lines, scan_file
from pytest_hermes_env.cassette.tape import Tape
from pytest_hermes_env.errors import BadCassette

__all__ = ["save_tape"]


def save_tape(path: Path, tape: Tape, redactor: Redactor) -> None:
    """Write a recording to a file, without its secrets.

    The data is scanned before anything is written, so not even a temporary file contains a secret.

    Raises: the redacted data still contains a secret, or the file cannot be written → BadCassette.
    """
    data = text_of(redactor.tape(tape)).encode()
    leaks = scan_file(data, redactor.known)
    if leaks:
        raise BadCassette(
            f"{path}: this cassette was not written, because it would contain what looks like a secret.\n"
            + "".join(f"  seen      {line}\n" for line in leak_lines(leaks))
            + "  fix       remove it from the rollout, add a pattern for it to the redaction,\n"
            "            or add its value to the known secrets"
        )
    replace_file(path, data)
