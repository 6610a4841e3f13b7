"""The same work by other commands, in another order, with a note on stderr, in bytes: what is as good is paid, and what is none is not."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env import call, cases, item_cases, say
from pytest_hermes_env.inference.steps import turn
from pytest_hermes_env.play.cases.slots import ANSWER, Work
from pytest_hermes_env.play.cases.ways import other_ways

from .test_around_gold import SumEnv, judged


class LoudEnv(SumEnv):
    """Names in capital letters, in whichever order."""

    prompts = "names.txt holds names. Write them in capital letters to loud.txt, one a line, in any order."

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write them."""
        ctx.write_file("names.txt", "\n".join(names_of(item)) + "\n")

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare them."""
        return float(self.is_right(str(ctx.read_file("loud.txt").get("content") or "").split(), names_of(item)))

    def is_right(self, found: list[str], names: list[str]) -> bool:
        """Whether it is what the prompt asks for."""
        return sorted(found) == sorted(name.upper() for name in names)


def test_code_may_stand_in_two_modules_where_the_prompt_says_so() -> None:
    """Where it forbids others, or says nothing, it stays in one."""
    code = "def f(x):\n    return x + 1\n"

    def names(prompt: str) -> list[str]:
        turns = (turn(call("write_file", path="f.py", content=code)), turn(say("Done.")))
        work = Work(turns=turns, item={}, prompt=f"Write f.py with f(x). {prompt}", tools=("write_file",))
        return [name for name, _ in other_ways(work, work.slots(), 9)[0] if "two modules" in name]

    assert names("You may add further modules beside f.py.") == ["in two modules, f.py"]
    for prompt in (
        "",
        "You must not add other modules.",
        "You may not create other files.",
        "You can read the other files of the repository.",
        "Your function can take several files.",
        "may other " * 2000,
    ):
        assert names(prompt) == []
    code = "_LIMIT = 3\ndef f(x):\n    return x + _LIMIT\n"
    assert names("You may add further modules beside f.py.") == []


class LenientEnv(LoudEnv):
    """Does not look at what was asked for."""

    def is_right(self, found: list[str], names: list[str]) -> bool:
        """Compare without it."""
        return sorted(one.upper() for one in found) == sorted(name.upper() for name in names)


class OrderedEnv(LoudEnv):
    """Wants an order that the prompt leaves open."""

    def is_right(self, found: list[str], names: list[str]) -> bool:
        """Compare as they come."""
        return found == [name.upper() for name in names]


class SortedEnv(OrderedEnv):
    """Says that it wants an order, although names.txt may have any."""

    prompts = "names.txt holds names, and lists them in any order. Write them in capital letters to loud.txt, one a line, in the same order."


def names_of(item: Any) -> list[str]:
    """Return three names that only this item has."""
    return [f"{first}{item['a']}" for first in ("mia", "bo", "zed")]


class FirmsEnv(LoudEnv):
    """Names with what a shell would take for its own."""

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write them."""
        ctx.write_file("names.txt", "".join(f"{name} & sons\n" for name in names_of(item)))

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare lines."""
        lines = str(ctx.read_file("loud.txt").get("content") or "").splitlines()
        return float(sorted(lines) == sorted(f"{name} & sons".upper() for name in names_of(item)))


def test_names_of_firms_are_written_by_other_commands_too() -> None:
    """Hermes' terminal refuses an ampersand in a text that a command writes. Work that was never done says nothing about its reward."""
    gold = [
        item_cases(
            where="*",
            gold=lambda item: [
                call("write_file", path="loud.txt", content="".join(f"{name} & sons\n" for name in names_of(item)).upper()),
                say("Done."),
            ],
        )
    ]

    verdict = judged("HE405", FirmsEnv, cases(gold))

    assert [finding.message for finding in verdict.findings] == []


@pytest.mark.parametrize(
    ("env_class", "told"),
    [
        (LoudEnv, ""),
        (SortedEnv, ""),
        (
            LenientEnv,
            "gold (a copy of names.txt, /workspace/loud.txt) scored 1 on training item 0, gold itself 1: worse work is paid like it",
        ),
        (
            OrderedEnv,
            "gold (in another order, /workspace/loud.txt) scored 0 on training item 0, gold itself 1: the same work by another way",
        ),
    ],
)
def test_an_order_that_is_open_and_an_input_as_it_was(env_class: type, told: str) -> None:
    """The first may be any, the second is no work."""
    gold = [
        item_cases(
            where="*",
            gold=lambda item: [
                call("write_file", path="loud.txt", content="\n".join(names_of(item)).upper() + "\n"),
                say("Done."),
            ],
        )
    ]

    verdict = judged("HE405", env_class, cases(gold))

    messages = [finding.message for finding in verdict.findings]
    assert any(told in message for message in messages) if told else messages == []


class MergedEnv(SumEnv):
    """Takes what a program says on stderr for its answer."""

    prompts = "Write a program to total.py that prints {a} + {b}."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Run it, with both in one text."""
        program, said = str(ctx.read_file("total.py").get("content") or ""), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(Exception):
            exec(program, {})
            return float(said.getvalue().strip() == str(item["answer"]["total"]))
        return 0.0


class MergedStdoutEnv(MergedEnv):
    """Says where its answer is."""

    prompts = "Write a program to total.py that prints {a} + {b} on standard output."


@pytest.mark.parametrize(("env_class", "is_finding"), [(MergedEnv, False), (MergedStdoutEnv, True)])
def test_a_line_on_stderr_is_asked_about_where_nobody_spoke_of_stdout(env_class: type, is_finding: bool) -> None:
    """Hermes' terminal gives both in one text: it is a mistake where the prompt told them apart."""
    gold = [
        item_cases(
            where="*",
            gold=lambda item: [
                call("write_file", path="total.py", content=f"print({item['answer']['total']})\n"),
                say("Done."),
            ],
        )
    ]

    verdict = judged("HE405", env_class, cases(gold))

    told = any("stderr" in finding.message for finding in verdict.findings)
    asked = any("stderr" in str(question) for question in verdict.questions)
    assert (told, asked) == (is_finding, not is_finding)


class FiguresEnv(SumEnv):
    """As many figures as the prompt asks for are enough."""

    prompts = "Divide {a} by 7, and {b} by 7 for the other one. Give the sum of both with at least three significant figures."

    def is_near(self, found: str, right: float) -> bool:
        """Whether it is what the prompt asks for."""
        return abs(float(found) - right) <= abs(right) * 5e-3

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look at the number."""
        said_last = result.messages[-1].get("content") or ""
        with contextlib.suppress(ValueError):
            return float(self.is_near(said_last.removeprefix("Answer: "), item["answer"]["total"] / 7))
        return 0.0


class ExactFiguresEnv(FiguresEnv):
    """Compares more of them."""

    def is_near(self, found: str, right: float) -> bool:
        """Compare five."""
        return f"{float(found):.4e}" == f"{right:.4e}"


@pytest.mark.parametrize(("env_class", "is_told"), [(FiguresEnv, False), (ExactFiguresEnv, True)])
def test_a_number_is_as_exact_as_it_has_to_be(env_class: type, is_told: bool) -> None:
    """Gold has more figures than the prompt asks for; a rounded one is right, too."""
    gold = [item_cases(where="*", gold=lambda item: [say(f"Answer: {item['answer']['total'] / 7:.6f}")])]

    verdict = judged("HE405", env_class, cases(gold))

    assert any("as exact as the prompt asks for" in finding.message for finding in verdict.findings) is is_told, verdict


class SignedEnv(SumEnv):
    """Pays a binary file alone, which a text beside it led to."""

    prompts = "Write {a} + {b} to note.txt, and its bytes, each with its highest bit set, to sum.bin."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look at the bytes."""
        printed = ctx.terminal("od -An -v -tu1 sum.bin")
        return float(printed.get("output", "").split() == [str(ord(digit) + 128) for digit in str(item["answer"]["total"])])


def test_what_is_no_text_is_wrong_too_where_all_is() -> None:
    """Else the text that nobody reads would be all that is wrong, and right work be called so."""
    gold = [
        item_cases(
            where="*",
            gold=lambda item: [
                call("write_file", path="note.txt", content=f"{item['answer']['total']}\n"),
                call(
                    "terminal",
                    command="python3 -c \"d=open('note.txt','rb').read().strip(); open('sum.bin','wb').write(bytes(c | 128 for c in d))\"",
                ),
                say("Done."),
            ],
        )
    ]

    verdict = judged("HE405", SignedEnv, cases(gold))

    assert [finding.message for finding in verdict.findings] == []


class DirectoryEnv(SumEnv):
    """Enters a directory that the agent has entered, too."""

    prompts = "Write {a} + {b} to sum.txt in the directory work."

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Make it."""
        ctx.terminal("mkdir -p work")

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look there."""
        return float(ctx.terminal("cd work && cat sum.txt").get("output", "").strip() == str(item["answer"]["total"]))


def test_a_directory_that_is_entered_twice_is_told() -> None:
    """As in hermes, a session stays where a command left it."""
    gold = [
        item_cases(
            where="*",
            gold=lambda item: [call("terminal", command=f"cd work && echo {item['answer']['total']} > sum.txt"), say("Done.")],
        )
    ]

    verdict = judged("HE412", DirectoryEnv, cases(gold))

    assert [finding.fix.partition(".")[0] for finding in verdict.findings] == [
        "`cd work` failed: an earlier `cd` still holds in the session, also the agent's own"
    ]


class ElsewhereEnv(DirectoryEnv):
    """Enters a directory that nobody made."""

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Make none."""


def test_a_directory_that_is_not_there_is_not_blamed_on_another_cd() -> None:
    """A fix is given where what was seen supports it."""
    gold = [item_cases(where="*", gold=lambda item: [call("write_file", path="sum.txt", content="1\n"), say("Done.")])]

    verdict = judged("HE412", ElsewhereEnv, cases(gold))

    assert verdict.findings
    assert not any("still holds" in finding.fix for finding in verdict.findings)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Which is it? The last line of your answer must be CRON: followed by the five fields.", True),
        ("Put the total in the last line.", True),
        ("What does the last line of log.txt say? Reply with only that text.", False),
        ("When you finish, reply with only `CRON: N`.", False),
        ("Delete the final line of a.txt, then reply with exactly CRON.", False),
    ],
)
def test_words_before_an_answer_are_as_good_where_it_is_one_line_of_several(prompt: str, expected: bool) -> None:
    """What the prompt says of lines of a file is nothing about the answer."""
    work = Work(turns=(turn(say("CRON: 3 4 * * *")),), item={}, prompt=prompt)
    ways, _ = other_ways(work, [slot for slot in work.slots() if slot.name == ANSWER], 10)

    assert any(name.startswith("after a sentence") for name, _ in ways) is expected
