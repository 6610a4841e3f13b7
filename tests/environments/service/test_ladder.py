"""A foreign process that asks the service for rollouts gets the rewards that ``pytest --hermes-env`` shows in its ladder."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from environments.hermes_swe_env.hermes_swe_env import HermesSweEnv
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from environments.web_research_env.web_research_env import WebResearchEnv
from pytest_hermes_env.inference import MockServer
from pytest_hermes_env.play.cases.finding import cases_beside
from pytest_hermes_env.play.driver import Collector
from pytest_hermes_env.play.tool_backend import _with_one_page

pytestmark = pytest.mark.hermes_allow_leftovers

CLIENT = """
import json, sys, urllib.error, urllib.request
url, token = sys.argv[1:]
def ask(body):
    request = urllib.request.Request(url + "/rollout", json.dumps(body).encode(), {"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["reward"]
    except urllib.error.HTTPError as error:
        return error.read().decode()
assert not {"environments", "atroposlib", "openai", "pytest_hermes_env"} & set(sys.modules)
print(json.dumps([ask(body) for body in json.load(sys.stdin)]))
"""
DECLARED = ("gold", "near_miss", "nothing", "hack")


@dataclass(frozen=True, kw_only=True)
class Bundled:
    """A bundled environment with the settings that it needs offline, and its declared rewards."""

    cls: type
    rewards: dict[str, float]


ENVIRONMENTS = {
    "terminal": Bundled(cls=TerminalTestEnv, rewards={"gold": 1.0, "near_miss": 0.5, "nothing": 0.0, "hack": 0.0}),
    "swe": Bundled(
        cls=HermesSweEnv,
        rewards={"gold": 1.0, "near_miss": 0.1, "nothing": 0.0, "hack": 0.1},
    ),
    "web": Bundled(
        cls=WebResearchEnv,
        rewards={"gold": 1.0, "near_miss": 0.76, "nothing": 0.2, "hack": 0.2},
    ),
}


SETTINGS = {"dataset_name": None, "terminal_backend": "local", "use_wandb": False}


def with_samples(cls: Any) -> Any:
    """Return the class with its sample items, which need no download."""

    def config_init(_: Any) -> Any:
        config, servers = cls.config_init()
        return config.model_copy(update=SETTINGS), servers

    return type(cls.__name__, (cls,), {"config_init": classmethod(config_init)})


def items_of(entry: Any, train: list[Any], count: int) -> list[Any]:
    """Return the items that an entry's cases were played on."""
    return [entry.which] if entry.kind == "item" else train[:count]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_foreign_process_gets_the_ladder_s_rewards(make_env, fake_sandbox, serving, name):
    bundled = ENVIRONMENTS[name]
    declared = cases_beside(bundled.cls)
    assert declared is not None
    (entry,) = declared.items
    cls = with_samples(bundled.cls)
    collector = Collector(cls, cases=declared, timeout_s=300)
    rungs = [rung for rung in collector.collect(["cases"]).scenarios["cases"].rungs if rung.name in DECLARED]
    ladder = [(rung.name, rung.reward) for rung in rungs]
    _with_one_page(fake_sandbox)  # as the ladder's
    played = sum(rung.name == "gold" for rung in rungs)

    async def scenario() -> list[tuple[str, Any]]:
        verdicts: dict[str, Any] = {}
        env = make_env(cls, script=lambda one: verdicts["judge"], group_size=1)
        async with serving(env) as here:
            got = []
            for item in items_of(entry, [task["item"] for task in await here.service.tasks.tasks("train", played)], played):
                for case in entry.cases:
                    if case.name in DECLARED:
                        transcript = case.of(item)
                        verdicts["judge"] = transcript.judge[-1] if transcript.judge else "unasked"
                        with MockServer(lambda one, turns=transcript.turns: turns[one.turn]) as policy:
                            got.append((case.name, await foreign(here.client.base_url, item, policy.base_url)))
            return got

    async def foreign(url: Any, item: Any, endpoint: str) -> Any:
        client = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-c",
            CLIENT,
            str(url),
            serving.token,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        body = {"item": item, "endpoint": endpoint, "model": "m"}
        out, _ = await client.communicate(json.dumps([body]).encode())
        return json.loads(out)[0]

    rewards = asyncio.run(scenario())

    assert rewards == ladder
    assert {case: [reward for other, reward in rewards if other == case] for case in DECLARED} == {
        case: [reward] * played for case, reward in bundled.rewards.items()
    }
