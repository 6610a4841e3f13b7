"""``hermes-env docs``: the pages of the documentation, which come with the package, in the terminal."""

from __future__ import annotations

import difflib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

from pytest_hermes_env.errors import UsageError, shorten

DIRECTIVE = re.compile(r"^::: (\S+)$(?:\n    options: \{heading: (\w+)\}$)?", re.MULTILINE)
"""A line that stands for the documentation of a name; mkdocstrings fills it in on the site."""


def page_names() -> list[str]:
    """Return the names of all pages, such as ``how-to/live`` and ``rules/HE702``."""
    folder = _folder()
    return sorted(page.relative_to(folder).with_suffix("").as_posix().removesuffix("/index") for page in folder.rglob("*.md"))


def page_text(name: str) -> str:
    """Return a page as Markdown. ``name`` may be its last part, or a path as in the links of other pages.

    Raises: no page, or several pages, of that name → UsageError.
    """
    wanted = name.partition("#")[0].removesuffix(".md").removesuffix("/index").lower()
    wanted = re.sub(r"^(\.\./|docs/)+", "", wanted)
    names = page_names()
    found = [page for page in names if page.lower() == wanted] or [
        page for page in names if page.lower().endswith(f"/{wanted}")
    ]
    if len(found) != 1:
        last_parts = {page.rpartition("/")[2]: page for page in names}
        near = found or [last_parts[part] for part in difflib.get_close_matches(wanted, last_parts, cutoff=0.6)]
        raise UsageError(
            f"{len(found) or 'no'} pages are called {shorten(repr(name))}.\n"
            f"  fix       {' or '.join(f'hermes-env docs {page}' for page in near) or 'run `hermes-env docs`, which lists all pages'}"
        )
    file = _folder() / found[0]
    return DIRECTIVE.sub(
        _described, (file / "index.md" if file.is_dir() else file.with_suffix(".md")).read_text(encoding="utf-8")
    )


def print_page(name: str) -> None:
    """Print a page: set for a terminal, or as Markdown into a pipe."""
    text = page_text(name)
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    from rich.console import Console  # noqa: PLC0415  # only here
    from rich.markdown import Markdown  # noqa: PLC0415

    Console().print(Markdown(text, code_theme="ansi_dark", hyperlinks=False))


def _folder() -> Path:
    """Return the pages of the installed package, or of the checkout."""
    package = Path(__file__).parents[1]
    return next(place for place in (package / "docs", package.parent / "docs") if place.is_dir())


def _described(directive: re.Match[str]) -> str:
    """Return what ``help()`` would say about a name, in short."""
    name = directive[2] or directive[1].removeprefix("pytest_hermes_env.")
    value = pkgutil.resolve_name(directive[1])
    lines = [f"### `{name}{_signature(value)}`", "", inspect.getdoc(value) or ""]
    if inspect.isclass(value):
        methods = inspect.getmembers(value, inspect.isfunction)
        lines += ["", *(_method(each, method) for each, method in methods if not each.startswith("_"))]
    return "\n".join(lines)


def _method(name: str, method: object) -> str:
    return f"- `{name}{_signature(method)}`: {(inspect.getdoc(method) or '').partition(chr(10))[0]}"


def _signature(value: object) -> str:
    text = str(inspect.signature(value)) if inspect.isroutine(value) or inspect.isclass(value) else ""
    return re.sub(r"""(: |-> )(['"])(.*?)\2(?=[,)]| =|$)""", r"\1\3", text)  # annotations are texts here
