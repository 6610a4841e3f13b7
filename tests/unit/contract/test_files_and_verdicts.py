"""Files that are no text, marks in an order, answers that setup leaves behind, flags of a verdict, numbers under other names."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env import call, case, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules.he203_eval_is_held_out import _twins
from pytest_hermes_env.contract.rules.he406_judge_falls_back import _GOOD

from .test_around_gold import SumEnv, judged
from .test_judges_around_gold import AskedEnv


class SoundEnv(SumEnv):
    """Asks for sound as bytes, and looks at all of it."""

    prompts = "Write sound.bin: byte i of 3200 is (i * {a} + {b}) mod 255, plus one."
    heard: ClassVar[int] = 3200

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare the numbers."""
        found = str(ctx.terminal("od -An -v -tu1 -w1 sound.bin").get("output") or "").split()
        wanted = [str((i * item["a"] + item["b"]) % 255 + 1) for i in range(3200)]
        return float(len(found) == len(wanted) and found[: self.heard] == wanted[: self.heard])


class FirstHeardEnv(SoundEnv):
    """Listens to the first half."""

    heard = 1600


@pytest.mark.parametrize(("env_class", "outcome"), [(SoundEnv, Outcome.PASSED), (FirstHeardEnv, Outcome.FAILED)])
def test_a_part_of_a_file_that_is_no_text_may_be_blank(env_class: type, outcome: Outcome) -> None:
    """Where nobody looks at it, the rest of the work is for nothing."""
    program = "open('sound.bin', 'wb').write(bytes((i * {a} + {b}) % 255 + 1 for i in range(3200)))\n"
    gold = case(
        lambda item: [
            call("write_file", path="make.py", content=program.format(**item)),
            call("terminal", command="python3 make.py"),
            say("It is there."),
        ]
    )

    verdict = judged("HE405", env_class, cases([item_cases(where="*", gold=gold)]))

    assert verdict.outcome is outcome, verdict
    assert any("blank" in one.message for one in verdict.findings) is (outcome is Outcome.FAILED)


class OrderedEnv(SumEnv):
    """Asks for marks in the order of their weights."""

    prompts = "Write the marks X{a} Y{b} Z7 to order.txt, the heaviest first."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare all."""
        found = str(ctx.terminal("cat order.txt").get("output") or "").split()
        return float(found == [f"X{item['a']}", f"Y{item['b']}", "Z7"])


class CountedEnv(OrderedEnv):
    """Looks whether there are as many, each of them known, and none lighter than the one before."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare names."""
        found = str(ctx.terminal("cat order.txt").get("output") or "").split()
        known = [f"X{item['a']}", f"Y{item['b']}", "Z7"]
        return float(len(found) == len(known) and {*found} <= {*known} and found == sorted(found, key=known.index))


@pytest.mark.parametrize(("env_class", "outcome"), [(OrderedEnv, Outcome.PASSED), (CountedEnv, Outcome.FAILED)])
def test_marks_with_spaces_between_them_are_a_list(env_class: type, outcome: Outcome) -> None:
    """One of them as often as there are others is none of the orders that were asked for."""
    gold = case(
        lambda item: [call("write_file", path="order.txt", content="X{a} Y{b} Z7\n".format(**item)), say("It is there.")]
    )

    verdict = judged("HE405", env_class, cases([item_cases(where="*", gold=gold)]))

    assert verdict.outcome is outcome, verdict
    assert any("as often as it has parts" in one.message for one in verdict.findings) is (outcome is Outcome.FAILED)


class SavingEnv(SumEnv):
    """Keeps the items where everybody can read them."""

    secret: ClassVar[str] = "a long answer that nobody may know"
    saved: ClassVar[tuple[str, ...]] = ("a", "secret")

    async def setup(self) -> None:
        """Write them."""
        await super().setup()
        for number, item in enumerate([*self.items, *self.held_out]):
            item["secret"] = f"{self.secret} {number}"
        Path(tempfile.gettempdir(), "split.json").write_text(
            json.dumps([{**{name: item[name] for name in self.saved}, "sums": item["answer"]} for item in self.items])
            if "secret" in self.saved
            else json.dumps([item["a"] for item in self.items]),
            encoding="utf-8",
        )

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Ask for what is secret, too."""
        return float(self.read(ctx) == item["answer"] and bool(item["secret"]))


class CountingEnv(SavingEnv):
    """Keeps which items there are."""

    saved = ("a",)


class ToollessEnv(SavingEnv):
    """Its agent makes lists of what is to be done, and reads nothing."""

    @classmethod
    def config_init(cls) -> Any:
        """Offer no terminal."""
        config, servers = super().config_init()
        return config.model_copy(update={"enabled_toolsets": ["todo"]}), servers


@pytest.mark.parametrize(("env_class", "is_found"), [(SavingEnv, True), (CountingEnv, False), (ToollessEnv, False)])
def test_setup_leaves_no_answers_on_the_machine(
    env_class: type, is_found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's terminal is on the same one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    found = judged("HE208", env_class)

    assert any("split.json, which setup writes" in one.message for one in found.findings) is is_found, found


class VetoedEnv(AskedEnv):
    """Two marks count, and a flag takes all."""

    asked: ClassVar[str] = 'Reply {{"style": 0 to 4, "facts": 0 to 4, "invented": true or false}}. {text}'

    def score_in(self, text: str) -> float:
        """Add them."""
        try:
            verdict = json.loads(text)
            if not isinstance(verdict, dict) or verdict.get("invented") is None:
                return 0.0
            return self.of(verdict)
        except (ValueError, KeyError, TypeError):
            return 0.0

    def of(self, verdict: dict[str, Any]) -> float:
        """Look at the flag."""
        return 0.0 if verdict["invented"] else float(verdict["style"] + verdict["facts"]) / 8


class SpeltEnv(VetoedEnv):
    """Compares the flag with a text that it never is."""

    def of(self, verdict: dict[str, Any]) -> float:
        """Look at the flag."""
        return 0.0 if str(verdict["invented"]) == "true" else float(verdict["style"] + verdict["facts"]) / 8


class ListedEnv(VetoedEnv):
    """Notes what has it, and decides nothing by it."""

    noted: ClassVar[list[Any]] = []

    def of(self, verdict: dict[str, Any]) -> float:
        """Look at the flag."""
        if verdict["invented"]:
            self.noted.append(1)
        return float(verdict["style"] + verdict["facts"]) / 8


class NotedEnv(VetoedEnv):
    """Does not decide anything by the flag."""

    def of(self, verdict: dict[str, Any]) -> float:
        """Leave it."""
        return float(verdict["style"] + verdict["facts"]) / 8


@pytest.mark.parametrize(
    ("env_class", "is_found"), [(VetoedEnv, False), (SpeltEnv, True), (ListedEnv, False), (NotedEnv, False)]
)
def test_a_flag_that_the_reward_asks_for_counts(env_class: type, is_found: bool) -> None:
    """One that is only kept need not."""
    verdict = '{"style": 4, "facts": 4, "invented": false}'
    gold = case(lambda item: [say(f"{item['a']} and {item['b']} are numbers")], judge=verdict)

    found = judged("HE406", env_class, cases([item_cases(where="*", gold=gold)]))

    assert any("gave true for invented" in one.message for one in found.findings) is is_found, found.findings


@pytest.mark.parametrize(
    ("name", "is_good"),
    [
        ("bonus", True),
        ("is_valid", True),
        ("passed", True),
        ("invalid", False),
        ("incorrect", False),
        ("incomplete", False),
        ("broken", False),
    ],
)
def test_a_flag_whose_name_is_good_may_only_add(name: str, is_good: bool) -> None:
    """By whole words."""
    assert bool(_GOOD.search(name)) is is_good


def named(first: str, *numbers: int, **more: str) -> dict[str, Any]:
    """Return an item whose jobs are called by a letter."""
    jobs = {f"{first}{place}": [number, number % 7] for place, number in enumerate(numbers)}
    return {"id": first, "best": f"{first}1 {first}0", "ask": "highest", "jobs": jobs, **more}


def test_numbers_tell_items_that_have_other_names() -> None:
    """Many of them, in one order, and not those that nearly all items share; another question of them is another item."""
    trained = [named("A", 3, 14, 15, 92), named("B", 65, 35, 89, 79)]

    assert _twins([named("X", 3, 14, 15, 92)], trained) == 1
    assert _twins([named("X", 14, 3, 15, 92), named("X", 3, 14)], trained) == 0
    assert _twins([named("X", 1, 2, 3, 4)], [named(name, 1, 2, 3, 4) for name in "ABCDE"]) == 0
    for other in ({"best": "X0 X1"}, {"best": "X1"}, {"ask": "lowest"}):
        assert _twins([named("X", 3, 14, 15, 92, **other)], trained) == 0
    assert _twins([named("X", 1)], [named("A", 2), named("B", 3)]) == 0
