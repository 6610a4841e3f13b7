"""Transcripts of known worth are played as rollouts, and each leaves a rung."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hermes_env.inference.steps import call, say, turn
from pytest_hermes_env.play.cases.item_cases import _wrong_content
from pytest_hermes_env.play.cases.slots import Work
from pytest_hermes_env.play.cases.values import GOLD, NOTHING, Case, Cases, ItemCases, Transcript
from pytest_hermes_env.play.driver import Collector
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.scenario import Rung

from .small_env import SmallEnv

PRINT = turn(call("terminal", command="echo red"))
DONE = turn(say("red"))


class Graded(SmallEnv):
    """Pays for the word, and looks into a file."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Half for the word, half for the file."""
        said = result.messages[-1].get("content") == item["word"]
        return 0.5 * said + 0.5 * (ctx.terminal("cat notes.txt")["output"].strip() == "ok")


def of(*turns: Any, **fields: Any) -> Any:
    """Return what makes the same transcript for every item."""
    return lambda _: Transcript(turns=turns, **fields)


def raising(item: Any) -> Transcript:
    """Fail as an author's function may."""
    raise KeyError(item["answer"])


CASES = {
    "gold": of(PRINT, DONE, files={"notes.txt": "ok"}),
    "no file": of(DONE),
    "too long": of(DONE, DONE),
    "too short": of(PRINT),
    "local": of(DONE, sandbox="local"),
    "blank": None,
    "broken": raising,
}


@pytest.fixture(scope="module")
def rungs() -> dict[str, Rung]:
    """The rungs of one collection."""
    cases = tuple(Case(name=name, of=made, path="env.contract.yaml", line=3) for name, made in CASES.items())
    entry = ItemCases(kind="item", which={"word": "red"}, label="the red item", cases=cases)
    missing = ItemCases(kind="index", which=7, label="item 7", cases=())
    collector = Collector(Graded, cases=Cases(items=(entry, missing)), timeout_s=30)
    return {f"{rung.name} of {rung.item}": rung for rung in collector.collect(["cases"]).scenarios["cases"].rungs}


def test_a_transcript_earns_its_reward(rungs: dict[str, Rung]) -> None:
    """Files are put there before, and what the verifier does is told from what the agent did."""
    gold, other = rungs["gold of the red item"], rungs["no file of the red item"]

    assert (gold.reward, gold.turns, gold.tools, gold.problem, gold.is_automatic) == (1.0, 2, ("terminal",), "", False)
    assert gold.asked == ("terminal(command='cat notes.txt', timeout=180): exit code 0, 'ok'",)
    assert [read.rpartition("/")[2] for read in gold.reads] == ["notes.txt (written by the environment)"]
    assert (other.reward, other.tools) == (0.5, ())


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (
            "too long",
            "the agent asked for 1 of the 2 turns of too long of the red item: a turn without a call ends the rollout",
        ),
        ("too short", "the agent asked for turn 2 of too short of the red item, which has 1: end it with a say turn"),
        ("broken", "KeyError: 'answer'"),
    ],
)
def test_a_transcript_that_does_not_fit_is_a_problem(rungs: dict[str, Rung], name: str, problem: str) -> None:
    """The author is told; the reward says nothing then."""
    assert rungs[f"{name} of the red item"].problem == problem


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("local", "local of the red item needs --hermes-sandbox local"),
        ("blank", "blank of the red item is not filled in"),
    ],
)
def test_a_case_that_cannot_be_played_says_why(rungs: dict[str, Rung], name: str, reason: str) -> None:
    """It is no failure."""
    assert (rungs[f"{name} of the red item"].unavailable, rungs[f"{name} of the red item"].reward) == (reason, None)


def test_an_item_that_does_not_exist_is_a_problem(rungs: dict[str, Rung]) -> None:
    """The message says how many there are."""
    assert rungs["gold of item 7"].problem == "there is no training item 7: get_next_item returns 2 different ones"


def test_automatic_cases_are_played_beside_the_authors(rungs: dict[str, Rung]) -> None:
    """Four of them, none of which earns the word."""
    automatic = {rung.name: rung.reward for rung in rungs.values() if rung.is_automatic and not rung.change}

    assert automatic == {"tools": 0.0, "wrong_content": 0.0, "echo": 0.0, "nothing": 0.0}


def test_a_declared_case_replaces_the_automatic_one() -> None:
    """Of the same name."""
    entry = ItemCases(
        kind="where", which=lambda item: item["word"] == "red", label="red", cases=(Case(name=NOTHING, of=of(DONE)),)
    )
    rungs = Collector(Graded, cases=Cases(items=(entry,)), timeout_s=30).collect(["cases"]).scenarios["cases"].rungs

    assert [(rung.reward, rung.is_automatic, rung.item) for rung in rungs if rung.name == NOTHING] == [
        (0.5, False, "training item 1")
    ]


def test_wrong_content_has_the_form_of_gold() -> None:
    """The same calls and marks; only what they hold is another value."""
    gold = Work(turns=(turn(call("write_file", path="a.json", content='{"total": 4}')), turn("<answer>4</answer>")))

    assert gold.all_wrong(gold.slots()) == (
        turn(call("write_file", path="a.json", content='{"total": 29}')),
        turn("<answer>29</answer>"),
    )


def test_where_gold_writes_no_file_wrong_content_does_without_its_calls() -> None:
    """What they did may be the work."""
    gold = Work(turns=(turn(call("terminal", command="make")), turn("Answer: yes")))

    assert gold.all_wrong(gold.slots()) == (turn("Answer: no"),)


@pytest.mark.parametrize(
    ("prompt", "tools", "expected"),
    [
        ("Write a.txt and b.txt.", ["write_file"], ["a.txt", "b.txt"]),
        ("Write a.txt.", ["terminal"], ["echo something else entirely > a.txt"]),
        ("Write a.txt.", [], []),
        ("Say hello.", ["terminal"], []),
    ],
)
def test_without_gold_the_files_of_the_prompt_are_written(prompt: str, tools: list[str], expected: list[str]) -> None:
    """With the tool that there is; otherwise something else is said."""
    conversation: Any = type("Conversation", (), {"first_user": prompt, "turn": 0, "tools": {name: {} for name in tools}})
    made = _wrong_content(conversation)
    calls = made if isinstance(made, list) else [made]

    found = [next((text for text in (*expected,) if text in getattr(step, "arguments_text", "")), None) for step in calls]
    assert [text for text in found if text] == expected


class Forgetful(SmallEnv):
    """Pays less each time, and marks the item."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Count the calls on the item and on itself."""
        del result, ctx
        self.calls = getattr(self, "calls", 0) + 1
        item["calls"] = item.get("calls", 0) + 1
        return 1.0 / (self.calls * item["calls"])


def test_a_declared_case_is_played_twice_on_copies_of_its_item() -> None:
    """Both records are evidence; what the reward does to an item does not reach the next rollout."""
    item = {"word": "red"}
    entry = ItemCases(kind="item", which=item, label="the red item", cases=(Case(name=GOLD, of=of(DONE)),))

    record = Collector(Forgetful, cases=Cases(items=(entry,)), timeout_s=30).collect(["cases"]).scenarios["cases"]

    gold, *others = record.rungs
    automatic = [rung for rung in others if not rung.change]
    assert (gold.reward, gold.again, item) == (1.0, 0.5, {"word": "red"})
    assert {rung.again for rung in automatic} == {None}
    assert len(record.played) == 2 + len(automatic)
    assert all(reward.changed == ("item",) for played in record.played for reward in played.of(Reward))
