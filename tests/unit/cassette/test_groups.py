"""Whole rollouts from a cassette: many groups at once, in any order of events, give the recorded scores in order."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from pytest_hermes_env import MockServer, call, say
from pytest_hermes_env.cassette.format import read_tape
from pytest_hermes_env.cassette.open_cassette import NO_SERVER, RecordedServer
from pytest_hermes_env.cassette.session import CassetteSession, recording, replaying
from pytest_hermes_env.errors import CassetteMiss
from pytest_hermes_env.play.builder import EnvironmentBuilder
from pytest_hermes_env.sandbox.seam import RealTools, ToolSeam

GROUPS, SIZE = 5, 4


class NoteEnv(HermesAgentBaseEnv):
    """Adds up what two commands printed and what a judge says; ``pause`` stands between the steps of a rollout."""

    name = "notes"
    env_config_cls = HermesAgentEnvConfig
    rng = random.Random(0)

    async def setup(self) -> None:
        """Nothing to load."""

    async def get_next_item(self) -> Any:
        return None

    def format_prompt(self, item: Any) -> str:
        return f"Note {item['id']}."

    async def pause(self) -> None:
        for _ in range(self.rng.randrange(12)):
            await asyncio.sleep(0)

    async def collect_trajectory(self, item: Any) -> Any:
        await self.pause()
        return await super().collect_trajectory(item)

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        await self.pause()
        printed = [json.loads(m["content"])["output"] for m in result.messages if m["role"] == "tool"]
        verified = ctx.terminal("verify")["output"]
        judged = await self.server.chat_completion(messages=[{"role": "user", "content": "How good?"}], n=1)
        return sum(map(float, printed)) + float(verified) + float(judged.choices[0].message.content)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to evaluate."""


class Dice:
    """A world whose terminal prints another number each time."""

    backend, is_confined, description = "fake", True, "dice"

    def __init__(self) -> None:
        self.rng = random.Random(1)

    def sandbox_of(self, task_id: str) -> Dice:
        return self

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        return json.dumps({"output": str(self.rng.randrange(1_000)), "exit_code": 0})


def policy() -> Any:
    """Return a model that never says the same twice to the same question."""
    rng = random.Random(2)

    def answer(conversation: Any) -> Any:
        if conversation.turn < 2 and conversation.tools:
            return call("terminal", command=f"echo {rng.randrange(3)}")
        return say(str(rng.randrange(1_000)))

    return answer


def collect(
    session: CassetteSession,
    server: Any,
    world: Any,
    *,
    seed: int,
    ids: list[int],
    size: int = SIZE,
    env_class: type[NoteEnv] = NoteEnv,
) -> dict[int, Any]:
    """Collect all groups at once and return their scores by item."""
    NoteEnv.rng = random.Random(seed)
    seam = ToolSeam(session.sandboxes(world), record=session.note_tool_call)
    builder = EnvironmentBuilder(seam=lambda: seam, watch=session.watch.watch)

    async def run() -> dict[int, Any]:
        env = builder.build(env_class, server=server, group_size=size, enabled_toolsets=["terminal"], rollout_retries=0)
        groups = await asyncio.gather(*(env.collect_trajectories({"id": number}) for number in ids))
        return {number: group and group["scores"] for number, (group, _) in zip(ids, groups, strict=True)}

    with seam:
        try:
            return asyncio.run(run())
        finally:
            builder.close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, Any]]:
    """A cassette of five groups that ran at once, and their scores."""
    path = tmp_path_factory.mktemp("groups") / "cassette.json"
    with MockServer(policy(), allow_leftovers=True) as server, recording(path, recorded_from="a mock") as session:
        scores = collect(session, server, Dice(), seed=3, ids=list(range(GROUPS)))
    return path, scores


@pytest.mark.parametrize("seed", range(4))
def test_groups_give_the_recorded_scores_in_order(recorded: tuple[Path, dict[int, Any]], seed: int) -> None:
    """Whatever the order of events, rollout k of a group gets the answers and results of rollout k of its recording."""
    path, scores = recorded
    ids = random.Random(seed).sample(range(GROUPS), GROUPS)

    with replaying(path) as session:
        played = collect(session, RecordedServer(base_url=NO_SERVER, model="mock-model"), RealTools(), seed=seed, ids=ids)

    assert played == scores
    assert len({score for group in scores.values() for score in group}) > SIZE


def test_a_rollout_too_many_is_said_to_be_one(recorded: tuple[Path, dict[int, Any]]) -> None:
    """A larger group takes no other group's recordings: only the rollout that is one too many misses."""
    path, _ = recorded
    server = RecordedServer(base_url=NO_SERVER, model="mock-model")

    with pytest.raises(CassetteMiss) as miss, replaying(path) as session:
        collect(session, server, RealTools(), seed=0, ids=list(range(GROUPS)), size=SIZE + 1)

    assert str(miss.value) == (
        "a rollout began that is not in the cassette.\n"
        f"  expected  4 with this beginning, as in {path}\n"
        "  seen      one more: is group_size larger, or is it another item?\n"
        "  fix       undo the change, or record again: record it again\n"
        "  repeated  5 times"
    )


class StaticNoteEnv(NoteEnv):
    """Its reward uses no instance."""

    @staticmethod
    async def compute_reward(item: Any, result: Any, ctx: Any) -> float:  # type: ignore[override]
        return float(ctx.terminal("verify")["output"]) + item["id"]


class ClassNoteEnv(NoteEnv):
    """Its reward uses the class."""

    worth = 100.0

    @classmethod
    async def compute_reward(cls, item: Any, result: Any, ctx: Any) -> float:  # type: ignore[override]
        return float(ctx.terminal("verify")["output"]) + cls.worth


@pytest.mark.parametrize("env_class", [StaticNoteEnv, ClassNoteEnv])
def test_rewards_that_need_no_instance_are_recorded_and_compared(tmp_path: Path, env_class: type[NoteEnv]) -> None:
    """They are called as they are written, and each rollout of the cassette has its reward."""
    path, before = tmp_path / "cassette.json", vars(env_class)["compute_reward"]
    with MockServer(policy(), allow_leftovers=True) as server, recording(path, recorded_from="a mock") as session:
        scores = collect(session, server, Dice(), seed=1, ids=[1], size=2, env_class=env_class)
    with replaying(path) as session:
        played = collect(
            session,
            RecordedServer(base_url=NO_SERVER, model="mock-model"),
            RealTools(),
            seed=2,
            ids=[1],
            size=2,
            env_class=env_class,
        )

    assert played == scores
    assert [rollout.reward for rollout in read_tape(path).rollouts] == scores[1]
    assert vars(env_class)["compute_reward"] is before
