"""What a recorder calls at the end: redact, look again, and only then put the cassette in place."""

from __future__ import annotations

from pathlib import Path

from pytest_hermes_env.atomic_files import replace_file
from pytest_hermes_env.cassette.format import text_of
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.scan import leak_lines, scan_file
from pytest_hermes_env.cassette.tape import Tape
from pytest_hermes_env.errors import BadCassette

__all__ = ["keep_tape"]


def keep_tape(path: Path, tape: Tape, redactor: Redactor) -> Tape:
    """Put a recording into a file without its secrets, and return what is kept.

    Nothing is written before it has been searched: not even a temporary file holds a secret.

    Raises:
        BadCassette: a secret was found in what was to be written, or the file cannot be written.
    """
    kept = redactor.tape(tape)
    data = text_of(kept).encode()
    leaks = scan_file(data, redactor.known)
    if leaks:
        raise BadCassette(
            f"{path}: this cassette was not written, because it would hold what looks like a secret.\n"
            + "".join(f"  seen      {line}\n" for line in leak_lines(leaks))
            + "  fix       keep it out of the rollout, or name it: add its shape to the patterns of the redaction,\n"
            "            or its value to what is known to be secret"
        )
    replace_file(path, data)
    return kept
