"""Changes of data in tags and behind markers, of marks in an order, of ranges and of plans: wrong for sure only where no task could mean it."""

from __future__ import annotations

import pytest

from pytest_hermes_env.play.cases.content import Known, changes

from .test_content import made


@pytest.mark.parametrize(
    ("text", "others", "name", "expected"),
    [
        (
            "<answer>\nA: 1/64\nB: 1/8\n</answer>",
            ("<answer>\nA: 1/4\nB: 1/2\n</answer>",),
            "zero in A in answer",
            "<answer>\nA: 0\nB: 1/8\n</answer>",
        ),
        ('<answer>{"n": 42}</answer>', ('<answer>{"n": 7}</answer>',), "zero in n in answer", '<answer>{"n": 0}</answer>'),
        ('So:\n```json\n{"n": 42}\n```', ('So:\n```json\n{"n": 7}\n```',), "without the key n", None),
        (
            'So:\n```json\n{"n": 42, "m": 1}\n```',
            ('So:\n```json\n{"n": 7, "m": 1}\n```',),
            "half as much again in n",
            'So:\n```json\n{"n": 63, "m": 1}\n```',
        ),
        ("3/8", (), "twice as much", "6/8"),
        ("1" * 5000 + "/3", (), "twice as much", None),
        ("G6 K5 W12", (), "its second part as often as it has parts", "K5 K5 K5"),
    ],
)
def test_what_stands_in_tags_is_changed_as_what_it_is(
    text: str, others: tuple[str, ...], name: str, expected: str | None
) -> None:
    """Lines with names, JSON, fractions, marks."""
    found = made(text, *others)
    assert (found[name].text if name in found else None) == expected


def test_the_ends_of_a_range_are_never_exchanged() -> None:
    """Also where others may be as good; and a plan in which nothing takes any time is none."""
    known = Known(others=('{"low": 7, "high": 9, "n": 4}',), is_one_of_many=True)
    named = {(change.name, change.at): change for change in changes('{"low": 1, "high": 3, "n": 2}', known)}

    assert named["two values exchanged", "in low and high"].is_sure
    assert named["every number zero", ""].text == '{"low": 0, "high": 0, "n": 0}'
    assert not named["every number zero", ""].is_sure
    assert ("every number zero", "") not in {(one.name, one.at) for one in changes('{"x": 0.0, "y": 0.0}', Known())}
    edges = [one for one in changes("from,to\noslo,bergen\nturku,kiel\n", Known()) if one.at == "in from, row 1 and to, row 1"]
    assert not any(one.is_sure for one in edges)


def test_what_prepares_an_answer_is_not_graded() -> None:
    """Beside an answer in tags of its own; and what a sentence in tags says, nobody knows."""
    text = "<reasoning>\nStep 1: 3 * 4 = 12\nStep 2: 12 + 1 = 13\n</reasoning>\n<answer>13</answer>"
    found = made(text, text.replace("13", "15").replace("12", "14"))

    assert [name for name, one in found.items() if "reasoning" in name and one.is_sure] == []
    assert found["zero in answer"].is_sure
    assert made("<plan>4 5 7</plan><cost>3</cost>")["without its last part in plan"].is_sure


@pytest.mark.parametrize(("text", "is_sure"), [("B4 B5 B6", True), ("4 5 6", False), ("AT THE HOP", None)])
def test_the_same_number_again_may_be_as_good(text: str, is_sure: bool | None) -> None:
    """A name is not; and words in capital letters are no list."""
    found = made(text).get("its second part as often as it has parts")
    assert (found.is_sure if found else None) is is_sure
