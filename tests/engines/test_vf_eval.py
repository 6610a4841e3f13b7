"""``vf-eval hermes-env`` has the rewards of ``process`` on the same script; a reward that raises is an error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env.inference import MockServer, call, say

SOLUTIONS = (Path(__file__).parents[1] / "environments" / "hermes_swe_solutions.py").read_text()
COUNT = 4
"""Items, and rollouts of each."""


def terminal_turns(number: int, item: Any) -> list[Any]:
    """Return turns for the n-th item: right, almost right, in the wrong place, nothing."""
    text, path = item["content"], item["path"]
    files = [(path, text), (path, f"Here it is: {text}."), ("elsewhere.txt", text)]
    return [*(call("write_file", path=files[number][0], content=files[number][1]) for _ in "1" if number < 3), say("Done.")]


def swe_turns(number: int, item: Any) -> list[Any]:
    """Return turns for the n-th item: solved, wrong, nothing, solved."""
    texts = [SOLUTIONS, "print('all tests passed')\n", None, SOLUTIONS]
    written = [] if texts[number] is None else [call("write_file", path="solution.py", content=texts[number])]
    return [*written, say("Done.")]


def web_turns(number: int, item: Any) -> list[Any]:
    """Return turns for the n-th item: its answer, an empty answer, and answers after needless calls."""
    if number == 1:
        return [say("")]
    return [*(call("write_file", path="notes.txt", content="x") for _ in range(3 * number)), say(item["answer"])]


@dataclass(frozen=True, kw_only=True)
class Bundled:
    """A bundled environment, its settings offline, and the rewards of its script."""

    module: str
    name: str
    turns: Callable[[int, Any], list[Any]]
    rewards: list[float]
    settings: tuple[str, ...] = ()
    judge: str | None = None


ENVIRONMENTS = {
    "terminal": Bundled(
        module="environments.terminal_test_env.terminal_test_env",
        name="TerminalTestEnv",
        turns=terminal_turns,
        rewards=[1.0, 0.5, 0.0, 0.0],
    ),
    "swe": Bundled(
        module="environments.hermes_swe_env.hermes_swe_env",
        name="HermesSweEnv",
        turns=swe_turns,
        rewards=[1.0, 0.1, 0.0, 1.0],
        settings=("--env.dataset_name", "None", "--env.terminal_backend", "local"),
    ),
    "web": Bundled(
        module="environments.web_research_env.web_research_env",
        name="WebResearchEnv",
        turns=web_turns,
        rewards=[0.65, 0.0, 0.61, 0.49],
        settings=("--env.dataset_name", "None"),
        judge='{"score": 0.75}',
    ),
}


def process_rewards(env: Bundled, endpoint: str, environ: dict[str, str], cwd: Path, tokenizer: str) -> list[list[float]]:
    """Return the scores of each group that `process` writes."""
    out = cwd / "process.jsonl"
    settings = ["total_steps", str(COUNT), "group_size", str(COUNT), "use_wandb", "false", "data_path_to_save_groups", str(out)]
    flags = [word if place % 2 else f"--env.{word}" for place, word in enumerate([*settings, "tokenizer_name", tokenizer])]
    model = ["--openai.base_url", endpoint, "--openai.model_name", "mock-model", "--openai.health_check", "false"]
    words = [sys.executable, "-m", env.module, "process", *flags, *env.settings, *model, "--openai.server_type", "openai"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, cwd=cwd, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-5000:]
    return [json.loads(line)["scores"] for line in out.read_text().splitlines()]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_rewards_are_those_of_process(start, vf_eval, environ, tmp_path, hermes_tokenizer, name):
    env = ENVIRONMENTS[name]
    turns: dict[str, list[Any]] = {}

    def policy(conversation: Any) -> Any:
        return turns[conversation.first_user][conversation.turn]

    with MockServer(policy, judge=env.judge) as server:
        judge = ["--judge-base-url", server.base_url, "--judge-model", "mock-model"] if env.judge else []
        service = start(f"{env.module}:{env.name}", *env.settings, *judge)
        for number, task in enumerate(service.tasks(COUNT)):
            turns[task["prompt"]] = env.turns(number, task["item"])
        traces = vf_eval(service, server.base_url, "-n", str(COUNT), "-r", str(COUNT))
        groups = process_rewards(env, server.base_url, environ, tmp_path, hermes_tokenizer)

    rewards = defaultdict(list)
    for trace in traces:
        assert trace["errors"] == []
        rewards[trace["task"]["data"]["idx"]].append(trace["rewards"]["reward"]["score"])
    assert list(rewards.values()) == groups
    assert groups == [[pytest.approx(reward)] * COUNT for reward in env.rewards]
    assert service.counts() == {"finished": COUNT * COUNT}
    assert service.open_sandboxes() == []


RAISES = """
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv


class Raises(TerminalTestEnv):
    async def compute_reward(self, item, result, ctx):
        if item["path"] == "answer.txt":
            raise LookupError("the verifier is broken")
        return await super().compute_reward(item, result, ctx)

    async def collect_trajectory(self, item):
        scored, backlog = await super().collect_trajectory(item)
        return {**scored, "scores": float(scored["scores"])}, backlog
"""


def test_a_reward_that_raises_is_an_error_and_never_zero(start, vf_eval, tmp_path):
    (tmp_path / "raises.py").write_text(RAISES)

    with MockServer(lambda _: say("Done.")) as server:
        service = start(f"{tmp_path / 'raises.py'}:Raises", "--env.rollout_retries", "3")
        traces = vf_eval(service, server.base_url, "-n", "2", "-r", "2")

    found = [(trace["rewards"].get("reward"), [error["type"] for error in trace["errors"]]) for trace in traces]
    earned = {"score": 0.0, "weight": 1.0}
    assert found == [(earned, []), (earned, []), (None, ["HarnessError"]), (None, ["HarnessError"])]
    assert "reward_failed: LookupError: the verifier is broken" in traces[2]["errors"][0]["message"]
    assert service.counts() == {"finished": 2, "reward_failed": 2}
    assert "sk-policy" not in service.log.read_text()
