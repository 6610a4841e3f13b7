"""Drawn scripts: conversations that the mock model can hold."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from hypothesis import Phase, find, given, settings

from pytest_hermes_env.inference import MockServer, Script, call, fail, say, unoffered
from pytest_hermes_env.strategies import scripts
from pytest_hermes_env.strategies.tools import USUAL_TOOLS

shrunk = settings(max_examples=2000, database=None, phases=[Phase.generate, Phase.shrink])


@pytest.fixture
def speak() -> Iterator[Callable[[Script], int]]:
    """Hold a whole conversation with a script over HTTP; gives the number of answers."""
    server = MockServer(allow_leftovers=True)
    with server:
        client = openai.OpenAI(base_url=server.base_url, api_key="unused", max_retries=0)
        numbers = iter(range(10_000))

        def hold(script: Script) -> int:
            question = f"conversation {next(numbers):05}"
            server.add(Script(list(script.turns), when=question))
            messages: list[Any] = [{"role": "user", "content": question}]
            answers = 0
            while True:
                reply = client.chat.completions.create(model="m", messages=messages, tools=list(USUAL_TOOLS))
                answers += 1
                message = reply.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return answers
                messages += [{"role": "tool", "tool_call_id": called.id, "content": ""} for called in message.tool_calls]

        yield hold
        client.close()
        server.verify()


def test_the_mock_model_can_say_them(speak: Callable[[Script], int]) -> None:
    """With tools that are offered, every request finds its turn, and the last turn is an answer."""

    @settings(max_examples=25, deadline=None, database=None)
    @given(scripts(min_turns=2, max_turns=3))
    def hold(script: Script) -> None:
        assert speak(script) == len(script.turns)
        assert 2 <= len(script.turns) <= 3

    hold()


@pytest.mark.parametrize(
    ("strategy", "condition", "smallest"),
    [
        (scripts(), lambda script: True, [Script([say("")])]),
        (scripts(), lambda script: len(script.turns) > 1, [Script([call("terminal", command=""), say("")])]),
        (scripts(faults=True), lambda script: "fail" in script.describe(), [Script([fail(500)])]),
        (
            scripts(faults=True),
            lambda script: "is_offered=False" in repr(script),
            [Script([unoffered(call("bash")), say("")]), Script([unoffered(call("bash")), fail(500)])],
        ),
    ],
)
def test_scripts_shrink_to_the_plainest(strategy: Any, condition: Callable[[Script], bool], smallest: list[Script]) -> None:
    """As few turns as it takes."""
    assert find(strategy, condition, settings=shrunk, random=random.Random(0)) in smallest


def test_scripts_have_no_faults_unless_asked_for() -> None:
    """Nothing that the mock model would refuse, and no failing server."""

    @settings(max_examples=50, deadline=None, database=None)
    @given(scripts())
    def look(script: Script) -> None:
        assert not any(
            word in repr(script) for word in ("is_offered=False", "names=None", "PlannedFault(", "Garbage(", "EmptyChoices(")
        )

    look()
