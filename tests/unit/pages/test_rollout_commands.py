"""What ``hermes-env view`` and ``export`` refuse before they write anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_hermes_env.cli import main

GROUP = '{"scores": [1.0], "messages": [[{"role": "user", "content": "x"}]]}\n'


def two_names(directory: Path) -> list[str]:
    return [str(path) for name in ("a.jsonl", "a.json") if (path := directory / name).write_text(GROUP)]


def a_page_of_the_user(directory: Path) -> list[str]:
    (directory / "a.html").write_text("<h1>Mine</h1>")
    (directory / "a.jsonl").write_text(GROUP)
    return [str(directory / "a.jsonl")]


def a_directory_for_a_page(directory: Path) -> list[str]:
    (directory / "a.html").mkdir()
    (directory / "a.jsonl").write_text(GROUP)
    return [str(directory / "a.jsonl")]


def a_page_beside_its_rollouts(directory: Path) -> list[str]:
    (directory / "a.html").write_text("<h1>Rollouts</h1>")
    (directory / "a.jsonl").write_text(GROUP)
    return [str(directory / "a.html")]


def no_file(directory: Path) -> list[str]:
    return [str(directory / "nope.jsonl")]


def another_format(directory: Path) -> list[str]:
    (directory / "a.yaml").write_text("scores: [1]\n")
    return [str(directory / "a.yaml")]


def nothing(directory: Path) -> list[str]:
    (directory / "a.jsonl").write_text("")
    return [str(directory / "a.jsonl")]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (two_names, "would both be written to"),
        (a_page_of_the_user, "exists, and is not a page of rollouts: move it"),
        (a_directory_for_a_page, "exists, and is not a page of rollouts: move it"),
        (a_page_beside_its_rollouts, "a.jsonl, which lies beside it"),
        (lambda directory: ["."], ". is not a file of rollouts"),
        (no_file, "nope.jsonl\n"),
        (another_format, "seen      line 1: this line is not JSON\n  fix       name a file that"),
        (nothing, "seen      an empty file"),
    ],
)
def test_what_is_no_file_of_rollouts_is_refused(
    given: Callable[[Path], list[str]], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, the reason, and no page."""
    files = given(tmp_path)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}

    assert main(["view", *files]) == 2
    assert told in capsys.readouterr().err
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_page_is_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Over the one of last time."""
    file = tmp_path / "a.jsonl"
    file.write_text(GROUP)

    assert [main(["view", str(file)]), main(["view", str(file)])] == [0, 0]
    assert capsys.readouterr().out == f"wrote {tmp_path / 'a.html'}\n" * 2
