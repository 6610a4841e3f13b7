"""`hermes-env docs` prints the pages that come with the package, and messages name pages that exist."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

import environments.hermes_base_env
import pytest_hermes_env
from pytest_hermes_env.cli import main
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.pages.documentation import page_names, page_text

PACKAGES = (Path(pytest_hermes_env.__file__).parent, Path(environments.hermes_base_env.__file__).parent)
PAGES = Path(__file__).parents[3] / "docs"
NAMED = re.compile(r"hermes-env docs ([\w/-]+)")


def texts(file: Path) -> list[str]:
    """The texts of a source file that a user may see: strings that are no docstrings; other files as a whole."""
    source = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        return [source]
    tree = ast.parse(source)
    with_docs = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, with_docs) and isinstance(node.body[0], ast.Expr)
    }
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node.value for node in constants if id(node) not in docs]


@functools.cache
def shown() -> list[tuple[str, str]]:
    """Every text of the packages that a user may see, with the name of its file."""
    return [
        (file.name, text)
        for package in PACKAGES
        for pattern in ("**/*.py", "**/*.jinja", "project_template/**/*")
        for file in sorted(package.glob(pattern))
        if file.is_file() and "__pycache__" not in file.parts
        for text in texts(file)
    ]


def test_every_page_comes_with_the_package():
    """The pages of the checkout are those that are installed; a new one at the top, or a new folder, is added to the wheel."""
    wanted = {page.relative_to(PAGES).with_suffix("").as_posix().removesuffix("/index") for page in PAGES.rglob("*.md")}
    settings = tomllib.loads((PAGES.parent / "pyproject.toml").read_text(encoding="utf-8"))
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]

    assert set(page_names()) == wanted
    assert {f"docs/{page.relative_to(PAGES).parts[0]}" for page in PAGES.rglob("*.md")} == included.keys()
    assert included == {source: f"pytest_hermes_env/{source}" for source in included}


def test_messages_name_pages_that_a_user_has():
    """A user of the wheel has no docs/ folder: a message names a command, and the page of that command exists."""
    named = {name for _, text in shown() for name in NAMED.findall(text)}

    assert {"local-sandbox", "mock-model", "waive", "cases", "reports"} <= named
    assert all(page_text(name) for name in named)
    assert [(name, text) for name, text in shown() if re.search(r"docs/[\w/-]+\.md", text) and "python -m" not in text] == []


@pytest.mark.parametrize(
    "name", ["how-to/live", "live", "docs/how-to/live.md", "../how-to/live.md", "live.md#without-a-key", "LIVE"], ids=str
)
def test_a_page_is_found_by_any_of_its_names(name):
    assert page_text(name) == (PAGES / "how-to" / "live.md").read_text(encoding="utf-8")


def test_a_rule_and_the_list_of_rules_are_pages(capsys):
    assert main(["docs", "he702"]) == 0
    assert capsys.readouterr().out == (PAGES / "rules" / "HE702.md").read_text(encoding="utf-8")
    assert page_text("rules") == (PAGES / "rules" / "index.md").read_text(encoding="utf-8")


def test_the_first_page_lists_the_others(capsys):
    """Each page is linked from the index, but the single rules, which theirs links."""
    assert main(["docs"]) == 0
    linked = re.findall(r"\]\(([\w/-]+)\.md", capsys.readouterr().out)

    assert {name.removesuffix("/index") for name in linked} == {
        name for name in page_names() if not name.startswith("rules/") and name != "README"
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lief", "no pages are called 'lief'.\n  fix       hermes-env docs how-to/live"),
        ("xyzzy", "no pages are called 'xyzzy'.\n  fix       run `hermes-env docs`, which lists all pages"),
        ("", "no pages are called ''.\n  fix       run `hermes-env docs`, which lists all pages"),
        (
            "faults",
            "2 pages are called 'faults'.\n  fix       hermes-env docs how-to/faults or hermes-env docs reference/faults",
        ),
    ],
)
def test_another_name_is_a_usage_error(name, message):
    with pytest.raises(UsageError) as caught:
        page_text(name)

    assert str(caught.value) == message


def test_the_reference_shows_docstrings(capsys):
    """Where the site has them filled in, the terminal has signatures, docstrings and methods."""
    assert main(["docs", "api"]) == 0
    text = capsys.readouterr().out

    assert ":::" not in text
    assert "### `say(text: str) -> None`\n\nThe step that answers with ``text``.\n" in text
    assert "### `agent_result()`\n" in text
    assert "- `verify(self) -> None`: Check that a script covered every request and that every turn was requested.\n" in text


def test_on_a_terminal_the_page_is_set(monkeypatch, capsys):
    """Headings and code are set by rich, without Markdown's marks."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    assert main(["docs", "words"]) == 0
    assert "# Words" not in (text := capsys.readouterr().out)
    assert "Words" in text
