"""A stage plays scenarios on one environment, and freezes what happened in each."""

from __future__ import annotations

import asyncio
import signal
import sys
import unittest
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env.play import stage as stage_module
from pytest_hermes_env.play.blocking import watching
from pytest_hermes_env.play.first_setup import FirstSetup
from pytest_hermes_env.play.journal import ItemScored, Journal, current_faults, current_journal
from pytest_hermes_env.play.scenario import Cause, Scenario, Unavailable
from pytest_hermes_env.play.watchers.call_site import EnvironmentCode

from .bare import HermesAgentBaseEnv, bare_layer, bare_stage, run
from .small_env import line_of


async def fail() -> None:
    """Raise."""
    raise ValueError("no such thing")


async def leave() -> None:
    """Exit."""
    sys.exit(3)


async def fail_together() -> None:
    """Raise in a group."""
    async with asyncio.TaskGroup() as group:
        group.create_task(fail())


def fail_at_once() -> None:
    """Raise before there is anything to wait for."""
    raise TypeError("takes no arguments")


def raising(kind: type[BaseException], *arguments: Any) -> Any:
    """Return a coroutine function that raises."""

    async def act() -> None:
        await asyncio.sleep(0)
        raise kind(*arguments)

    return act


def in_a_thread(kind: type[BaseException], *arguments: Any) -> Any:
    """Return one that raises in another thread."""

    def leave_the_thread() -> None:
        raise kind(*arguments)

    async def act() -> None:
        await asyncio.to_thread(leave_the_thread)

    return act


async def cancel_itself() -> None:
    """Cancel the task that runs it."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


def run_watched(work: Any) -> Any:
    """Run a coroutine function in a loop that registers tasks with their journal."""

    async def main() -> Any:
        with watching(asyncio.get_running_loop(), lambda _: None):
            return await work()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (fail, "ValueError: no such thing"),
        (leave, "SystemExit: 3"),
        (fail_together, "ValueError: no such thing"),
        (fail_at_once, "TypeError: takes no arguments"),
        (raising(KeyboardInterrupt), "KeyboardInterrupt"),
        (raising(GeneratorExit), "GeneratorExit"),
        (raising(asyncio.CancelledError), "CancelledError"),
        (raising(TimeoutError), "TimeoutError"),
        (raising(StopAsyncIteration), "StopAsyncIteration"),
        (raising(unittest.SkipTest, "no GPU"), "SkipTest: no GPU"),
        (raising(pytest.skip.Exception, "no GPU"), "Skipped: no GPU"),
        (raising(pytest.exit.Exception, "enough"), "Exit: enough"),
        (in_a_thread(SystemExit, 4), "SystemExit: 4"),
        (cancel_itself, "CancelledError"),
        (lambda: None, ""),
    ],
)
def test_what_is_raised_is_part_of_the_record(act: Any, error: str) -> None:
    """Exceptions of every kind, exits, and the first error of a group; none of them ends the run, or a test of it."""
    stage = bare_stage()

    record = run_watched(lambda: stage.play("scenario", act))

    assert (record.error, stage.scenarios) == (error, {"scenario": record})


class Failing(HermesAgentBaseEnv):
    """Fails in its own file."""

    async def setup(self) -> None:
        """Call something that raises."""
        await fail()


def test_an_error_has_the_line_of_the_class() -> None:
    """The last line of the traceback that lies in the class's file."""
    stage = bare_stage(Failing(), code=EnvironmentCode(Failing, bare_layer()))

    place = run(lambda: stage.play("setup", stage.env.setup)).error_place

    assert (place.path, place.line, place.function) == (__file__, line_of(fail, "raise"), "fail")


def test_a_scenario_that_never_ends_is_given_up() -> None:
    """The reason names its time."""
    stage = bare_stage(timeout_s=0.01)

    assert run(lambda: stage.play("scenario", lambda: asyncio.Event().wait())).error == "did not finish within 0.01 s"


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Python's own handler for Ctrl-C: a shell starts its background jobs with the signal ignored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("_interruptible")
def test_ctrl_c_ends_the_run() -> None:
    """The user's interrupt is nothing that an environment did."""

    async def press_it() -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)

    with pytest.raises(KeyboardInterrupt):
        run(lambda: bare_stage().play("scenario", press_it))


def test_a_cancellation_from_outside_goes_on() -> None:
    """Only what is cancelled inside of a scenario belongs to its record."""

    async def main() -> tuple[str, bool]:
        stage = bare_stage()
        record = await stage.play("inside", _cancelled)
        task = asyncio.ensure_future(stage.play("outside", lambda: asyncio.Event().wait()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        return record.error, task.cancelled()

    async def _cancelled() -> None:
        inner = asyncio.ensure_future(asyncio.Event().wait())
        inner.cancel()
        await inner

    assert asyncio.run(main()) == ("CancelledError", True)


def test_the_record_holds_what_changed_and_what_was_logged() -> None:
    """Pictures of the attributes before and after, metrics, warnings, events, and the fields that a family adds."""
    env = HermesAgentBaseEnv(rewards=[], config=SimpleNamespace())
    stage = bare_stage(env)

    async def act() -> None:
        journal = current_journal.get()
        assert journal is not None
        assert journal.log is not None
        env.rewards.append(1.0)
        journal.log({"on": True})
        journal.add(ItemScored(tokens=(), masks=()))
        journal.warnings.append("careful")

    record = run(lambda: stage.play("scenario", act, is_logging=True, more=lambda journal: {"note": str(len(journal.events))}))

    assert (record.before["rewards"][1], record.after["rewards"][1]) == (0, 1)
    assert (record.logged, record.warnings, record.note) == (({"on": True},), ("careful",), "1")
    assert record.events == (ItemScored(tokens=(), masks=()),)


def test_faults_hold_for_one_scenario() -> None:
    """The next one begins without."""
    stage, seen = bare_stage(), []

    def look() -> None:
        seen.append(current_faults().fault)

    async def both() -> None:
        await stage.play("one", look, fault="tools_fail")
        await stage.play("other", look)

    run(both)

    assert seen == ["tools_fail", "none"]


@pytest.mark.parametrize(
    ("group", "refusal"),
    [
        ({"tokens": [[1]], "masks": [[1]], "scores": [1.0]}, False),
        ({"tokens": [[1]], "masks": [[1]], "scores": [float("nan")]}, True),
        ([{"tokens": [[1]], "masks": [[1]], "scores": [1.0]}, {"tokens": "x"}], True),
        (None, False),
    ],
    ids=["good", "nan", "one of several", "no group"],
)
def test_a_group_that_run_api_would_refuse_says_why(group: Any, refusal: bool) -> None:
    """The record holds the group and the reason."""

    async def act() -> Any:
        return group, []

    record = run(lambda: bare_stage().play("scenario", act))

    assert (repr(record.group), bool(record.refusal)) == (repr(group), refusal)


def test_a_task_that_outlives_its_scenario_is_awaited() -> None:
    """asyncio.gather returns at its first failure; the others release their sandboxes a moment later."""
    done: list[str] = []

    async def late() -> None:
        await asyncio.sleep(0)
        done.append("released")

    async def act() -> None:
        asyncio.ensure_future(late())  # noqa: RUF006 - what an environment does

    run_watched(lambda: bare_stage().play("scenario", act))

    assert done == ["released"]


def test_a_task_that_never_ends_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it does not run into other scenarios."""
    monkeypatch.setattr(stage_module, "SETTLE_S", 0.01)
    tasks: list[asyncio.Task[Any]] = []

    async def act() -> None:
        tasks.append(asyncio.ensure_future(asyncio.Event().wait()))

    run_watched(lambda: bare_stage().play("scenario", act))

    assert [task.cancelled() for task in tasks] == [True]


async def reach_and_hang() -> None:
    """Hang where the scenario expects it."""
    current_faults().reached.set()
    await asyncio.Event().wait()


def test_a_scenario_is_cancelled_at_the_step_that_hangs() -> None:
    """It ends without an error of its own."""
    stage = bare_stage()

    record = run(lambda: stage.cancel("cancelled", reach_and_hang, fault="loop_hangs"))

    assert (record.happened, record.error) == (True, "")


@pytest.mark.parametrize("act", [lambda: asyncio.sleep(0), fail], ids=["ends", "fails"])
def test_a_step_that_is_never_reached_makes_the_scenario_unavailable(act: Any) -> None:
    """Nothing was cancelled, so nothing can be judged; where it need not be reached, the record stays."""
    stage = bare_stage()
    needed = run(lambda: stage.cancel("cancelled", act, fault="reward_hangs"))
    optional = run(lambda: stage.cancel("cancelled", act, fault="reward_hangs", is_needed=False))

    assert needed == Scenario(name="cancelled", unavailable=Unavailable(Cause.NOT_REACHED, "compute_reward"))
    assert optional.happened


def test_a_failed_setup_makes_all_scenarios_unavailable() -> None:
    """Each says why; the record of setup itself begins with what happened at the building."""
    building = Journal(events=[ItemScored(tokens=(), masks=())])
    stage = bare_stage(Failing(), names=("setup", "happy", "silent"), building=building)

    assert run(stage.prepare) is False
    assert stage.scenarios["setup"].events == tuple(building.events)
    assert [stage.scenarios[name].unavailable for name in ("setup", "happy", "silent")] == [
        Unavailable(Cause.SETUP_FAILED, "ValueError: no such thing")
    ] * 3


def test_after_a_first_failed_setup_no_other_one_is_tried() -> None:
    """The instances of a run share their first set-up: the second one gets the reason of the first."""
    first_setup = FirstSetup()
    first = bare_stage(Failing(), names=("happy",), first_setup=first_setup)
    second = bare_stage(names=("silent",), first_setup=first_setup)

    async def both() -> tuple[bool, bool]:
        return tuple(await asyncio.gather(first.prepare(), second.prepare()))

    assert run(both) == (False, False)
    assert second.scenarios == {"silent": Scenario(name="silent", unavailable=first.scenarios["happy"].unavailable)}


class Stub(HermesAgentBaseEnv):
    """Has nothing to train on."""

    async def get_next_item(self) -> Any:
        """Be a stub."""
        raise NotImplementedError


class Empty(HermesAgentBaseEnv):
    """Has a loader that left nothing."""

    async def get_next_item(self) -> Any:
        """Return the first of no items."""
        return next(iter([]), None)


def test_without_items_training_is_unavailable() -> None:
    """A stub of a benchmark has nothing to train on; an item source that is empty should have."""
    stub, empty = (bare_stage(kind(), names=("setup", "happy")) for kind in (Stub, Empty))

    assert [run(lambda stage=stage: stage.prepare(needs="item")) for stage in (stub, empty)] == [False, False]
    assert [stage.scenarios["happy"].unavailable for stage in (stub, empty)] == [
        Unavailable(Cause.NOTHING_TO_TRAIN, "get_next_item is a stub that raises NotImplementedError"),
        Unavailable(Cause.NO_ITEM, "get_next_item returned None"),
    ]


def test_an_environment_is_closed_by_its_own_methods() -> None:
    """Those that it has, synchronous or not, each as a scenario."""

    class Closable(HermesAgentBaseEnv):
        closed = ()

        async def aclose(self) -> None:
            self.closed += ("aclose",)

        def shutdown(self) -> None:
            self.closed += ("shutdown",)

    stage = bare_stage(Closable())
    run(stage.close)

    assert (stage.env.closed, list(stage.scenarios)) == (("aclose", "shutdown"), ["aclose at the end", "shutdown at the end"])


def test_each_scenario_that_hangs_leaves_the_next_ones_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dozen scenarios with the same deadlock cost little more than the first three."""
    monkeypatch.setattr(stage_module, "LATER_S", 0.04)
    stage = bare_stage(timeout_s=0.1)

    async def play() -> list[str]:
        return [(await stage.play(f"scenario {number}", asyncio.Event().wait)).error for number in range(3)]

    assert run(play) == [f"did not finish within {limit} s" for limit in ("0.1", "0.04", "0.02")]
