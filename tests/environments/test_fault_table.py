"""Every fault of a fault plan, once and every time: how the rollout ends, what is scored, what trains, what is counted.

The table in docs/reference/faults.md is what is observed here; a row that differs is printed as it must be.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from environments.hermes_base_env import HermesAgentBaseEnv
from environments.loop.end import RolloutEnd
from environments.tokens.answer_checks import TokenModeError
from pytest_hermes_env.errors import NoBatch
from pytest_hermes_env.faults.plan import FAULTS, FaultPlan
from pytest_hermes_env.inference import call, say
from tests.environments.captured_metrics import capturing_wandb

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "faults.md"
ODD = 1
"""The number of the rollout that the fault strikes."""
STRUCK = f"rollout {ODD}."
TIMEOUT_S = 2
ALWAYS = {True: {"times": 1}, False: {}}
number: ContextVar[int] = ContextVar("number")


class Env(HermesAgentBaseEnv):
    """Three numbered rollouts; each writes a file and earns its number."""

    name = "struck"

    async def setup(self) -> None:
        self.numbers = itertools.count()
        self.scored: list[int] = []

    async def get_next_item(self) -> Any:
        return "item"

    async def collect_trajectory(self, item: Any) -> Any:
        number.set(next(self.numbers))
        return await super().collect_trajectory(item)

    def format_prompt(self, item: Any) -> str:
        return f"rollout {number.get()}."

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        self.scored.append(number.get())
        return float(number.get())

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


def script(conversation: Any) -> Any:
    return say("done") if conversation.turn else call("write_file", path="a.txt", content=conversation.first_user)


async def built(make_env: Any, mode: str, **fields: Any) -> Any:
    settings = {"enabled_toolsets": ["file"], "server_type": mode, "group_size": 3, "min_items_sent_before_logging": 10**6}
    env = make_env(Env, script=script, **{**settings, **fields})
    await env.setup()
    return env


async def counts_of(env: Any) -> dict[str, Any]:
    with capturing_wandb(env) as logged:
        await env.wandb_log()
    return {name.partition("train/")[2]: value for name, value in logged[0].items() if "train/" in name and value}


def row(place: str, kind: str, *, is_once: bool, mode: str = "", **cells: str) -> str:
    how = ("once" if is_once else "every time") + mode
    return f"| {place} | `{kind}`: {FAULTS[place][kind]} | {how} | {' | '.join(cells.values())} |"


def described(env: Any, group: Any, counts: dict[str, Any]) -> dict[str, str]:
    """Return the cells of a group that was collected, or None if it was dropped."""
    ends = [end for end in RolloutEnd if f"rollouts_{end}" in counts and end.is_failure]
    trained = [] if group is None else [any(label != -100 for label in labels) for labels in group["masks"]]
    hidden = {"rollouts", "rollouts_finished", "tool_error_details"}
    return {
        "end": ", then ".join([f"`{end}`" for end in ends] + (["`finished`"] if any(trained) else [])),
        "reward": "computed" if ODD in env.scored else "not computed",
        "trains": "every reply" if trained and all(trained) else "nothing",
        "group": "is trained" if any(trained) else "is dropped",
        "counted": ", ".join(f"`{name}`" for name in sorted(set(counts) - hidden)) or "nothing",
    }


def assert_in_page(seen: str) -> None:
    assert seen in PAGE.read_text(encoding="utf-8").splitlines()


# ---------------------------------------------------------------------- the model and the sandbox


@pytest.mark.parametrize("is_once", [True, False])
@pytest.mark.parametrize("kind", FAULTS["model"])
def test_model(make_env, fake_sandbox, fault_plan, kind, is_once):
    """The same in chat mode, on vLLM and on SGLang, but for answers that cannot be read: token mode says so with an error."""
    modes = ("openai", "vllm") if kind == "hangs" else ("openai", "vllm", "sglang")  # two timeouts are enough to wait for

    async def play(mode: str) -> str:
        env = await built(make_env, mode)
        if is_once or mode == modes[0]:
            fault_plan.on("model", kind, where=STRUCK, **ALWAYS[is_once])
        if kind == "hangs":
            for server in env.server.servers:
                server.config.timeout = TIMEOUT_S
                if mode == "openai":
                    server.openai.timeout = TIMEOUT_S
        try:
            group, _ = await env.collect_trajectories("x")
        except TokenModeError:
            cells = described(env, None, await counts_of(env)) | {"group": "is dropped, with a TokenModeError"}
            return row("model", kind, is_once=is_once, mode=", token mode", **cells)
        named = ", chat mode" if (kind, is_once, mode) == ("broken_json", False, "openai") else ""
        return row("model", kind, is_once=is_once, mode=named, **described(env, group, await counts_of(env)))

    rows = [asyncio.run(play(mode)) for mode in modes]

    assert len(set(rows[1:])) == 1
    assert (rows[0] != rows[1]) is ("chat mode" in rows[0])
    for each in rows[:2]:
        assert_in_page(each)


@pytest.mark.parametrize("is_once", [True, False])
@pytest.mark.parametrize("kind", [kind for kind in FAULTS["sandbox"] if kind != "hangs"])
def test_sandbox(request, fault_plan, kind, is_once):
    """A tool's fault is the model's to deal with; a sandbox that cannot be opened is a failure."""
    where = "open hermes-" if kind == "cannot_open" else STRUCK
    if kind != "cannot_open":  # an in-memory machine has no directory
        request.getfixturevalue("fake_sandbox")
    make_env = request.getfixturevalue("make_env")

    async def play() -> str:
        env = await built(make_env, "vllm")
        fault_plan.on("sandbox", kind, where=where, **ALWAYS[is_once])
        group, _ = await env.collect_trajectories("x")
        return row("sandbox", kind, is_once=is_once, **described(env, group, await counts_of(env)))

    assert_in_page(asyncio.run(play()))


@pytest.mark.hermes_allow_leftovers
def test_hanging_tool(make_env, fake_sandbox, fault_plan):
    """`serve` cancels the worker after worker_timeout: the tool is interrupted, and the group is lost and counted."""
    fault_plan.on("sandbox", "hangs", where=STRUCK)

    async def play() -> str:
        env = await built(make_env, "vllm", worker_timeout=50)
        env.running_items["u"] = {"item": "x", "start_time": time.time() - 100}
        worker = asyncio.ensure_future(env.handle_env("u"))
        while not fault_plan.strikes:
            await asyncio.sleep(0.01)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        cells = described(env, None, await counts_of(env)) | {"end": "none: its worker is cancelled", "group": "is lost"}
        return row("sandbox", "hangs", is_once=False, **cells)

    assert_in_page(asyncio.run(play()))


# ---------------------------------------------------------------------- run-api and the trainer


async def delivered(
    make_env: Any, run_api: Any, trainer: Any, fault_plan: FaultPlan, place: str, kind: str, **when: Any
) -> Any:
    """Register, collect and send a group while the fault is planned, and ask run-api's status four times, as `serve` does."""
    trainer.batch_size = 3
    await asyncio.to_thread(trainer.register)
    env = await built(make_env, "vllm", rollout_server_url=run_api.url)
    await env.register_env()
    await env.get_server_info()
    await env.get_status()
    where = "POST /scored_data" if place == "run_api" else "GET /batch"
    fault_plan.on(place, kind, where=where, **when)
    env.running_items["u"] = {"item": "x"}
    await env.handle_env("u")
    for _ in range(4):
        await env.get_status()
    return env


@pytest.mark.parametrize("is_once", [True, False])
@pytest.mark.parametrize("kind", [kind for kind in FAULTS["run_api"] if kind != "hangs"])
def test_run_api(make_env, fake_sandbox, run_api, trainer, fault_plan, kind, is_once):
    """What becomes of a group that is sent to it."""

    async def play() -> str:
        env = await delivered(make_env, run_api, trainer, fault_plan, "run_api", kind, **ALWAYS[is_once])
        waiting, arrived = len(env._hermes_run_api._waiting), len(run_api.queue)
        assert waiting + arrived <= 1
        counts = await counts_of(env)
        counts = {name: value for name, value in counts.items() if name.startswith(("rollouts", "deliveries", "groups"))}
        cells = described(env, {"masks": [[1]]} if arrived else None, counts)
        fate = "arrives once" if arrived else "is kept, and sent again" if waiting else "is given up"
        return row("run_api", kind, is_once=is_once, **cells | {"end": "`finished`", "group": fate})

    assert_in_page(asyncio.run(play()))


@pytest.mark.parametrize("is_once", [True, False])
@pytest.mark.parametrize("kind", [kind for kind in FAULTS["trainer"] if kind != "hangs"])
def test_trainer(make_env, fake_sandbox, run_api, trainer, fault_plan, kind, is_once):
    """What becomes of a batch that it asks for. run-api forgets a batch when it answers."""

    async def play() -> str:
        env = await delivered(make_env, run_api, trainer, fault_plan, "trainer", kind, **ALWAYS[is_once])
        counts = await counts_of(env)
        counts = {name: value for name, value in counts.items() if name.startswith(("rollouts", "deliveries", "groups"))}
        pulled = []
        for _ in range(3):
            try:
                pulled.append(await asyncio.to_thread(trainer.poll))
            except NoBatch:
                pulled.append(None)
        is_there = any(pulled) or bool(run_api.queue)
        fate = "is pulled" if any(pulled) else "stays in run-api's queue" if is_there else "is lost with the answer"
        cells = described(env, {"masks": [[1]]} if any(pulled) else None, counts)
        return row("trainer", kind, is_once=is_once, **cells | {"end": "`finished`", "group": fate})

    assert_in_page(asyncio.run(play()))


@pytest.mark.hermes_allow_leftovers
@pytest.mark.parametrize("is_once", [True, False])
@pytest.mark.parametrize("place", ["run_api", "trainer"])
def test_service_that_hangs(make_env, fake_sandbox, run_api, trainer, fault_plan, monkeypatch, place, is_once):
    """The request ends with its client's timeout."""
    monkeypatch.setattr("environments.trainer.run_api_link.REQUEST_S", 0.3)
    monkeypatch.setattr("pytest_hermes_env.atropos.trainer.REQUEST_S", 0.3)
    (test_run_api if place == "run_api" else test_trainer)(
        make_env, fake_sandbox, run_api, trainer, fault_plan, "hangs", is_once
    )


def test_table_has_every_fault():
    """Each fault has its rows, with no empty cell."""
    lines = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(tuple(f"| {p} |" for p in FAULTS))
    ]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    seen = {(cells[0], cells[1].split("`")[1]) for cells in rows}

    assert seen == {(place, kind) for place, kinds in FAULTS.items() for kind in kinds}
    assert all(len(cells) == 8 and all(cells) for cells in rows)
