"""The reference names what there is: options, ini values, fixtures, markers, commands, errors and Python names."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

import pytest_hermes_env
from pytest_hermes_env import cli, errors
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.errors import HermesEnvError
from pytest_hermes_env.options import FLAGS, INI_VALUES
from pytest_hermes_env.pages.documentation import page_text

from .pages import PAGES, ROOT, blocks_of

(COMMANDS,) = [action for action in cli._parser("")._actions if isinstance(action, argparse._SubParsersAction)]
REFERENCE = ROOT / "docs" / "reference"


def text_of(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def rows_of(name: str) -> dict[str, str]:
    """The rows of a page's tables, by the first name in them."""
    return {row[1]: row[0] for row in re.finditer(r"^\| `([^`]+)`.*\|$", text_of(name), re.MULTILINE)}


def test_every_option_is_on_its_page() -> None:
    """With each of its choices, its default and its second name, and no option that the plugin does not have."""
    rows = {first.partition(" ")[0]: row for first, row in rows_of("options").items() if first.startswith("--")}

    assert rows.keys() == {flag.name for flag in FLAGS}
    for flag in FLAGS:
        default = flag.settings.get("default")
        wanted = [*flag.settings.get("choices", ()), *filter(None, [flag.also])]
        wanted += [f"{default:g}"] if isinstance(default, float) else []
        wanted += [f"{flag.name} {flag.settings['metavar']}"] if "metavar" in flag.settings else []
        assert [word for word in wanted if word not in rows[flag.name]] == []
        if flag.settings.get("choices") and default:
            assert f"Default: `{default}`" in rows[flag.name]


def test_every_ini_value_is_on_the_page() -> None:
    assert {*re.findall(r"`(hermes_\w+)`", text_of("options"))} - {"hermes_live"} == INI_VALUES.keys()


def test_every_fixture_and_marker_is_on_its_page(pytester: pytest.Pytester) -> None:
    """The page has those that pytest lists when the plugin is loaded."""
    fixtures = "\n".join(pytester.runpytest_inprocess("-p", "no:cacheprovider", "--fixtures").outlines)
    markers = "\n".join(pytester.runpytest_inprocess("-p", "no:cacheprovider", "--markers").outlines)
    listed = {*re.findall(r"^(\w+)(?: \[.*\])? -- .*pytest_hermes_env/plugin/", fixtures, re.MULTILINE)}
    listed |= {*re.findall(r"^@pytest\.mark\.(hermes_[^:]+):", markers, re.MULTILINE)}

    assert rows_of("fixtures").keys() == listed


def subclasses(cls: type) -> set[type]:
    return {cls}.union(*map(subclasses, cls.__subclasses__()))


def test_every_error_is_on_its_page() -> None:
    """Each class in `errors` has a row, but those that only group others, which the text names."""
    classes = {cls.__name__ for cls in subclasses(HermesEnvError) if cls.__module__ == errors.__name__}
    groups = {"HermesEnvError", "UsageError", "Leftovers"}

    assert rows_of("errors").keys() == classes - groups
    assert all(f"`{name}`" in text_of("errors") for name in groups)


def test_every_command_is_on_its_page() -> None:
    assert {row.split()[1] for row in rows_of("commands")} == {*COMMANDS.choices}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).with_suffix("").as_posix())
def test_a_page_names_nothing_that_does_not_exist(page: Path) -> None:
    """Options, commands, rules and pages, wherever they are named."""
    text = page.read_text(encoding="utf-8")
    options = {flag.name for flag in FLAGS} | {"--hermes-base-env"}

    assert {*re.findall(r"(?<![\w-])--hermes-[a-z-]*[a-z]", text)} <= options
    assert {*re.findall(r"(?:`|^|\$ )hermes-env ([a-z][\w-]+)", text, re.MULTILINE)} <= {*COMMANDS.choices}
    assert {*re.findall(r"\bHE\d{3}\b", text)} <= {rule.id for rule in ALL_RULES} | {"HE000"}
    assert all(page_text(name) for name in re.findall(r"hermes-env docs ([\w/-]+)", text))


@pytest.mark.parametrize("name", [*COMMANDS.choices])
def test_the_help_of_a_command_names_no_option_that_does_not_exist(name: str) -> None:
    """It is what a user copies first."""
    parser = COMMANDS.choices[name]
    text = "\n".join([str(parser.description), *(str(action.help) for action in parser._actions)])

    assert {*re.findall(r"(?<![\w-])--hermes-[a-z-]*[a-z]", text)} <= {flag.name for flag in FLAGS} | {"--hermes-base-env"}


def test_every_python_name_is_on_its_page() -> None:
    """Each has a directive, by its own name or as the heading."""
    page = text_of("api")
    own = {*re.findall(r"^::: pytest_hermes_env\.(\w+)$", page, re.MULTILINE)}
    headings = {*re.findall(r"heading: (\w+)", page)}

    assert own | headings == {*pytest_hermes_env.__all__}
    assert blocks_of(REFERENCE / "api.md") == []
