"""Places that all rollouts of a machine share, names of code in commands, programs under another name, and code with more than it needs."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env import call, cases, item_cases, say
from pytest_hermes_env.contract.judge import Outcome, Severity
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.inference.steps import turn
from pytest_hermes_env.play.cases.code_changes import with_an_import
from pytest_hermes_env.play.cases.slots import Work
from pytest_hermes_env.play.cases.ways import other_ways

from .test_around_gold import SumEnv

FUNCTIONS = ("add", "plus", "summed")


class FunctionEnv(SumEnv):
    """A function in sum.py that adds two numbers, under one of several names, runs in a directory of the reward."""

    place = "check"
    prompts = "Write a function {function} to sum.py that adds two numbers, and leave it beside you."

    async def setup(self) -> None:
        """Name the functions."""
        await super().setup()
        for number, item in enumerate((*self.items, *self.held_out)):
            item["function"] = FUNCTIONS[number % len(FUNCTIONS)]

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Copy it, and call it."""
        folder = f"{self.place}/{item['function']}"
        line = f"import sum; print(sum.{item['function']}({item['a']}, {item['b']}))"
        done = ctx.terminal(f"mkdir -p {folder} && cp sum.py {folder}/ && cd {folder} && python3 -c {shlex.quote(line)}")
        ctx.terminal("cd /workspace")
        return float(str(done.get("output") or "").strip() == str(item["a"] + item["b"]))


class OfAllEnv(FunctionEnv):
    """One directory of the machine for all rollouts."""

    place = "/tmp/sums"


class PathEnv(FunctionEnv):
    """What goes into the command is the name of a file."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look whether it is there."""
        path = f"{item['a']} and {item['b']}.py"
        item = {**item, "path": path}
        return float(ctx.terminal(f"cat {item['path']}")["exit_code"] == 0)


class ReportEnv(FunctionEnv):
    """What goes into the command is what the agent reported, under the name of a field of the item."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Read it."""
        return self.named(json.loads(ctx.read_file("report.json").get("content") or "{}"), ctx)

    def named(self, report: Any, ctx: ToolContext) -> float:
        """Look for it."""
        return float(ctx.terminal(f"grep -q {report['function']} sum.py")["exit_code"] == 0)


class OnDockerEnv(OfAllEnv):
    """Each sandbox is a machine."""

    @classmethod
    def config_init(cls) -> Any:
        """Have containers."""
        config, servers = super().config_init()
        return config.model_copy(update={"terminal_backend": "docker"}), servers


GOLD = cases(
    [
        item_cases(
            where="*",
            gold=lambda item: [
                call("write_file", path="sum.py", content=f"def {item['function']}(a, b):\n    return a + b\n"),
                say("Done."),
            ],
        )
    ]
)


@pytest.mark.parametrize(("env_class", "is_shared"), [(FunctionEnv, False), (OfAllEnv, True), (OnDockerEnv, False)])
def test_a_place_of_the_whole_machine_is_shared(env_class: type, is_shared: bool) -> None:
    """Where sandboxes are directories, and rollouts write different contents there."""
    verdict = contract_of(env_class, [find_rule("HE603")], cases=GOLD).result(find_rule("HE603"))

    assert (verdict.outcome is Outcome.FAILED) is is_shared
    if is_shared:
        assert verdict.findings[0].message.startswith("/tmp/sums/add/sum.py is one file for all rollouts")


def test_names_of_code_need_no_quotes_where_they_are_identifiers() -> None:
    """In a run it is a question of style; a path is none."""
    named = contract_of(FunctionEnv, [find_rule("HE409")], cases=GOLD).result(find_rule("HE409"))
    others = [
        contract_of(env_class, [find_rule("HE409")], cases=GOLD).result(find_rule("HE409"))
        for env_class in (PathEnv, ReportEnv)
    ]

    assert {one.severity for one in named.findings} == {Severity.WARNING}
    assert [one.outcome for one in others] == [Outcome.FAILED] * 2
    assert {finding.severity for one in others for finding in one.findings}.isdisjoint({Severity.WARNING})


def test_a_program_under_another_name_makes_the_same_work() -> None:
    """It is not work in a wrong place."""
    by_script = cases(
        [
            item_cases(
                where="*",
                gold=lambda item: [
                    call(
                        "write_file",
                        path="make.py",
                        content=f"import json\nname = 'su' + 'm.json'\njson.dump({item['answer']!r}, open(name, 'w'))\n",
                    ),
                    call("terminal", command="python3 make.py"),
                    say("Done."),
                ],
            )
        ]
    )

    contract = contract_of(SumEnv, [find_rule("HE405")], cases=by_script)

    assert contract.result(find_rule("HE405")).outcome is Outcome.PASSED
    assert "wrong_place" not in {rung.name for rung in contract.evidence.rungs}


CODE = '"""Adds."""\nfrom __future__ import annotations\n\ndef add(a, b):\n    return a + b\n'


def test_code_may_have_more_than_it_needs() -> None:
    """It does the same, and begins as it did."""
    names: dict[str, Any] = {}
    exec(with_an_import(CODE), names)

    assert (names["add"](2, 3), names["__doc__"], "Helper" in names) == (5, "Adds.", True)
    assert with_an_import(f"#!/usr/bin/env python3\n{CODE}").startswith("#!/usr/bin/env python3\n")


@pytest.mark.parametrize(
    ("prompt", "is_tried"),
    [
        ("Write add to add.py.", True),
        ("Write add to add.py, with the standard library only.", True),
        ("Write add to add.py. Do not use any library.", False),
        ("Write add to add.py in pure Python.", False),
        ("Fold the last two commits into one.", False),
    ],
)
def test_more_than_code_needs_is_tried_unless_the_prompt_limits_it(prompt: str, is_tried: bool) -> None:
    """A limit that nobody told is none."""
    gold = (turn(call("write_file", path="add.py", content=CODE)), turn(say("Done.")))
    work = Work(turns=gold, prompt=prompt, tools=("write_file",))

    ways, _ = other_ways(work, [slot for slot in work.slots() if slot.name == "add.py"], most=9)

    assert any("with an import and a class" in name for name, _ in ways) is is_tried


@pytest.mark.parametrize(
    ("command", "is_packed"),
    [
        ("cd repo && git rebase -q --onto main~2 main~1 main", True),
        ("git -C repo commit -qm done", True),
        ("cd repo && git log | head -3", False),
        ("(cd repo && git commit -qm done)", False),
    ],
)
def test_a_repository_may_be_packed(command: str, is_packed: bool) -> None:
    """Git does so by itself, and what reads its files in place of asking it finds no branch."""
    work = Work(
        turns=(turn(call("terminal", command=command)), turn(say("Done."))), prompt="Tidy the history.", tools=("terminal",)
    )

    ways, _ = other_ways(work, (), most=9)

    assert any("packed" in name for name, _ in ways) is is_packed


@pytest.mark.parametrize(
    ("pattern", "prompt", "is_tried"),
    [
        ("(?:0|[1-9][0-9]*)", "Write a pattern.", True),
        ("(?:0|[1-9][0-9]*)", "Write a pattern of at most 20 characters.", False),
        ("(?:0|[1-9][0-9]*)", "Write a pattern of at most 400 characters.", True),
        ("(?i)[a-z]+", "Write a pattern.", False),
        (r"([a-z]+) \1", "Write a pattern.", False),
        ("(?:0|[1-9][0-9]*)", "Write a pattern without alternatives.", False),
    ],
)
def test_a_pattern_may_have_alternatives(pattern: str, prompt: str, is_tried: bool) -> None:
    """A verifier that puts something before and behind it has to put it into a group."""
    gold = (turn(call("write_file", path="pattern.txt", content=pattern)), turn(say("Done.")))
    work = Work(turns=gold, prompt=prompt, tools=("write_file",))

    ways, _ = other_ways(work, [slot for slot in work.slots() if slot.name == "pattern.txt"], most=9)

    assert any("two alternatives" in name for name, _ in ways) is is_tried
