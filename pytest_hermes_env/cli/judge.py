"""``hermes-env judge``: judge the evidence of a contract run again, without playing."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from pytest_hermes_env.errors import UsageError


def add(commands: Any) -> None:
    """Add the command to the parser."""
    judge = commands.add_parser(
        "judge",
        help="judge what a contract run kept, without playing",
        description="Judge the evidence that pytest --hermes-env TARGET --hermes-evidence FILE kept. Nothing is played, and nothing of the "
        "environment is imported. Other flags go to pytest: --hermes-rules HE4, --hermes-report-json FILE, --hermes-strict, -v.",
    )
    judge.add_argument("file", metavar="FILE", help="the evidence file")
    judge.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run pytest on the file; return its exit code. Raises: no such file → UsageError."""
    import subprocess  # noqa: PLC0415

    if not os.path.isfile(options.file):
        raise UsageError(
            f"there is no file {options.file}: pytest --hermes-env TARGET --hermes-evidence {options.file} writes it"
        )
    flags = ["-q", "--no-header", "-p", "no:cacheprovider", "--hermes-judge", options.file, *options.rest]
    return subprocess.call([sys.executable, "-m", "pytest", *flags])
