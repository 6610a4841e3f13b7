"""Verdicts in words that the judge's own prompt offers: each of them counts as its place on the scale says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from pytest_hermes_env import case, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.play.cases.verdict_words import Offered, offered, uncounted

from .test_around_gold import judged
from .test_judges_around_gold import AskedEnv

ERRORS = 'List every error: {"errors": [{"place": "<id>", "severity": "minor|major|critical", "why": "..."}]}'
GRADE = 'Answer {"grade": "poor|fair|excellent", "why": "..."} and nothing else.'


class WeighedEnv(AskedEnv):
    """Errors cost what they weigh."""

    asked: ClassVar[str] = "Compare with what is asked for. " + ERRORS.replace("{", "{{").replace("}", "}}") + " {text}"
    weights: ClassVar[Mapping[str, float]] = {"minor": 0.02, "major": 0.1, "critical": 0.5}

    def score_in(self, text: str) -> float:
        """Add them."""
        try:
            return max(0.0, 1.0 - sum(self.weights.get(str(one["severity"]), 0.0) for one in json.loads(text)["errors"]))
        except (ValueError, KeyError, TypeError):
            return 0.0


class OtherWordsEnv(WeighedEnv):
    """It calls the worst otherwise."""

    weights: ClassVar[Mapping[str, float]] = {"minor": 0.02, "major": 0.1, "severe": 0.5}


class LenientEnv(WeighedEnv):
    """The mildest is for free."""

    weights: ClassVar[Mapping[str, float]] = {"major": 0.1, "critical": 0.5}


class CarelessEnv(WeighedEnv):
    """None counts."""

    weights: ClassVar[Mapping[str, float]] = {}


class GradedEnv(WeighedEnv):
    """A grade counts."""

    asked: ClassVar[str] = "Grade it. " + GRADE.replace("{", "{{").replace("}", "}}") + " {text}"
    grades: ClassVar[Mapping[str, float]] = {"poor": 0.0, "fair": 0.5, "excellent": 1.0}

    def score_in(self, text: str) -> float:
        """Look it up."""
        try:
            grade = json.loads(text)["grade"]
            return self.grades.get(grade, 1.0) if isinstance(grade, str) else 0.0
        except (ValueError, KeyError, TypeError):
            return 0.0


class UnknownGradeEnv(GradedEnv):
    """A grade that it does not know is fine."""

    grades: ClassVar[Mapping[str, float]] = {"bad": 0.0, "fair": 0.5}


@pytest.mark.parametrize(
    ("env_class", "verdict", "told"),
    [
        (WeighedEnv, '{"errors": []}', ""),
        (LenientEnv, '{"errors": []}', ""),
        (OtherWordsEnv, '{"errors": []}', "listed 5 entries with severity 'critical'"),
        (CarelessEnv, '{"errors": []}', "listed 5 entries with severity 'critical'"),
        (GradedEnv, '{"grade": "excellent"}', ""),
        (UnknownGradeEnv, '{"grade": "excellent"}', "gave 'poor' for grade"),
    ],
)
def test_each_word_counts_that_the_prompt_offers(env_class: type, verdict: str, told: str) -> None:
    """The one at the other end most."""
    gold = case(lambda item: [say(f"{item['a']} and {item['b']} are numbers")], judge=verdict)
    found = judged("HE406", env_class, cases([item_cases(where="*", gold=gold)]))

    assert found.outcome is (Outcome.FAILED if told else Outcome.PASSED), found
    assert any(told in finding.message for finding in found.findings) is bool(told), found.findings


@pytest.mark.parametrize(
    ("value", "asked", "expected"),
    [
        ({"errors": []}, ERRORS, [("severity", ("minor", "major", "critical"))]),
        ({"errors": [1]}, ERRORS, []),
        ({"grade": "excellent"}, GRADE, [("grade", ("fair", "poor"))]),
        ({"grade": "fair"}, GRADE, []),
        ({"grade": "A"}, 'Reply {"grade": "A" or "B" or "C", "why": "text"}', [("grade", ("B", "C"))]),
        ({"grade": "A"}, 'Reply {"grade": "A", "why": "text"}', []),
        ({"errors": []}, 'List: {"errors": [{"type": "grammar|meaning|style", "why": "..."}]}', []),
        ({"errors": []}, 'List: {"errors": [{"type": "a|b", "severity": "low|high"}]}', [("severity", ("low", "high"))]),
        ({"language": "en", "grade": "A"}, 'Reply {"language": "en|de", "grade": "A|B"}', []),
        ({"grade": "A"}, json.dumps(['Reply {"grade": "A|B"}']), [("grade", ("B",))]),
        ("A", GRADE, []),
    ],
)
def test_words_are_read_from_the_prompt(value: Any, asked: str, expected: list[Any]) -> None:
    """For keys of the verdict, and for what a list of it holds."""
    assert [(one.at, one.words) for one in offered(value, asked)] == expected


@pytest.mark.parametrize(
    ("costs", "alone", "expected"),
    [
        ((0.0, 0.1, 0.5), True, ""),
        ((0.5, 0.1, 0.0), True, ""),
        ((0.1, 0.4, 0.0), True, "c"),
        ((0.0, 0.4, 0.1), True, "a"),
        ((0.0, 0.0, 0.0), True, "c"),
        ((0.0, 0.0, 0.0), False, ""),
    ],
)
def test_a_scale_has_one_direction(costs: tuple[float, ...], alone: bool, expected: str) -> None:
    """An end that costs nothing may be the mildest, unless what is beside it costs more than the other end."""
    one = Offered(at="kind", words=("a", "b", "c"), verdicts=({}, {}, {}), is_list=True)

    assert uncounted(one, costs, counts_alone=alone) == expected


class LabelledEnv(AskedEnv):
    """A score counts, and the language beside it does not."""

    asked: ClassVar[str] = 'Mark it: {{"language": "en|de", "score": 0}} from 0 to 10. {text}'


def test_words_beside_a_score_need_not_count() -> None:
    """The verdict is the score."""
    verdict = '{"language": "en", "score": 10}'
    gold = case(lambda item: [say(f"{item['a']} and {item['b']} are numbers")], judge=verdict)
    found = judged("HE406", LabelledEnv, cases([item_cases(where="*", gold=gold)]))

    assert found.outcome is Outcome.PASSED, found
