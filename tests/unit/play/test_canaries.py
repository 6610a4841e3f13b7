"""Each conversation gets a word, and the words are found where they are seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from pytest_hermes_env.inference.steps import as_turn
from pytest_hermes_env.play.journal import Journal
from pytest_hermes_env.play.scenario import Sighting
from pytest_hermes_env.play.scenarios.concurrent import Canaries

from .bare import HermesAgentBaseEnv

TOOLS = {
    "terminal": {"properties": {"command": {"type": "string"}}},
    "search": {"properties": {"query": {}}, "required": ["query"]},
}


def conversation(turn: int, *said: str, tools: Any = TOOLS) -> Any:
    """Return a conversation whose model has said this."""
    return SimpleNamespace(turn=turn, tools=tools, messages=[{"role": "assistant", "content": text} for text in said])


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
