"""``hermes-env watch``: play and judge an environment again on each save."""

from __future__ import annotations

import argparse
import functools
from typing import Any


def add(commands: Any) -> None:
    """Add the command to the parser."""
    watch = commands.add_parser(
        "watch",
        help="play and judge an environment again on each save",
        description="Play and judge an environment now and after each change of a file in its directory, until Ctrl-C. A process that "
        "has loaded atroposlib and hermes is kept. Other flags go to pytest: --hermes-rules HE4, -x, -v.",
    )
    watch.add_argument(
        "targets", nargs="+", metavar="TARGET", help="path/to/env.py, path/to/env.py:Class or package.module:Class"
    )
    watch.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Watch until Ctrl-C."""
    from pytest_hermes_env.contract.run.watch import watch  # noqa: PLC0415  # it loads pytest

    return watch(options.targets, options.rest, functools.partial(print, flush=True))
