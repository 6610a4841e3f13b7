"""A folder of unknown code: whatever lies there ends in a finding or in nothing, never in a crash or a wait."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from pytest_hermes_env.cli import main
from pytest_hermes_env.contract.check import RULE_RAISED, check_paths
from pytest_hermes_env.contract.judge.verdict import Outcome

TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial" / "word_count_env.py"
GOOD = TUTORIAL.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"class (:\n", "the file does not parse: "),
        (b's = "caf\xe9"\n', "the file does not parse: "),
        (b"x = 1\0\n", "the file does not parse: "),
        (b"# -*- coding: nonsense -*-\n", "the file does not parse: "),
        (b"%matplotlib inline\n", "the file does not parse: "),
        (b"x = " + b"(" * 5000, "the file does not parse: "),
        (None, "the file cannot be read: it is not a regular file"),
    ],
    ids=["syntax", "undecodable", "nul", "cookie", "notebook", "deep", "pipe"],
)
def test_a_file_that_cannot_be_judged_is_a_finding(tmp_path, content, message):
    """One problem, at the file, under HE111."""
    file = tmp_path / "odd.py"
    if content is None:
        os.mkfifo(file)
    else:
        file.write_bytes(content)

    report = check_paths([str(tmp_path)])

    assert [(item.id, item.message[: len(message)]) for item in report.problems] == [("HE111", message)]


def test_a_name_that_is_no_text_is_printed_all_the_same(tmp_path, capsysbinary):
    """Its bytes are escaped."""
    with open(os.path.join(os.fsencode(tmp_path), b"odd\xff.py"), "wb") as file:
        file.write(GOOD.encode())

    assert main(["check", str(tmp_path), "--format", "json", "--output", str(tmp_path / "r.json")]) == 1
    assert "odd\\\\udcff.py" in (tmp_path / "r.json").read_text(encoding="utf-8").replace("\\udcff", "\\\\udcff")


@pytest.mark.parametrize("seed", range(40))
def test_lines_may_be_missing_or_swapped(tmp_path, seed):
    """No rule stumbles over a file in which lines were deleted and swapped."""
    chance = random.Random(seed)
    lines = GOOD.splitlines(keepends=True)
    for _ in range(chance.randint(1, 4)):
        first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
        if chance.random() < 0.5:
            del lines[first]
        else:
            lines[first], lines[second] = lines[second], lines[first]
    (tmp_path / "env.py").write_text("".join(lines), encoding="utf-8")

    report = check_paths([str(tmp_path)], allows_none=True)

    notes = [entry.note for ledger in report.ledgers for entry in ledger.entries if entry.outcome is Outcome.UNDECIDED]
    assert [note for note in notes if note.startswith(RULE_RAISED)] == []
