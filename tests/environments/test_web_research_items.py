"""The questions of WebResearchEnv: data sets, samples, and the split."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from environments.web_research_env.items import hold_out, load_questions, sample_questions

pytestmark = pytest.mark.usefixtures("no_hub")

ROW = {"Prompt": "Which river flows through Vienna?", "Answer": "The Danube", "reasoning_types": "x"}
QUESTION = {"question": ROW["Prompt"], "answer": ROW["Answer"]}


def load(name: str | None, **settings: Any) -> list[Any]:
    return load_questions(name, **({"split": "test", "prompt_field": "Prompt", "answer_field": "Answer"} | settings))


def lines_file(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def test_rows_become_questions(tmp_path, caplog):
    """Once each; rows without question or answer are left out, and counted."""
    rows = [ROW, ROW, {**ROW, "Prompt": " "}, {"Prompt": "How many?", "Answer": 20}, {**ROW, "Prompt": "q", "Answer": None}]
    texts = [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]
    path = lines_file(tmp_path / "rows.jsonl", *texts)

    with caplog.at_level(logging.WARNING, logger="environments"):
        questions = load(path)

    assert questions == [QUESTION, {"question": "How many?", "answer": "20"}]
    assert [record.getMessage() for record in caplog.records] == [
        f"3 of 5 rows of {path} have no question or no answer, or repeat a question; left out"
    ]


def test_samples_are_questions_that_differ():
    """None twice, none empty."""
    assert load(None) == list(sample_questions())
    assert len({sample["question"] for sample in sample_questions()}) == len(sample_questions()) == 24
    assert all(sample["question"].endswith("?") and sample["answer"] for sample in sample_questions())


def numbered(count: int) -> list[Any]:
    return [{"question": str(number), "answer": "x"} for number in range(count)]


@pytest.mark.parametrize(
    ("count", "size", "ratio", "held_out"),
    [(824, 20, 0.1, 82), (100, 20, 0.1, 20), (24, 20, 0.1, 12), (3, 20, 0.1, 1), (2, 1, 0.0, 1), (10, 1, 0.99, 5), (40, 3, 0.0, 3)],
)  # fmt: skip
def test_split_is_disjoint_complete_and_the_same_each_time(count, size, ratio, held_out):
    """eval_size or the share, whichever is more, and never over half."""
    questions = numbered(count)

    train, evaluation = hold_out(questions, eval_size=size, eval_split_ratio=ratio)

    assert len(evaluation) == held_out
    assert sorted(train + evaluation, key=lambda item: int(item["question"])) == questions == numbered(count)
    assert hold_out(questions, eval_size=size, eval_split_ratio=ratio) == (train, evaluation)


@pytest.mark.parametrize("count", [0, 1])
def test_split_needs_two_questions(count):
    """One to train on, one to ask."""
    with pytest.raises(ValueError, match="cannot be split") as raised:
        hold_out(numbered(count), eval_size=1, eval_split_ratio=0.1)

    assert str(raised.value) == f"{count} questions cannot be split into training and evaluation: each requires at least one"
