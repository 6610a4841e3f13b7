"""The parts of a reward of WebResearchEnv, and their metrics over many rollouts.

Place in the flow: ``compute_reward`` returns only a float. The caller runs the rollout inside `collecting_grades`, and
``compute_reward`` passes its `Grade` to `record`. The environment stores no grade, so that an evaluation and concurrent training
never mix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

DIVERSE = 2
"""Minimum number of domains that counts as diverse."""
CORRECT = 0.8
"""Minimum correctness of an answer that counts as correct."""


@dataclass(frozen=True, kw_only=True)
class Grade:
    """The parts of one rollout's reward."""

    reward: float
    correctness: float
    judged_by: str
    """``judge``, ``keywords`` when the judge returned no score, or ``nobody`` when there was no answer."""
    used_web: bool
    tool_calls: int
    efficiency: float
    domains: tuple[str, ...]


_grades: ContextVar[list[Grade] | None] = ContextVar("web_research_grades", default=None)
"""The list for grades of the current task's rollout."""


def record(grade: Grade) -> None:
    """Add the grade to the list of the surrounding `collecting_grades`, if there is one."""
    if (grades := _grades.get()) is not None:
        grades.append(grade)


@contextmanager
def collecting_grades() -> Iterator[list[Grade]]:
    """Yield a list for the grades of this task's rollouts; concurrent tasks have their own."""
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
