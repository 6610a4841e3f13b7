"""[tool.hermes-env] of pyproject.toml: what it may say, and what is told when it says something else."""

from __future__ import annotations

import datetime as dt

import pytest

from pytest_hermes_env.contract.ledger.settings import PathWaiver, Settings, settings_for
from pytest_hermes_env.errors import BadSettings


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in a directory of its own."""
    monkeypatch.chdir(tmp_path)


def write(tmp_path, text):
    """Write a pyproject.toml and return its path."""
    path = tmp_path / "pyproject.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_nearest_table_above_a_file_holds(tmp_path):
    """A pyproject.toml without our table does not end the search."""
    file = write(
        tmp_path,
        """
[tool.hermes-env]
select = ["HE3", "HE7"]
ignore = "HE702"
strict = true

[[tool.hermes-env.waivers]]
paths = ["legacy/**"]
rules = ["he301"]
reason = " own constants "
expires = 2031-01-02
""",
    )
    (tmp_path / "inner").mkdir()
    write(tmp_path / "inner", "[tool.other]\n")

    assert settings_for(str(tmp_path / "inner" / "env.py")) == Settings(
        file=file,
        select=("HE3", "HE7"),
        ignore=("HE702",),
        strict=True,
        waivers=(
            PathWaiver(
                paths=("legacy/**",),
                rules=("HE301",),
                reason="own constants",
                expires=dt.date(2031, 1, 2),
                file=file,
                line=7,
            ),
        ),
    )


def test_without_a_table_nothing_is_set(tmp_path):
    """A project that says nothing gets the defaults."""
    write(tmp_path, "[project]\nname = 'hermes-env'\n")

    assert settings_for(str(tmp_path)) == Settings()


WAIVER = '[[tool.hermes-env.waivers]]\npaths = "env.py"\nrules = ["HE301"]\nreason = "why"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hermes-env = [", "pyproject.toml is not TOML: Invalid value (at end of document)"),
        ("tool.hermes-env = 3", "pyproject.toml:1: [tool.hermes-env] must be a table, not a number (3)"),
        (
            "[tool.hermes-env]\nselct = []",
            "pyproject.toml:2: [tool.hermes-env] has no key 'selct'. Nearest: select. "
            "Its keys are: select, ignore, strict, waivers.",
        ),
        ("[tool.hermes-env]\nselect = 3", "pyproject.toml:2: select must be a list of strings, not a number (3)"),
        (
            "[tool.hermes-env]\nselect = ['XY1']",
            "pyproject.toml:2: select names 'XY1': no rule has this name or an id that begins so.",
        ),
        ("[tool.hermes-env]\nstrict = 'yes'", "pyproject.toml:2: strict must be true or false, not a string ('yes')"),
        (
            "[tool.hermes-env]\nwaivers = 'none'",
            "pyproject.toml:2: waivers must be tables: write [[tool.hermes-env.waivers]] with paths, rules, reason, expires",
        ),
        (
            WAIVER + "until = 2031-01-01",
            "pyproject.toml:1: [[tool.hermes-env.waivers]] has no key 'until'. Its keys are: paths, rules, reason, expires.",
        ),
        (
            WAIVER.replace("HE301", "XX301"),
            "pyproject.toml:1: a waiver must name rules: there is no rule 'XX301'. `hermes-env rules` lists all",
        ),
        (WAIVER.replace("why", " "), "pyproject.toml:1: a waiver of HE301 has no reason: write why the violation is accepted"),
        (
            WAIVER + WAIVER.replace('"env.py"', "[]"),
            'pyproject.toml:5: a waiver needs paths, for example paths = ["legacy/**"]',
        ),
        (
            WAIVER + "expires = 'soon'",
            "pyproject.toml:1: expires must be a date such as 2026-12-31, not 'soon'",
        ),
        (WAIVER + "expires = 3", "pyproject.toml:1: expires must be a date such as 2026-12-31, not a number (3)"),
    ],
)
def test_what_it_cannot_mean_is_told_with_its_line(tmp_path, text, message):
    """Wrong types, unknown keys and unknown rules name the place and what was expected."""
    write(tmp_path, text)

    with pytest.raises(BadSettings) as error:
        settings_for(str(tmp_path))

    assert str(error.value).startswith(message)
