"""The table of settings in docs/reference/web-research-env.md is correct."""

from __future__ import annotations

import re
from pathlib import Path

from environments.web_research_env import WebResearchEnvConfig

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "web-research-env.md").read_text(encoding="utf-8")
SETTING = re.compile(r"^\| (`[a-z_`, ]+`) \| ([^|]+) \|", re.MULTILINE)


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
