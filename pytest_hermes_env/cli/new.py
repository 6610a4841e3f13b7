"""``hermes-env new``: write a small project."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Add the command to the parser."""
    new = commands.add_parser(
        "new",
        help="write a small project: an environment, its cases, tests, a recording and CI",
        description="Write a small project with an environment that keeps every rule. Its tests pass at once; replace its items, "
        "its prompt and its reward by yours.",
    )
    new.add_argument("name", metavar="NAME", help="module of the environment: my_env; the class is then MyEnv")
    new.add_argument("--output", metavar="DIR", default="", help="a new or empty directory (default: NAME)")
    new.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the project."""
    from pathlib import Path  # noqa: PLC0415

    from pytest_hermes_env.new_project import create  # noqa: PLC0415

    project = create(options.name, Path(options.output) if options.output else None)
    print(
        f"wrote {len(project.files)} files to {project.directory}/: {project.class_name} in {project.module}.py, its cases, tests and CI"
    )
    print(f"next: cd {project.directory} && pytest, then put your items, prompt and reward into {project.module}.py")
    return 0
