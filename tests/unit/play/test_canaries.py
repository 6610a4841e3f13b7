"""Each conversation gets a word, and the words are found where they are seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from pytest_hermes_env.inference.steps import as_turn
from pytest_hermes_env.play.canaries import Canaries
from pytest_hermes_env.play.journal import Journal, Place, Reward
from pytest_hermes_env.play.scenario import RolloutCanary, Sighting
from pytest_hermes_env.sandbox.seam import ToolCall

from .bare import HermesAgentBaseEnv

TOOLS = {
    "terminal": {"properties": {"command": {"type": "string"}}},
    "search": {"properties": {"query": {}}, "required": ["query"]},
}


def conversation(turn: int, *said: str, tools: Any = TOOLS) -> Any:
    """Return a conversation whose model has said this."""
    return SimpleNamespace(turn=turn, tools=tools, messages=[{"role": "assistant", "content": text} for text in said])


def called(task_id: str, text: str, *, by_agent: bool = True, result: str = "") -> ToolCall:
    """Return a call with a text among its arguments."""
    return ToolCall(
        task_id=task_id, name="terminal", arguments={"command": text}, result=result, seconds=0.0, turn=int(by_agent)
    )


def test_a_conversation_keeps_its_word() -> None:
    """Two tool calls with it, then an answer; another conversation has another word, and a judge has none."""
    canaries = Canaries()
    policy = canaries.policy()

    first = as_turn(policy(conversation(0))).steps
    (word,) = canaries.words
    second = as_turn(policy(conversation(1, f"I work as {word}."))).steps
    last = as_turn(policy(conversation(2, f"I work as {word}."))).steps
    judged = as_turn(policy(conversation(0, tools={}))).steps
    policy(conversation(0))

    assert [step.text for step in (first[0], last[0])] == [f"I work as {word}.", f"Done by {word}."]
    assert [step.arguments_text for step in (first[1], second[1])] == [
        f'{{"command": "echo {word}"}}',
        f'{{"query": "{word}"}}',
    ]
    assert word not in repr(judged)
    assert len(set(canaries.words)) == 2


def test_a_word_belongs_to_the_agent_that_first_used_it() -> None:
    """Not to a verifier; a word that no tool was called with has no owner."""
    canaries = Canaries(words=["one", "two", "three"])
    journal = Journal(tool_calls=[called("v", "one", by_agent=False), called("a", "one"), called("b", "two one")])

    assert canaries.given(journal) == (
        RolloutCanary(word="one", task_id="a"),
        RolloutCanary(word="two", task_id="b"),
        RolloutCanary(word="three", task_id=""),
    )


def test_words_are_seen_in_requests_results_messages_and_attributes() -> None:
    """With the place of each."""
    canaries = Canaries(words=["one", "two"])
    reward = Reward(value=1.0, error="", injected=False, place=Place(), task_id="a", messages=({"content": "two"},))
    journal = Journal(tool_calls=[called("b", "x", result="one")], events=[reward])

    seen = canaries.sightings(HermesAgentBaseEnv(last="one two", other=3), journal, [{"messages": []}, {"messages": ["one"]}])

    assert seen == (
        Sighting(where="request", name="1", words=("one",)),
        Sighting(where="tool result", name="b", words=("one",)),
        Sighting(where="messages", name="a", words=("two",)),
        Sighting(where="attribute", name="last", words=("one", "two")),
    )


def test_what_the_process_shares_is_looked_at_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """Class attributes, the module and variables; the look that saw most words counts."""

    class Env(HermesAgentBaseEnv):
        shared: ClassVar[list[str]] = []

    canaries = Canaries(words=["canary-1", "canary-2"])
    monkeypatch.setenv("HERMES_ENV_TEST", "canary-2")
    Env.shared += canaries.words
    canaries.look(Env)
    Env.shared.clear()
    canaries.look(Env)

    assert canaries.sightings(Env(), Journal(), []) == (
        Sighting(where="class attribute", name="shared", words=("canary-1", "canary-2")),
        Sighting(where="os.environ", name="HERMES_ENV_TEST", words=("canary-2",)),
    )
