"""The questions of WebResearchEnv: a data set, or samples when it is out of reach; and how some are held out."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from environments.data_rows import load_rows

__all__ = ["SAMPLES", "Question", "hold_out", "load_questions"]

logger = logging.getLogger(__name__)

SEED = 20240919
"""Of the split: every run, and every process that trains beside another, holds out the same questions."""


class Question(TypedDict):
    """A question, and the answer that it is graded by."""

    question: str
    answer: str


SAMPLES: tuple[Question, ...] = tuple(
    Question(question=question, answer=answer)
    for question, answer in (
        ("In which city was the author of the novel that the film Blade Runner is based on born?", "Chicago"),
        ("Which river flows through the capital of the country that Mozart's birthplace belongs to today?", "The Danube"),
        ("How many years after the first crewed Moon landing did the Berlin Wall fall?", "20 years"),
        ("Which chemical element is named after the home country of the woman who discovered radium?", "Polonium"),
        ("Who painted the ceiling of the chapel in which cardinals elect a pope?", "Michelangelo"),
        ("What is the capital of the country whose flag shows a cedar tree?", "Beirut"),
        ("Which ocean lies west of the country in which Machu Picchu stands?", "The Pacific Ocean"),
        ("In which country was the architect of the Sydney Opera House born?", "Denmark"),
        ("Who was president of the United States when the company Apple was founded?", "Gerald Ford"),
        ("What is the highest mountain on the continent that the Nile flows through?", "Kilimanjaro"),
        ("In which language was the novel written whose hero fights windmills?", "Spanish"),
        (
            "Which planet did the spacecraft orbit that is named after the discoverer of the widest gap in Saturn's rings?",
            "Saturn",
        ),
        ("What is the currency of the country that hosted the 1964 Summer Olympics?", "The yen"),
        ("Who wrote the play on which the musical My Fair Lady is based?", "George Bernard Shaw"),
        ("Which sea does the longest river of Europe flow into?", "The Caspian Sea"),
        ("In which century was the university founded at which Isaac Newton studied?", "The 13th century"),
        ("What nationality was the mathematician after whom the Turing Award is named?", "British"),
        (
            "Which team sport was invented by the Canadian-American teacher James Naismith, and in which year?",
            "Basketball, 1891",
        ),
        ("Which strait separates the two continents on which Istanbul lies?", "The Bosporus"),
        ("Who composed the opera in which Figaro marries Susanna?", "Wolfgang Amadeus Mozart"),
        ("What is the atomic number of the element that is named after the physicist of the theory of relativity?", "99"),
        ("Which country is the home of the first woman who climbed Mount Everest?", "Japan"),
        ("Which novel by Mary Shelley has a subtitle that names the Titan who stole fire?", "Frankenstein"),
        (
            "Which city became capital of Brazil after Rio de Janeiro, and who was its main architect?",
            "Brasilia, Oscar Niemeyer",
        ),
    )
)
"""Multi-hop questions that do not go out of date."""


def load_questions(name: str | None, *, split: str, prompt_field: str, answer_field: str) -> list[Question]:
    """Return the questions of a data set, or the samples: without a name, or with a warning when the hub is out of reach.

    Raises: ValueError when the data set is there and cannot be used, or is nowhere.
    """
    if name is None:
        return list(SAMPLES)
    try:
        rows = load_rows(name, split)
    except ConnectionError as error:
        logger.warning(
            "dataset_name %r is out of reach (%s): using the %d sample questions that come with WebResearchEnv. Set dataset_name "
            "to null to choose them, or to a local path.",
            name,
            str(error)[:200],
            len(SAMPLES),
        )
        return list(SAMPLES)
    return questions_of(rows, name=name, columns=list(rows.column_names), prompt_field=prompt_field, answer_field=answer_field)


def questions_of(
    rows: Iterable[Mapping[str, Any]], *, name: str, columns: Sequence[str], prompt_field: str, answer_field: str
) -> list[Question]:
    """Return one question per row; a question that comes again, and a row without question or answer, is left out.

    Raises: ValueError when a column is missing or no row is left.
    """
    for setting, field in (("prompt_field", prompt_field), ("answer_field", answer_field)):
        if field not in columns:
            raise ValueError(f"dataset_name {name!r} has no column {field!r} ({setting}). Its columns: {sorted(columns)}")
    found: dict[str, Question] = {}
    count = 0
    for row in rows:
        count += 1
        question, answer = (str("" if row[field] is None else row[field]).strip() for field in (prompt_field, answer_field))
        if question and answer:
            found.setdefault(question, {"question": question, "answer": answer})
    if not found:
        raise ValueError(f"dataset_name {name!r} has {count} rows, and none with both {prompt_field!r} and {answer_field!r}")
    if len(found) < count:
        logger.warning(
            "%d of %d rows of %s have no question or no answer, or repeat one; left out", count - len(found), count, name
        )
    return list(found.values())


def hold_out(
    questions: Sequence[Question], *, eval_size: int, eval_split_ratio: float
) -> tuple[list[Question], list[Question]]:
    """Return (training questions, evaluation questions), shuffled alike in every run.

    Held out are ``eval_size`` or that share, whichever is more, but never over half. Raises: ValueError for fewer than two.
    """
    if len(questions) < 2:  # noqa: PLR2004
        raise ValueError(f"{len(questions)} questions cannot be split into training and evaluation: both need one at least")
    shuffled = random.Random(SEED).sample(list(questions), len(questions))  # noqa: S311 - a split, no secret
    size = min(max(eval_size, round(len(questions) * eval_split_ratio), 1), len(questions) // 2)
    return shuffled[size:], shuffled[:size]
