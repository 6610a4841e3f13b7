"""Saves a recording: redacts it, checks the text for secrets, and writes the file."""

from __future__ import annotations

import base64
import warnings
from pathlib import Path

from pytest_hermes_env.atomic_files import replace_file
from pytest_hermes_env.cassette.format import text_of
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.tape import ModelCall, Tape
from pytest_hermes_env.errors import BadCassette
from pytest_hermes_env.redaction.file_check import leak_lines, leaks_in


def save_tape(path: Path, tape: Tape, redactor: Redactor) -> None:
    """Write a recording to a file, without its secrets.

    The text is checked before anything is written, so not even a temporary file contains a secret.

    Raises: the redacted text still contains a secret, or the file cannot be written → BadCassette.
    """
    text = text_of(redactor.tape(tape))
    leaks = leaks_in(text, redactor.known)
    if leaks:
        raise BadCassette(
            f"{path}: this cassette was not written, because it would contain what looks like a secret.\n"
            + "".join(f"  seen      {line}\n" for line in leak_lines(leaks))
            + "  fix       remove it from the rollout, add a pattern for it to the redaction,\n"
            "            or add its value to the known secrets"
        )
    replace_file(path, text.encode())
    if binary := [call.number for call in tape.calls if isinstance(call, ModelCall) and _has_binary_body(call)]:
        numbers = ", ".join(map(str, binary))
        warnings.warn(f"{path}: the bodies of these calls are binary and could not be searched: {numbers}", stacklevel=2)


def _has_binary_body(call: ModelCall) -> bool:
    for part in (call.request, call.reply):
        if part.body_kind == "bytes" and isinstance(part.body, str):
            try:
                base64.b64decode(part.body).decode()
            except ValueError:  # no text
                return True
    return False
