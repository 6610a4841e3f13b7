"""Scenarios are collected once, only where they are asked for, and no environment can break the run."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import tqdm

from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.play.child import Job
from pytest_hermes_env.play.driver import Collector
from pytest_hermes_env.play.evidence_file import read_evidence
from pytest_hermes_env.play.journal import (
    NEVER_RETURNED,
    Blocked,
    Cleaned,
    ContextOpened,
    Crossed,
    EvaluationLogged,
    LoopStarted,
    Reward,
    SurroundingChanged,
)
from pytest_hermes_env.play.player import play_all
from pytest_hermes_env.play.scenario import TAMPERING, WRONG_PROGRAMS, Collection, Scenario
from pytest_hermes_env.play.scenarios import FAMILIES, SCENARIOS, families_of
from pytest_hermes_env.play.scenarios.roles import EVALUATIONS, GROUPS

from .small_env import SmallEnv, line_of

TRAINING = ("happy", "silent")


def collected(env_class: type, *names: str, timeout_s: float = 30) -> Collection:
    """Return what the scenarios gave, played in a process of their own."""
    job = Job(target=env_class.__name__, env_class=env_class, scenarios=names, timeout_s=timeout_s)
    with tempfile.TemporaryDirectory() as directory:
        (played,) = read_evidence(*play_all([job], directory))
    return played.collection


def one(env_class: type, name: str, *, timeout_s: float = 30) -> Scenario:
    """Return one scenario."""
    return collected(env_class, name, timeout_s=timeout_s).scenarios[name]


@pytest.fixture(scope="module")
def good() -> dict[str, Scenario]:
    """Every scenario of the small environment."""
    return collected(SmallEnv, *SCENARIOS).scenarios


def test_scenario_names_are_used_once() -> None:
    """A name belongs to one family."""
    names = [name for family in FAMILIES for name in family.scenarios]

    assert sorted(names) == sorted(SCENARIOS)


def test_every_scenario_is_read_by_a_rule() -> None:
    """One that nobody reads would only cost time."""
    read = {name for rule in ALL_RULES for name in rule.scenarios}

    assert set(SCENARIOS) - read == set()


def test_an_unknown_scenario_is_refused() -> None:
    """A rule that reads a scenario that does not exist is told."""
    with pytest.raises(KeyError) as caught:
        families_of(frozenset({"hapy"}))

    assert caught.value.args[0] == f"there is no scenario 'hapy'; known: {', '.join(SCENARIOS)}"


def test_everything_can_be_played_on_a_good_environment(good: dict[str, Scenario]) -> None:
    """Only what does not concern it is left out, with the reason; nothing is raised but what the scenario injects."""
    missing = {name: str(record.unavailable) for name, record in good.items() if record.unavailable}
    errors = {name: record.error for name, record in good.items() if record.error}

    no_judge = "no judge was called: every request of a training group offered tools"
    assert missing == dict.fromkeys(("garbage_judge", "null_judge", "wordless_judge", "failing_judge"), no_judge) | {
        **dict.fromkeys((*GROUPS, TAMPERING), "no gold is declared that can be played on a training item"),
        **dict.fromkeys(EVALUATIONS, "no gold is declared that can be played on a held-out item"),
        "answers_replaced": "no field of the item is named like an answer",
        WRONG_PROGRAMS: "it is part of `hermes-env attack`, and of --hermes-effort 2",
        "with_tokens": "chat mode has no sampled tokens",
        "drifting": "chat mode has no sampled tokens",
        "cut_short": "chat mode has no sampled tokens",
    }
    assert errors == {
        "evaluate_one_reward_raises": "InjectedFault: the reward failed, as this scenario requires",
        "evaluate_one_loop_raises": "InjectedFault: the agent loop failed, as this scenario requires",
        "evaluate_reward_raises": "InjectedFault: the reward failed, as this scenario requires",
        "evaluate_loop_raises": "InjectedFault: the agent loop failed, as this scenario requires",
    }


def test_only_the_scenarios_that_are_asked_for_are_played() -> None:
    """A run of one rule costs what it reads; what was played is kept."""
    collector = Collector(SmallEnv, timeout_s=30)

    first = set(collector.collect(["items"]).scenarios)
    happy = collector.collect(TRAINING).scenarios["happy"]
    again = collector.collect(["items", *TRAINING]).scenarios

    assert first == {"items"}
    assert set(again) == {"items", "setup", "happy", "silent"}
    assert again["happy"] is happy


def test_items_are_taken_until_they_repeat(good: dict[str, Scenario]) -> None:
    """The record holds each item with its prompt, and says that they come round."""
    record = good["items"]

    assert [(item.value, item.prompt, item.error, item.is_changed) for item in record.items[:2]] == [
        ({"word": "blue"}, "Print blue", "", False),
        ({"word": "red"}, "Print red", "", False),
    ]
    assert record.note == "the first item was returned again after 2"
    assert len({item.key for item in record.items}) == 2


def test_a_loop_is_recorded_with_what_it_was_built_with(good: dict[str, Scenario]) -> None:
    """Settings and messages of each loop are in the record."""
    trained, evaluated = good["happy"].of(LoopStarted)[0], good["evaluate"].of(LoopStarted)[0]

    assert (trained.system_prompt, trained.messages[-1]["content"], trained.temperature, trained.max_turns) == (
        "Be brief.",
        "Print blue",
        1.0,
        4,
    )
    assert (evaluated.system_prompt, evaluated.messages[-1]["content"], evaluated.temperature) == (None, "Print green", 0.0)
    assert (trained.by_layer, evaluated.by_layer) == (True, False)


def test_a_reward_is_recorded_with_its_inputs(good: dict[str, Scenario]) -> None:
    """Item and messages are kept as they were, with the rollout that they belong to."""
    record = good["happy"]
    reward = record.of(Reward)[0]

    assert (reward.item, reward.changed, reward.value) == ({"word": "blue"}, (), 1.0)
    assert reward.messages[-1] == {"role": "assistant", "content": "The task is done."}
    assert {event.task_id for event in record.of(Reward)} == {event.task_id for event in record.of(LoopStarted)}


@pytest.mark.parametrize("name", ["cancelled_in_loop", "cancelled_in_tool", "cancelled_in_reward"])
def test_a_cancelled_group_releases_its_contexts(good: dict[str, Scenario], name: str) -> None:
    """What was opened before the cancellation is cleaned in the record."""
    opened = [event.number for event in good[name].of(ContextOpened)]
    cleaned = [event.number for event in good[name].of(Cleaned)]

    assert opened
    assert sorted(cleaned) == sorted(opened)


def test_concurrent_rollouts_have_words_of_their_own(good: dict[str, Scenario]) -> None:
    """Six rollouts at once: each word belongs to one of them and is seen in no other."""
    record = good["concurrent_groups"]
    owners = {canary.word: canary.task_id for canary in record.canaries}
    seen = [(sighting.name, word) for sighting in record.sightings if sighting.where == "messages" for word in sighting.words]

    assert record.note == "3 groups of 2 different items, 6 of 6 rewards at once"
    assert len(set(owners.values())) == 6
    assert sorted(seen) == sorted((task_id, word) for word, task_id in owners.items())
    assert record.of(Crossed) == []


def test_training_goes_on_beside_an_evaluation(good: dict[str, Scenario]) -> None:
    """The group begins and ends while the rewards of the evaluation wait; each has its own events."""
    record = good["evaluate_during_training"]

    assert [event.value for event in record.training_events if isinstance(event, Reward)] == [1.0, 1.0]
    assert [event.value for event in record.of(Reward)] == [1.0]
    assert record.note == ""
    assert [event.metrics for event in good["evaluate_twice"].of(EvaluationLogged)] == [{"eval/reward": 1.0}] * 2


def test_the_good_environment_leaves_nothing(good: dict[str, Scenario]) -> None:
    """No finding of surroundings comes from the layer's own doings."""
    seen = {name: (record.unrestored, record.left, record.of(Blocked)) for name, record in good.items()}

    assert {name: found for name, found in seen.items() if found != ((), (), [])} == {}


class Untidy(SmallEnv):
    """Sets a variable, changes the directory, and leaves things behind."""

    async def setup(self) -> None:
        """Leave a variable, a directory and a client."""
        await super().setup()
        os.environ["UNTIDY"] = "yes"
        self.directory = tempfile.mkdtemp(prefix="untidy-")
        self.client = httpx.AsyncClient()
        self.stop = threading.Event()
        threading.Thread(target=self.stop.wait, name="untidy", daemon=True).start()
        self.monitor = tqdm.TMonitor(tqdm.tqdm, 10)


def test_what_is_left_is_found_at_its_line() -> None:
    """Variables, directories, clients and threads of the environment are named with the line that made them.

    The monitor that tqdm keeps for the process is none of its.
    """
    scenarios = collected(Untidy, "setup", "closing").scenarios
    left = {(thing.kind, thing.place.line) for thing in scenarios["closing"].left}
    for thing in scenarios["closing"].left:
        if thing.kind == "temporary directory":
            Path(thing.name).rmdir()

    (changed,) = scenarios["setup"].unrestored
    assert (changed.name, changed.before, changed.after) == ("UNTIDY", None, "yes")
    assert changed.place.line == line_of(Untidy.setup, "UNTIDY")
    assert left == {
        ("temporary directory", line_of(Untidy.setup, "mkdtemp")),
        ("client", line_of(Untidy.setup, "AsyncClient")),
        ("thread", line_of(Untidy.setup, "Thread(")),
    }
    assert "UNTIDY" not in os.environ


class Meeting(SmallEnv):
    """Keeps the context of the rollout on itself."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Use whichever context was opened last."""
        return await super().compute_reward(item, result, self.ctx)

    async def collect_trajectory(self, item: Any) -> Any:
        """Remember the task of this rollout, also for all others."""
        from environments import hermes_base_env

        real, env = hermes_base_env.ToolContext, self

        class Kept(real):  # type: ignore[misc, valid-type]
            def __init__(self, task_id: str) -> None:
                super().__init__(task_id)
                env.ctx = self

        hermes_base_env.ToolContext = Kept  # type: ignore[misc]
        try:
            return await super().collect_trajectory(item)
        finally:
            hermes_base_env.ToolContext = real  # type: ignore[misc]


def test_a_verifier_in_another_rollouts_sandbox_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """State on self makes rewards look into one sandbox; each such call is written down."""
    from environments import hermes_base_env

    # concurrent rollouts restore the class in any order, so the last one may leave a subclass behind
    monkeypatch.setattr(hermes_base_env, "ToolContext", hermes_base_env.ToolContext)
    crossed = one(Meeting, "concurrent_groups").of(Crossed)

    assert {event.phase for event in crossed} == {"reward"}
    assert len({event.task_id for event in crossed}) == 5


class Sleepy(SmallEnv):
    """Blocks the event loop."""

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Block for a while of the processor's time, however busy the machine is, then evaluate."""
        deadline = time.thread_time() + 1.0
        while time.thread_time() < deadline:
            sum(range(1000))
        await asyncio.sleep(0.5)  # on a busy machine the sampler comes late to the end of a step, and the scenario may be over
        await super().evaluate(*args, **kwargs)


def test_who_blocks_the_loop_is_named() -> None:
    """A step that is too long is written down with the function that it spent its time in."""
    blocked = one(Sleepy, "evaluate").of(Blocked)

    assert [(event.place.path, event.place.function) for event in blocked] == [(__file__, "evaluate")]
    assert blocked[0].seconds >= 0.1


class Endless(SmallEnv):
    """Never comes back from setup."""

    async def setup(self) -> None:
        """Hang without a return to the loop."""
        while True:
            pass


class Exiting(SmallEnv):
    """Ends the program in a task of its own, which no layer awaits."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Leave."""
        del item, result, ctx

        async def leave() -> float:
            sys.exit(3)

        return await asyncio.ensure_future(leave())


class Killing(SmallEnv):
    """Ends the process where it lacks what it needs."""

    async def setup(self) -> None:
        os._exit(0)


def test_an_environment_that_kills_the_process_only_fails() -> None:
    """A run would end with its exit code, 0 here, and without a report."""
    assert one(Killing, "happy").unavailable.detail == "it ended its process with exit code 0"


class Stopping(SmallEnv):
    """Stops the event loop."""

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Stop, then evaluate."""
        asyncio.get_running_loop().stop()
        await super().evaluate(*args, **kwargs)


def test_an_environment_that_spins_is_ended() -> None:
    """Code that never returns to the loop is interrupted; the other families go on."""
    records = collected(Endless, "happy", timeout_s=0.5).scenarios

    reason = "it blocked the event loop for 0.5 s and did not return"
    assert str(records["happy"].unavailable) == f"setup failed: {reason}"


class WaitingReward(SmallEnv):
    """Waits forever for what no other rollout brings."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Hang."""
        await asyncio.Event().wait()
        return 1.0


def test_a_reward_that_waits_forever_is_told_as_such() -> None:
    """It raised nothing: the scenario's time was over."""
    (reward, *_) = one(WaitingReward, "happy", timeout_s=2).of(Reward)

    assert (reward.error, reward.place.line) == (NEVER_RETURNED, line_of(WaitingReward.compute_reward, "Event"))


def test_an_environment_that_exits_does_not_end_the_run() -> None:
    """SystemExit in a task ends a loop: the scenario has the error, those after it in its family have a reason, and others are played."""
    records = collected(Exiting, *TRAINING, "items").scenarios

    assert records["happy"].error == "it raised SystemExit: 3, which ended its event loop"
    assert str(records["silent"].unavailable) == f"an earlier scenario failed: {records['happy'].error}"
    assert records["items"].happened


def test_an_environment_that_stops_the_loop_fails() -> None:
    """A stopped loop would end the trainer's run; here it ends no other scenario."""
    record = one(Stopping, "evaluate")

    assert (record.error.partition(":")[0], record.error_place.line) == (
        "it raised RuntimeError",
        line_of(Stopping.evaluate, "stop"),
    )


def test_collecting_works_inside_a_running_loop() -> None:
    """An asynchronous test may ask for the contract."""

    async def ask() -> Scenario:
        return one(SmallEnv, "happy")

    assert asyncio.run(ask()).error == ""


class Online(SmallEnv):
    """Asks another machine for its items."""

    async def setup(self) -> None:
        """Connect."""
        await super().setup()
        async with httpx.AsyncClient() as client:
            await client.get("http://items.example.invalid/items.json")


def test_offline_names_the_host_that_was_asked_for() -> None:
    """A setup that needs the network fails at once, and the note says whom it asked."""
    record = one(Online, "setup_offline")

    assert record.error.startswith("ConnectError: ")
    assert record.note == "requested items.example.invalid"


def test_changes_that_are_put_back_are_none() -> None:
    """A variable that has its old value again was restored."""

    class Tidy(SmallEnv):
        async def setup(self) -> None:
            await super().setup()
            os.environ["TIDY"] = "yes"
            del os.environ["TIDY"]

    record = one(Tidy, "setup")

    assert len(record.of(SurroundingChanged)) == 2
    assert record.unrestored == ()


class Benchmark(SmallEnv):
    """Only evaluates: what gives training items is a stub."""

    async def get_next_item(self) -> Any:
        """Say that there is nothing to train on."""
        raise NotImplementedError("this is a benchmark")


def test_a_benchmark_whose_items_are_a_stub_is_evaluated() -> None:
    """The stub is no failure of setup; what trains is left out, with its reason."""
    scenarios = collected(Benchmark, "items", "happy", "evaluate").scenarios

    assert (scenarios["items"].error, scenarios["items"].note) == (
        "",
        "get_next_item raises NotImplementedError: it is a stub, there is nothing to train on",
    )
    assert str(scenarios["happy"].unavailable) == (
        "there is nothing to train on: get_next_item returns nothing by its own code, so the class is an evaluation"
    )
    assert (scenarios["evaluate"].error, bool(scenarios["evaluate"].of(LoopStarted))) == ("", True)


class OneAtATime(SmallEnv):
    """Holds something that only one instance can have, and releases it."""

    is_taken = False

    async def setup(self) -> None:
        """Take it."""
        if type(self).is_taken:
            raise OSError("the port is in use")
        type(self).is_taken = True
        await super().setup()

    async def close(self) -> None:
        """Release it."""
        type(self).is_taken = False


def test_a_class_of_which_one_instance_can_live_is_played_one_after_the_other() -> None:
    """Each family is played, and what failed beside another instance is kept."""
    collection = collected(OneAtATime, "happy", "evaluate", "wandb_log")

    assert [collection.scenarios[name].happened for name in ("happy", "evaluate", "wandb_log")] == [True] * 3
    assert "OSError: the port is in use" in str(collection.fails_beside_another)
