"""A short test, ready to paste, that shows the finding of a rollout alone: it asks one rule, which plays only what it reads."""

from __future__ import annotations

from pathlib import Path

from pytest_hermes_env.play.class_record import ClassRecord


def reproduction_of(rule_id: str, cls: ClassRecord, server_type: str = "openai") -> str:
    """Return a test of one rule on a class; nothing for a class that has no name to import."""
    if "<locals>" in cls.name:
        return ""
    mode = "" if server_type == "openai" else f', server_type="{server_type}"'
    return "\n".join(
        [
            "from pytest_hermes_env import check_rule",
            "",
            f"from {_module_of(cls)} import {cls.name.partition('.')[0]}",
            "",
            "",
            f"def test_{rule_id.lower()}():",
            f'    check_rule({cls.name}, "{rule_id}"{mode})',
            "",
        ]
    )


def _module_of(cls: ClassRecord) -> str:
    """Return the name to import: that of the file where a second file of the same name was loaded under another one."""
    stem = Path(cls.place.path).stem
    return stem if stem and cls.module.startswith(f"{stem}_") else cls.module
