"""``hermes-env cassettes``: list recordings."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Add the command to the parser."""
    cassettes = commands.add_parser(
        "cassettes",
        help="list recordings: age, size, later changes, and which are unused",
        description="List cassettes. Tests and environments are searched below the current directory; nothing is imported.",
    )
    cassettes.add_argument("directories", nargs="*", metavar="DIR", help="directories to search (default: cassettes)")
    cassettes.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")
    cassettes.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List the recordings; return 1 where one needs a look."""
    import json  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from pytest_hermes_env.cassette.inventory import (  # noqa: PLC0415
        DEFAULT_DIRECTORY,
        inventory_lines,
        inventory_of,
        inventory_values,
    )

    inventory = inventory_of(options.directories or [DEFAULT_DIRECTORY], Path.cwd())
    if options.format == "json":
        print(json.dumps(inventory_values(inventory), indent=2))
    else:
        print("\n".join(inventory_lines(inventory)))
    return 1 if inventory.has_findings else 0
