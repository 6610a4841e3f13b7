"""``hermes-env docs``: print a page of the documentation."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Add the command to the parser."""
    docs = commands.add_parser(
        "docs",
        help="print a page of the documentation",
        description="Print a page of the documentation, which comes with the package: in a pipe as Markdown.",
    )
    docs.add_argument(
        "page", nargs="?", default="README", metavar="PAGE", help="live, how-to/faults, HE702 (default: the index)"
    )
    docs.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the page. Raises: no such page → UsageError."""
    from pytest_hermes_env.pages.documentation import print_page  # noqa: PLC0415

    print_page(options.page)
    return 0
