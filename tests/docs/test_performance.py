"""docs/performance.md is what `python -m benchmarks --markdown` writes: it has a row for each figure of each benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .pages import ROOT


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import __main__

    return __main__


def rows_of(text: str) -> list[list[str]]:
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in cells] for cells in table[1:]]


def test_every_benchmark_is_registered(benchmarks: Any) -> None:
    """Every file of benchmarks/ measures something or is a soak, and every figure says what it means."""
    known = benchmarks.load().values()

    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__main__", "registry"}
    assert files == {each.room for each in known} | {*benchmarks.SOAKS}
    assert [figure for each in known for figure in each.figures if not figure.means.endswith(".")] == []


def test_page_has_a_row_for_each_figure(benchmarks: Any) -> None:
    """In the order of the registry, with the peer's name and the sentence of today."""
    rows = rows_of((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"))

    figures = [figure for each in benchmarks.load().values() for figure in each.figures]
    assert [(row[0], row[2], row[-1]) for row in rows] == [(figure.name, figure.peer, figure.means) for figure in figures]


def test_one_benchmark_writes_both_files(benchmarks: Any, tmp_path: Path) -> None:
    """A row has both numbers and their ratio, and the files say what they were measured on."""
    data, page = tmp_path / "figures.json", tmp_path / "page.md"

    assert benchmarks.main(["cassette_format", "--repeat", "1", "--json", str(data), "--markdown", str(page)]) == 0

    found = json.loads(data.read_text(encoding="utf-8"))
    size = found["rows"][0]
    assert size["ratio"] == pytest.approx(size["ours"] / size["theirs"])
    assert found["machine"]["versions"]["atroposlib"] == "0.4.0"
    assert [row[0] for row in rows_of(page.read_text(encoding="utf-8"))] == [row["figure"] for row in found["rows"]]


def test_a_small_soak_ends_with_its_verdict(tmp_path: Path) -> None:
    """Its sums are those of a large one: it fails where something does not add up."""
    words = [sys.executable, "-m", "benchmarks", "soak", "60", "12", "0.2", "2"]
    ran = subprocess.run(
        words, check=False, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}
    )

    assert (ran.returncode, "every sum adds up" in ran.stdout) == (0, True), ran.stdout + ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_unknown_name_is_refused(benchmarks: Any) -> None:
    with pytest.raises(SystemExit, match=r"there is no benchmark wurld; there are: start, sandboxes, .*replay_soak"):
        benchmarks.main(["wurld"])
