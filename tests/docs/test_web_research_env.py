"""The examples and the table of settings in docs/reference/web-research-env.md are correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from environments.web_research_env import WebResearchEnvConfig

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "web-research-env.md").read_text(encoding="utf-8")
SETTING = re.compile(r"^\| (`[a-z_`, ]+`) \| ([^|]+) \|", re.MULTILINE)


def test_the_examples_pass(pytester: pytest.Pytester) -> None:
    """Each block of code is a file of passing tests."""
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    files = [pytester.makepyfile(**{f"test_{number}": example}) for number, example in enumerate(examples)]

    result = pytester.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider", *files)

    result.assert_outcomes(passed=1)


def test_the_table_has_every_own_setting_with_its_default() -> None:
    """This includes inherited settings with a different default."""
    rows = [
        (name, value)
        for names, values in SETTING.findall(PAGE)
        for name, value in zip(re.findall(r"\w+", names), values.strip().replace("`", "").split(", "), strict=True)
    ]

    fields = WebResearchEnvConfig.model_fields
    assert {name: str(fields[name].default) for name in WebResearchEnvConfig.__annotations__} == {
        name: f"{value}.0" if name == "judge_timeout" else value for name, value in rows
    }
