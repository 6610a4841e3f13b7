"""WebResearchEnv on its cassettes: pages, searches and the judge's answers are recorded, and the rewards are the expected ones."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from environments.web_research_env import WebResearchEnv
from pytest_hermes_env import call, say

ITEM = {"question": "Which river flows through Vienna?", "answer": "The Danube"}
CITY, RIVER = "https://city.example/vienna", "https://river.example/danube"


@pytest.fixture
def rollouts() -> dict[str, list[Any]]:
    """One that reads two hosts, one that only searches, and one that finds nothing and is wrong."""
    return {
        "I read about the city.": [call("web_extract", urls=[CITY, RIVER]), say("The Danube.")],
        "I search.": [call("web_search", query="Vienna"), say("The Danube, I think.")],
        "I search in vain.": [call("web_search", query="Rhine"), say("The Rhine.")],
    }


@pytest.fixture
def judge() -> Any:
    """A judge whose grade depends on the answer in its request."""

    def grade(conversation: Any) -> Any:
        scores = {"The Danube.": 1.0, "The Danube, I think.": 0.75}
        seen = str(conversation.messages[-1]["content"])
        score = next((value for text, value in scores.items() if text in seen), 0.0)
        return say(json.dumps({"score": score, "reasoning": "compared with the expected answer"}))

    return grade


@pytest.fixture
def web(fake_sandbox: Any) -> Any:
    """Two pages, a search that finds one of them, and one that finds nothing; only the recording uses them."""
    hit = {"title": "Vienna", "url": CITY, "description": "a city"}
    pages = {CITY: "Vienna lies on the Danube.", RIVER: "The Danube flows through Vienna."}
    return fake_sandbox.web(pages, searches={"Vienna": [hit], "Rhine": []})


@pytest.mark.parametrize(
    "server_type",
    [
        pytest.param(None, id="chat", marks=pytest.mark.hermes_cassette("web_research_env/chat")),
        pytest.param("vllm", id="token", marks=pytest.mark.hermes_cassette("web_research_env/token")),
    ],
)
def test_a_group_has_its_recorded_grades(make_env, web, recorded_server, server_type, nothing_real):
    """0.6 by the judge, 0.2 for the web, 0.2 for few calls, 0.1 for a second host: as recorded, in order."""
    env = make_env(WebResearchEnv, server=recorded_server, server_type=server_type, group_size=3, dataset_name=None)

    async def collect() -> Any:
        await env.setup()
        group, _ = await env.collect_trajectories(ITEM)
        return group["scores"], [(grade.judged_by, grade.domains) for grade in env.grade_buffer]

    scores, grades = asyncio.run(collect())

    assert scores == pytest.approx([1.0, 0.85, 0.4])
    assert sorted(grades) == [("judge", ()), ("judge", ("city.example",)), ("judge", ("city.example", "river.example"))]
    assert nothing_real() == []
