"""HE203: evaluation items are no training items."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules.he203_eval_is_held_out import _shown, _used_up, dynamic
from pytest_hermes_env.play.journal import Place, Reward
from pytest_hermes_env.play.scenario import ItemSeen, Scenario
from pytest_hermes_env.source import read_class
from pytest_hermes_env.source.finding import Finding


def evidence(prompts: dict[str, str], evaluated: tuple[object, ...] = ()):
    """Return what was seen where training items, by key, have these prompts, and evaluation asks "Guess"."""
    items = tuple(ItemSeen(value={"id": key, "secret": key}, key=key, prompt=prompt) for key, prompt in prompts.items())
    request = {"tools": [{}], "messages": [{"role": "user", "content": "Guess"}]}
    rewards = tuple(Reward(value=1.0, error="", injected=False, place=Place(), item=item) for item in evaluated)
    scenarios = {
        "items": Scenario(name="items", items=items),
        "evaluate": Scenario(name="evaluate", requests=(request,), events=rewards),
    }
    return SimpleNamespace(
        scenario=scenarios.__getitem__,
        finding=lambda message, *methods, **rest: Finding(message=message, path="env.py", line=7, **rest),
        without_items=lambda: None,
        is_own=lambda method: False,
        source=None,
        collection=SimpleNamespace(nothing_to_train=""),
    )


LEAKED = ["1 of 1 evaluation prompts are training prompts"]


def test_a_prompt_of_training_in_evaluation_is_found():
    verdict = dynamic(evidence({"one": "Guess", "two": "Spell"}))

    assert verdict.outcome is Outcome.FAILED
    assert [item.message for item in verdict.findings] == LEAKED


@pytest.mark.parametrize("others", [{}, {"three": "Spell"}])
def test_a_prompt_that_several_items_share_tells_nothing_about_them(others):
    """A game asks the same of many items, whose secret is elsewhere."""
    verdict = dynamic(evidence({"one": "Guess", "two": "Guess", **others}))

    assert (verdict.outcome, verdict.note) == (
        Outcome.NOT_EXERCISED,
        "different training items have the same prompt, so prompts cannot show whether evaluation uses them",
    )


@pytest.mark.parametrize("count", [1, 2])
def test_items_that_evaluation_scored_show_whether_a_shared_prompt_is_a_shared_task(count):
    """A label names an item and does not change it; everything else does."""
    prompts = dict.fromkeys(["one", "two"][:count], "Guess")
    held_out = dynamic(evidence(prompts, ({"id": "one", "secret": "nine"},)))
    leaked = dynamic(evidence(prompts, ({"id": "eval-7", "secret": "one", "split": "eval"},)))

    assert (held_out.outcome, leaked.outcome) == (Outcome.PASSED, Outcome.FAILED)
    assert [item.message for item in leaked.findings] == LEAKED


LINES = ["A traveller leaves Oslo at noon and needs seven hours.", "A traveller leaves Rome at dawn and needs three hours."]


@pytest.mark.parametrize(
    ("prompts", "shown"),
    [
        ([f"Examples:\n{LINES[0]}\n19:00\nNow yours.\nA traveller stays."], [LINES[0]]),
        (["Examples:\nA traveller stays.\nNow yours.\nA traveller goes."], []),
        ([f"{LINES[0][:30]}\nNow yours."], []),
        ([f"{LINES[0]}\nNow yours.", "Another.", "And another."], []),
    ],
)
def test_a_task_of_the_evaluation_may_be_an_example_of_training(prompts, shown):
    """The lines that it has more often than the other prompts of the evaluation: examples stand in all of these, too, and in most of training."""
    asked = [f"Examples:\n{LINES[0]}\n19:00\nNow yours.\n{line}" for line in LINES]

    assert _shown(asked, prompts) == shown


def test_tasks_of_the_same_lines_in_another_order_are_others():
    """Moves of a robot come from a few."""
    moves = ["go north", "go east", "go south", "go west", "turn", "wait"]
    asked = ["\n".join(moves[at:] + moves[:at] + moves[:2]) for at in (0, 1)]
    trained = ["\n".join(moves[::-1] * 2), "\n".join((moves[3:] + moves[:3])[::-1] * 2)]

    assert _shown(asked, trained) == []


SOURCE = """
class Env(HermesAgentBaseEnv):
    async def setup(self):
        self.train = iter(ITEMS)
        self.held_out = {held_out}

    async def get_next_item(self):
        return next(self.train)

    async def evaluate(self, *args, **kwargs):
        for item in self.held_out:
            ...
"""


@pytest.mark.parametrize(
    ("held_out", "is_told"),
    [("filter(is_held_out, ITEMS)", True), ("(item for item in ITEMS)", True), ("list(filter(is_held_out, ITEMS))", False)],
)
def test_an_iterator_is_used_up_by_the_first_evaluation(tmp_path, held_out, is_told):
    """Training may take its items from one."""
    file = tmp_path / "env.py"
    file.write_text(SOURCE.format(held_out=held_out), encoding="utf-8")

    found = _used_up(read_class(str(file), "Env"))

    assert (found is not None and "self.held_out is an iterator" in found.message) == is_told
    assert _used_up(None) is None


def test_an_iterator_that_is_made_again_is_not_used_up(tmp_path):
    """A method of its own begins it anew."""
    again = "    def begin(self):\n        self.held_out = iter(ITEMS)\n\n    async def evaluate"
    file = tmp_path / "env.py"
    file.write_text(SOURCE.format(held_out="iter(ITEMS)").replace("    async def evaluate", again), encoding="utf-8")

    assert _used_up(read_class(str(file), "Env")) is None
