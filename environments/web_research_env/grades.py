"""What one rollout of WebResearchEnv was worth, part by part, and the metrics of many.

Place in the flow: ``compute_reward`` returns a float, so the parts take another way. Whoever runs a rollout opens
`collecting_grades` around it, and ``compute_reward`` hands its `Grade` in; nothing of it is kept on the environment, so that an
evaluation and the training beside it never mix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

__all__ = ["DIVERSE", "Grade", "collecting_grades", "hand_in", "parts_of"]

DIVERSE = 2
"""Domains from which on sources are called diverse."""
CORRECT = 0.8
"""Correctness from which on an answer is called correct."""


@dataclass(frozen=True, kw_only=True)
class Grade:
    """What one rollout's reward is made of."""

    reward: float
    correctness: float
    judged_by: str
    """``judge``, ``keywords`` when the judge gave no score, or ``nobody`` when there was no answer."""
    used_web: bool
    tool_calls: int
    efficiency: float
    domains: tuple[str, ...]


_grades: ContextVar[list[Grade] | None] = ContextVar("web_research_grades", default=None)
"""Where the rollout of the current task wants its grade."""


def hand_in(grade: Grade) -> None:
    """Give the grade of the current rollout to whoever collects it."""
    if (grades := _grades.get()) is not None:
        grades.append(grade)


@contextmanager
def collecting_grades() -> Iterator[list[Grade]]:
    """Give the list that gets the grades of the rollouts in this task: a rollout's own, however many run beside it."""
    grades: list[Grade] = []
    token = _grades.set(grades)
    try:
        yield grades
    finally:
        _grades.reset(token)


def parts_of(grades: Sequence[Mapping[str, Any]], *, count: int, prefix: str) -> dict[str, float]:
    """Return the metrics of the parts of ``count`` rewards. ``grades`` hold the fields of `Grade`; a missing part counts as 0."""
    return {
        f"{prefix}/mean_correctness": sum(grade.get("correctness", 0.0) for grade in grades) / count,
        f"{prefix}/correct_rate": sum(grade.get("correctness", 0.0) >= CORRECT for grade in grades) / count,
        f"{prefix}/web_use_rate": sum(grade.get("used_web", False) for grade in grades) / count,
        f"{prefix}/mean_efficiency": sum(grade.get("efficiency", 0.0) for grade in grades) / count,
        f"{prefix}/mean_tool_calls": sum(grade.get("tool_calls", 0) for grade in grades) / count,
        f"{prefix}/diversity_rate": sum(len(grade.get("domains", ())) >= DIVERSE for grade in grades) / count,
        f"{prefix}/judge_fallbacks": sum(grade.get("judged_by") == "keywords" for grade in grades),
    }
