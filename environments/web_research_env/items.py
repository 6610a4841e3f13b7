"""The questions of WebResearchEnv: how to load them from a dataset, and how to hold some out for evaluation."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import yaml

from environments.rollout.data_rows import check_columns, load_items, unique_items

SEED = 20240919
"""The seed of the split: every run, and every concurrent training process, holds out the same questions."""


class Question(TypedDict):
    """A question, and the answer that it is graded by."""

    question: str
    answer: str


@functools.cache
def sample_questions() -> tuple[Question, ...]:
    """Return the questions of ``sample_questions.yaml``."""
    text = Path(__file__).with_name("sample_questions.yaml").read_text(encoding="utf-8")
    return tuple(Question(question=row["question"], answer=row["answer"]) for row in yaml.safe_load(text))


def load_questions(name: str | None, *, split: str, prompt_field: str, answer_field: str) -> list[Question]:
    """Return the questions of a dataset, or the samples; see `data_rows.load_items`."""

    def items_of(rows: Any) -> list[Question]:
        check_columns(name or "", rows.column_names, prompt_field=prompt_field, answer_field=answer_field)

        def text_of(value: object) -> str:
            return "" if value is None else str(value).strip()

        def read(row: Mapping[str, Any]) -> Question:
            return {"question": text_of(row[prompt_field]), "answer": text_of(row[answer_field])}

        return unique_items(rows, read, name=name or "", key="question", needs="answer")

    return load_items(name, split, items_of=items_of, samples=sample_questions())


def hold_out(
    questions: Sequence[Question], *, eval_size: int, eval_split_ratio: float
) -> tuple[list[Question], list[Question]]:
    """Return (training questions, evaluation questions), shuffled with a fixed seed.

    ``eval_size`` questions or that share are held out, whichever is more, at most half. Raises: ValueError for fewer than two.
    """
    if len(questions) < 2:  # noqa: PLR2004
        raise ValueError(f"{len(questions)} questions cannot be split into training and evaluation: each requires at least one")
    shuffled = random.Random(SEED).sample(list(questions), len(questions))  # noqa: S311 - a split, no secret
    size = min(max(eval_size, round(len(questions) * eval_split_ratio), 1), len(questions) // 2)
    return shuffled[size:], shuffled[:size]
