"""HE203: evaluation items are no training items."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_hermes_env.contract.rules.he203_eval_is_held_out import dynamic
from pytest_hermes_env.contract.verdict import Outcome
from pytest_hermes_env.play.journal import Place, Reward
from pytest_hermes_env.play.scenario import ItemSeen, Scenario
from pytest_hermes_env.source.finding import Finding

from .rule_cases import broken, check, open_, other, sound


def env(setup: str, drawn: str = "self.train[self.i % len(self.train)]", walked: str = "self.held_out", more: str = "") -> str:
    """Return an environment that splits, draws and goes through rows like this."""
    lines = "".join(f"        {line}\n" for line in setup.splitlines())
    return (
        f"import random\nfrom datasets import load_dataset\n{more}\nclass Env(HermesAgentBaseEnv):\n    async def setup(self):\n{lines}"
        f"    async def get_next_item(self):\n        self.i += 1\n        return {drawn}\n"
        f"    async def evaluate(self):\n        for item in {walked}:  # <- here\n            await self.rollout(item)\n"
    )


SAME = "evaluate iterates over self.train, from which get_next_item takes training items"
SHARED = (
    "evaluate iterates over self.held_out, which shares rows with self.train, from which get_next_item takes training items"
)

CASES = (
    broken("the same list", env("self.train = [1, 2]", walked="self.train"), SAME),
    broken(
        "the same list, in other words",
        env("self.train = [1]", "random.choice(self.train)", "enumerate(list(self.train))"),
        SAME,
    ),
    broken("two names of one list", env("rows = [1]\nself.train = rows\nself.held_out = list(rows)"), SHARED),
    broken(
        "a slice of what is trained on",
        env("self.train = [1, 2]\nself.held_out = self.train[:1]").replace(
            "self.train = [1, 2]\n        self.held_out = self.train[:1]",
            "rows = [1, 2]\n        self.train = rows\n        self.held_out = rows[:1]",
        ),
        SHARED,
    ),
    broken("slices that overlap", env("rows = [1]\nn = 1\nself.train, self.held_out = rows[:n], rows[:n]"), SHARED),
    broken(
        "the same split of a dataset",
        env('self.train = load_dataset("a", split="train")\nself.held_out = load_dataset("a", split="train")'),
        SHARED,
    ),
    sound("two slices", env("rows = [1]\nn = 1\nself.train, self.held_out = rows[n:], rows[:n]")),
    sound("from the end", env("self.train = ROWS[:-3]\nself.held_out = ROWS[-3:]", more="ROWS = [1, 2, 3, 4]\n")),
    sound("two lists", env("self.train, self.held_out = [1], [2]", "self.train.pop()")),
    sound(
        "two splits of a dataset",
        env('self.train = load_dataset("a", split="train")\nself.held_out = load_dataset("a", split="test")'),
    ),
    open_("computed", env("self.train, self.held_out = self.split()")),
    open_("an index of its own", env("self.train = [1, 2]", "self.train[self.order[self.i]]", "self.train[-2:]")),
    other("nothing to train on", env("self.held_out = [1]", "None")),
    open_("a base that cannot be read", "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv): ...\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_evaluation_is_held_out(judge, case):
    check(judge, "HE203", case)


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
