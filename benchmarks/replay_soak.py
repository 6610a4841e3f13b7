"""Replays 200 groups of 4 rollouts with 3 turns again and again: are the scores exactly the recorded ones, in order?

Prints a line per round, and ends with exit code 1 at the first score that differs: ``python -m benchmarks replay_soak [ROUNDS]
[PROCESSES] [GROUPS]``. All groups run at once, begin in another order each round, and pause at random between their steps; the
processes play one cassette at the same time, as xdist's workers do. What is recorded never repeats: equal requests were given
different answers, and tools printed another number each time.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import random
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

SIZE, TOOL_TURNS = 4, 2
Scores = list[list[float]]


def _environment() -> type:
    from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig

    class SoakEnv(HermesAgentBaseEnv):
        """Adds up what commands printed, what the verifier's own command printed, and what a judge says."""

        name = "soak"
        env_config_cls = HermesAgentEnvConfig
        rng = random.Random(0)

        async def setup(self) -> None:
            """Nothing to load."""

        async def get_next_item(self) -> Any:
            return None

        def format_prompt(self, item: Any) -> str:
            return f"Item {item['id']}."

        async def pause(self) -> None:
            if not self.rng.randrange(3):
                await asyncio.sleep(self.rng.random() / 100)
            for _ in range(self.rng.randrange(12)):
                await asyncio.sleep(0)

        async def collect_trajectory(self, item: Any) -> Any:
            await self.pause()
            return await super().collect_trajectory(item)

        async def compute_reward(self, _: Any, result: Any, ctx: Any) -> float:
            await self.pause()
            printed = [json.loads(each["content"])["output"] for each in result.messages if each["role"] == "tool"]
            verified = ctx.terminal("verify")["output"]
            judged = await self.server.chat_completion(messages=[{"role": "user", "content": "How good?"}], n=1)
            return sum(map(float, printed)) + float(verified) + float(judged.choices[0].message.content)

        async def evaluate(self, *args: Any, **kwargs: Any) -> None:
            """Nothing to evaluate."""

    return SoakEnv


class Dice:
    """A sandbox whose terminal prints another number each time."""

    backend, is_confined, description = "fake", True, "dice"

    def __init__(self) -> None:
        self.rng = random.Random(1)

    def sandbox_of(self, _: str) -> Dice:
        """Return the only sandbox."""
        return self

    def call(self, _: str, __: dict[str, Any]) -> str:
        """Return a terminal's result."""
        return json.dumps({"output": str(self.rng.randrange(100_000)), "exit_code": 0})


def collect(session: Any, server: Any, sandbox: Any, order: list[int], seed: int) -> Scores:
    """Run all groups at once and return their scores by item."""
    from pytest_hermes_env.play.builder import EnvironmentBuilder
    from pytest_hermes_env.sandbox.seam import ToolSeam

    env_class: Any = _environment()
    env_class.rng = random.Random(seed)
    seam = ToolSeam(session.sandboxes(sandbox), record=session.note_tool_call)
    builder = EnvironmentBuilder(seam=lambda: seam, watch=session.watch.watch)

    async def run() -> Scores:
        env = builder.build(env_class, server=server, group_size=SIZE, enabled_toolsets=["terminal"])
        done = await asyncio.gather(*(env.collect_trajectories({"id": number}) for number in order))
        scores = {number: group["scores"] for number, (group, _) in zip(order, done, strict=True)}
        return [scores[number] for number in sorted(scores)]

    with seam:
        try:
            return asyncio.run(run())
        finally:
            builder.close()


def record(path: Path, groups: int) -> Scores:
    """Record all groups from a mock server, and return their scores."""
    from pytest_hermes_env.cassette.session import recording
    from pytest_hermes_env.inference import MockServer, call, say

    rng = random.Random(2)

    def answer(conversation: Any) -> Any:
        if conversation.turn < TOOL_TURNS and conversation.tools:
            return call("terminal", command=f"echo {rng.randrange(3)}")
        return say(str(rng.randrange(100_000)))

    with MockServer(answer, allow_leftovers=True) as server, recording(path, recorded_from="a mock") as session:
        return collect(session, server, Dice(), list(range(groups)), seed=3)


def play(path: Path, scores: Scores, rounds: int, process: int) -> int:
    """Replay ``rounds`` times, and return how many rounds gave other scores than the recorded ones."""
    from pytest_hermes_env.cassette.open_cassette import NO_SERVER, RecordedServer
    from pytest_hermes_env.cassette.session import replaying
    from pytest_hermes_env.sandbox.seam import RealTools

    _be_quiet()
    wrong = 0
    for number in range(1, rounds + 1):
        seed = process * 1_000 + number
        order = random.Random(seed).sample(range(len(scores)), len(scores))
        started = time.perf_counter()
        with replaying(path) as session:
            played = collect(session, RecordedServer(base_url=NO_SERVER, model="mock-model"), RealTools(), order, seed)
        is_same = played == scores
        wrong += not is_same
        seconds = time.perf_counter() - started
        print(
            f"process {process}, round {number:>2}: {len(scores)} groups, {session.played} calls, {seconds:5.1f} s, "
            f"{seconds * 1000 / session.played:.2f} ms per call, scores {'as recorded' if is_same else 'DIFFER'}",
            flush=True,
        )
    return wrong


def _be_quiet() -> None:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")


def main(words: list[str]) -> int:
    """Record once, replay in one process, then in several at once."""
    given = [int(word) for word in words]
    rounds, processes, groups = (*given, *(20, 2, 200)[len(given) :])
    _be_quiet()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "soak.json"
        started = time.perf_counter()
        scores = record(path, groups)
        values = {score for group in scores for score in group}
        print(
            f"recorded {groups} groups of {SIZE} with {TOOL_TURNS + 1} turns in {time.perf_counter() - started:.1f} s: "
            f"{path.stat().st_size / 1e6:.1f} MB, {len(values)} different scores",
            flush=True,
        )
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            wrong = sum(pool.starmap(play, [(path, scores, rounds, number) for number in range(1, processes + 1)]))
    print(f"{wrong} of {rounds * processes} rounds differ")
    return 1 if wrong else 0
