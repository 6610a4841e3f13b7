"""``hermes-env new``: writes a small project with an environment that keeps every rule, its cases, tests, a recording, and CI.

The files are in ``project_template``, written for an environment ``MyEnv`` in ``my_env.py``; `create` puts other names in their place.
The recording holds what the installed hermes-agent says of its tools, so `record` makes it where the project is used.
"""

from __future__ import annotations

import importlib.util
import keyword
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pytest_hermes_env.errors import UsageError, shorten

TEMPLATE = Path(__file__).parent / "project_template"
MODULE, CLASS, TITLE = "my_env", "MyEnv", "my-env"
TAKEN = frozenset(
    {
        "acp_adapter",
        "agent",
        "cli",
        "cron",
        "environments",
        "gateway",
        "hermes_cli",
        "plugins",
        "providers",
        "tests",
        "tools",
        "toolsets",
    }
    | {"tui_gateway", "utils", *sys.stdlib_module_names}
)
"""Modules that the environment would hide: of Python, of hermes-agent, and the layer."""


@dataclass(frozen=True, kw_only=True)
class Project:
    """What was written: the directory, the environment's module and class, and the files, relative to the directory."""

    directory: Path
    module: str
    class_name: str
    files: tuple[str, ...]


def create(name: str, directory: Path | None = None) -> Project:
    """Write a project for the environment ``name``, such as ``my_env``, into ``directory`` (default: one of that name).

    Raises: a name that is not a module name or that hides a module, or a directory that is not empty → UsageError.
    """
    _check(name)
    place = Path(name) if directory is None else directory
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UsageError(
            f"{place} is not empty.\n  expected  a directory that is new or empty\n  fix       choose another: --output DIR"
        )
    class_name = _class_name(name)
    names = {MODULE: name, CLASS: class_name, TITLE: name.replace("_", "-")}
    files = {_target(path, names): _with_names(path.read_text(encoding="utf-8"), names) for path in sorted(_templates())}
    for target, text in files.items():
        file = place / target
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Project(directory=place, module=name, class_name=class_name, files=tuple(files))


def record(project: Project) -> str:
    """Record the project's rollouts from the model of its conftest; return how to do it later where it fails, else an empty text."""
    words = ["pytest", "--hermes-record=once", f"tests/test_{project.module}.py::test_recorded_group"]
    done = subprocess.run(
        [sys.executable, "-m", *words, "-p", "no:cacheprovider"],
        cwd=project.directory,
        capture_output=True,
        text=True,
        check=False,
    )
    return f"nothing could be recorded; see {' '.join(words)}" if done.returncode else ""


def _check(name: str) -> None:
    problem = ""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        problem = "it must be a module name: lower-case letters, digits and underscores, such as word_count_env"
    elif name in TAKEN or importlib.util.find_spec(name) is not None:
        problem = "it would hide an installed module of that name, as hermes' own, without which its tools are missing"
    if problem:
        raise UsageError(f"{shorten(repr(name))} cannot name an environment: {problem}.")


def _class_name(name: str) -> str:
    words = "".join(word.capitalize() for word in name.split("_"))
    return words if words.endswith("Env") else f"{words}Env"


def _templates() -> list[Path]:
    return [path for path in TEMPLATE.rglob("*") if path.is_file()]


def _target(path: Path, names: dict[str, str]) -> str:
    """Return where a file of the template is written: packages carry no file whose name begins with a dot."""
    target = path.relative_to(TEMPLATE).as_posix().removesuffix(".txt")
    return _with_names(re.sub(r"(^|/)dot_", r"\1.", target), names)


def _with_names(text: str, names: dict[str, str]) -> str:
    return re.sub("|".join(names), lambda found: names[found[0]], text)
