"""The same work by another way is the same work."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_hermes_env.inference.steps import call
from pytest_hermes_env.play.cases.slots import arguments_of
from pytest_hermes_env.play.cases.ways import _by_other_means, with_lists


@pytest.mark.parametrize("path", ["notes.txt", "a/new folder/notes.txt"])
def test_a_file_that_the_terminal_writes_is_the_one_of_the_tool(tmp_path: Path, path: str) -> None:
    """Also in a directory that only the tool makes."""
    step = _by_other_means(call("write_file", path=path, content="it's\n$HOME\n"), ("terminal", "write_file"))

    subprocess.run(["bash", "-c", arguments_of(step)["command"]], cwd=tmp_path, check=True)

    assert Path(tmp_path, path).read_text(encoding="utf-8") == "it's\n$HOME\n"


def test_ranges_of_cron_are_lists_of_numbers() -> None:
    """In five fields alone; with steps, and in other texts, they stay."""
    assert with_lists("30 7 1-3 * 1-5\n") == "30 7 1,2,3 * 1,2,3,4,5\n"
    assert with_lists("*/15 8-17/3 * * 0 run 1-5") == "*/15 8-17/3 * * 0 run 1-5"
    assert with_lists("from 1-5 and no more of it") == "from 1-5 and no more of it"
