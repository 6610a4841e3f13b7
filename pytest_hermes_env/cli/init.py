"""``hermes-env init``: write a file of cases for an environment."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Add the command to the parser."""
    init = commands.add_parser(
        "init",
        help="write a file of cases for an environment, with its items in it",
        description="Write a file of cases next to an environment: transcripts with known rewards that the contract plays. "
        "The environment is imported and set up offline on a mock model, and its first items are written to the file.",
    )
    init.add_argument("target", metavar="TARGET", help="path/to/env.py, path/to/env.py:Class or package.module:Class")
    init.add_argument(
        "--output", metavar="FILE", default="", help="the file to write (default: MODULE.contract.yaml next to it)"
    )
    init.add_argument("--force", action="store_true", help="overwrite an existing file")
    init.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the file, with the first items of the environment."""
    from pytest_hermes_env.contract.init_file import start  # noqa: PLC0415

    done = start(options.target, output=options.output, is_forced=options.force)
    items = f"{done.items} item{'' if done.items == 1 else 's'}" if done.items else "a place for an item"
    print(f"wrote {done.file}: {items} of {done.class_name}")
    print(f"next: fill in gold, then pytest --hermes-env {options.target}")
    return 0
