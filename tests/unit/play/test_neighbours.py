"""The same work by another way is the same work."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_hermes_env.inference.steps import call
from pytest_hermes_env.play.cases.cron import more_times, same_times
from pytest_hermes_env.play.cases.slots import arguments_of
from pytest_hermes_env.play.cases.ways import _by_other_means, as_exact_as_asked


@pytest.mark.parametrize("path", ["notes.txt", "a/new folder/notes.txt"])
def test_a_file_that_the_terminal_writes_is_the_one_of_the_tool(tmp_path: Path, path: str) -> None:
    """Also in a directory that only the tool makes."""
    step = _by_other_means(call("write_file", path=path, content="it's\n$HOME\n"), ("terminal", "write_file"))

    subprocess.run(["bash", "-c", arguments_of(step)["command"]], cwd=tmp_path, check=True)

    assert Path(tmp_path, path).read_text(encoding="utf-8") == "it's\n$HOME\n"


def test_ranges_of_cron_are_lists_of_numbers() -> None:
    """In five fields alone; with steps, and in other texts, they stay."""
    assert dict(same_times("30 7 1-3 * 1-5\n"))["with ranges as lists"] == "30 7 1,2,3 * 1,2,3,4,5\n"
    assert dict(same_times("*/15 8-17/3 * * 0 run 1-5"))["with ranges as lists"] == "*/15 8-17/3 * * 0 run 1-5"
    assert dict(same_times("from 1-5 and no more of it"))["with ranges as lists"] == "from 1-5 and no more of it"


def test_cron_runs_more_often_with_a_star() -> None:
    """In each field that has none, and in all; other lines stay as they are."""
    assert [*more_times("30 7 * * 1-5 /opt/run\n")] == [
        ("at any time", "* * * * * /opt/run\n"),
        ("at any minute", "* 7 * * 1-5 /opt/run\n"),
        ("at any hour", "30 * * * 1-5 /opt/run\n"),
        ("at any weekday", "30 7 * * * /opt/run\n"),
    ]
    assert [*more_times("from 1-5 and no more of it")] == [] == [*more_times("* * * * *\n")]
    for same in ("*/1 * * * *", "0-59 0-23 * * *", "* * 1-31 1-12 0-6", "* * * jan-dec sun-sat", "* * * * 1-7"):
        assert [*more_times(same)] == []
    assert "at any weekday" in dict(more_times("0 9 * * MON-FRI run\n"))
    assert not {"at any day", "at any weekday"} & {*dict(more_times("0 9 1,15 * 1 run\n"))}  # either is enough for cron
    old, new = "0 5 * * * old\n", "0 2 * * * new\n"
    assert dict(more_times(old + new, old))["at any time"] == f"{old}* * * * * new\n"


@pytest.mark.parametrize(
    ("text", "prompt", "expected"),
    [
        ("Answer: 12.3456 g", "Give at least three significant figures.", "Answer: 12.3 g"),
        ("0.00123456 kg, 1234.567 g", "3 significant digits", "0.00123 kg, 1235 g"),
        ('{"a": -0.126, "b": "1.2.3456", "c": 2.51738}', "rounded to 2 decimals", '{"a": -0.13, "b": "1.2.3456", "c": 2.52}'),
        ("3.14159. And 0.12345.", "to three decimal places", "3.142. And 0.123."),
        ('{"total": 12.50, "rate": 0.33333333}', "The total has two decimals.", '{"total": 12.50, "rate": 0.33333333}'),
        ("3.14159", "One to 3 decimals, the other to 4 decimals", "3.14159"),
        ("3.14159 m", "Take 3.14159 m, and round what you compute to two decimals", "3.14159 m"),
    ],
)
def test_numbers_are_as_exact_as_a_prompt_asks(text: str, prompt: str, expected: str) -> None:
    """Those that the prompt gives stay; where it asks for two things, nobody knows which is which."""
    assert as_exact_as_asked(text, prompt) == expected
