"""What is as good in other clothes is paid as gold is; parts of a work, quotes of a verdict and copies of an answer are not taken for more."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar

import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env import call, case, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.inference.steps import turn
from pytest_hermes_env.play.cases.neighbours import Around, Tried
from pytest_hermes_env.play.cases.playing import PlayedCase
from pytest_hermes_env.play.cases.slots import Work
from pytest_hermes_env.play.cases.values import Transcript
from pytest_hermes_env.play.scenario import Rung, Worth

from .test_around_gold import SumEnv, judged
from .test_judges_around_gold import AskedEnv


class LastLineEnv(SumEnv):
    """Reads the answer in the last line."""

    prompts = "Add {a} and {b}. Think as long as you like. The last line of your answer is 'ANSWER: ' and the total."
    most: ClassVar[int | None] = None

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare the total."""
        lines = str(result.messages[-1].get("content"))[: self.most].strip().splitlines() or [""]
        return float(lines[-1] == f"ANSWER: {item['answer']['total']}")


class PreviewEnv(LastLineEnv):
    """Reads the beginning alone."""

    most = 300


ANSWERED = cases([item_cases(where="*", gold=lambda item: [say(f"I have added them.\nANSWER: {item['answer']['total']}")])])


class CheckedEnv(SumEnv):
    """Pays the file, however it was checked."""

    def is_checked(self, result: AgentResult) -> bool:
        """Any command will do."""
        return "check.py" in str(result.messages)

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write the program."""
        ctx.write_file("check.py", "print('ok')\n")

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Add a part for the check."""
        is_right = self.read(ctx) == item["answer"]
        return is_right * (0.4 + 0.6 * self.is_checked(result))


class LiteralEnv(CheckedEnv):
    """Looks for one spelling of a command."""

    def is_checked(self, result: AgentResult) -> bool:
        """Compare the text."""
        return "python3 check.py" in str(result.messages)


CHECKED = cases(
    [
        item_cases(
            where="*",
            gold=lambda item: [
                call("write_file", path="sum.json", content=json.dumps(item["answer"])),
                call("terminal", command="python3 check.py"),
                say("Done."),
            ],
        )
    ]
)


@pytest.mark.parametrize(
    ("env_class", "declared", "told"),
    [
        (LastLineEnv, ANSWERED, ""),
        (PreviewEnv, ANSWERED, "gold (after long reasons, the final answer) scored 0"),
        (CheckedEnv, CHECKED, ""),
        (LiteralEnv, CHECKED, "gold (by other commands) scored 0.4"),
    ],
)
def test_good_work_in_other_clothes_is_paid(env_class: type, declared: Any, told: str) -> None:
    """An answer behind long reasons, and a program by another spelling of its path."""
    messages = [finding.message for finding in judged("HE405", env_class, declared).findings]

    assert any(told in message for message in messages) if told else messages == []


class CriteriaEnv(AskedEnv):
    """A judge marks two sections; both count."""

    prompts = "Write about {a} under '## One' and about {b} under '## Two'."

    def mean_of(self, marks: dict[str, float], sections: list[str]) -> float:
        """Take what is missing for 0."""
        return sum(marks[name] for name in sections) / 2

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Ask."""
        text = str(result.messages[-1].get("content"))
        sections = [name for name in ("One", "Two") if f"## {name}" in text]
        try:
            return self.mean_of(json.loads(await self.ask(self.asked.format(text=text))), sections) if sections else 0.0
        except Exception:  # noqa: BLE001 - a judge that fails
            return 0.0


class PresentEnv(CriteriaEnv):
    """Takes the mean of the sections that are there."""

    def mean_of(self, marks: dict[str, float], sections: list[str]) -> float:
        """Divide by their number."""
        return sum(marks[name] for name in sections) / len(sections)


SECTIONS = cases(
    [
        item_cases(
            where="*",
            gold=case(
                lambda item: [say(f"## One\nIt is {item['a']}.\n\n## Two\nIt is {item['b']}.")],
                judge='{"One": 1.0, "Two": 1.0}',
            ),
        )
    ]
)


class VerdictEnv(AskedEnv):
    """A judge gives reasons, and its verdict in the last line."""

    def score_in(self, text: str) -> float:
        """Read the last line."""
        return float((text.strip().splitlines() or [""])[-1] == "VERDICT: CORRECT")


class QuotedEnv(VerdictEnv):
    """Reads the first verdict, which may be a quote."""

    def score_in(self, text: str) -> float:
        """Search."""
        return float(text.find("VERDICT: CORRECT") >= 0)


class UnaskedEnv(AskedEnv):
    """Pays work that looks odd without asking."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Ask about numbers alone."""
        text = str(result.messages[-1].get("content"))
        asked = await super().compute_reward(item, result, ctx)
        return asked if str(item["a"]) in text and str(item["b"]) in text else 0.9


NUMBERS = cases(
    [item_cases(where="*", gold=case(lambda item: [say(f"{item['a']} and {item['b']} are numbers")], judge='{"score": 9}'))]
)
VERDICT = cases([item_cases(where="*", gold=case([say("It is so.")], judge="It names both.\nVERDICT: CORRECT"))])


@pytest.mark.parametrize(
    ("env_class", "declared", "told"),
    [
        (CriteriaEnv, SECTIONS, ""),
        (PresentEnv, SECTIONS, "one part of the work"),
        (VerdictEnv, VERDICT, ""),
        (QuotedEnv, VERDICT, "the judge said INCORRECT after a quote of the answer"),
        (UnaskedEnv, NUMBERS, "the judge gave its worst to wrong work: that earned 0.9, and gold 0.9"),
    ],
)
def test_a_judge_is_read_as_it_means_it(env_class: type, declared: Any, told: str) -> None:
    """Its criteria count where a part of the work is missing, a quote is not its verdict, and its worst is no pay."""
    verdict = judged("HE406", env_class, declared)
    messages = [finding.message for finding in verdict.findings]

    assert any(told in message for message in messages) if told else verdict.outcome is Outcome.PASSED, verdict


class WordsEnv(AskedEnv):
    """The judge says a word of its own."""

    def score_in(self, text: str) -> float:
        """Know one word."""
        return float(text == "splendid")


def test_a_verdict_of_an_unknown_form_compares_nothing() -> None:
    """What its worst would be is not known: gold has not been shown to be above worse work."""
    declared = cases([item_cases(where="*", gold=case([say("It is so.")], judge="splendid"))])

    verdict = judged("HE405", WordsEnv, declared)

    assert verdict.outcome is Outcome.NOT_EXERCISED
    assert "gold could be compared with nothing" in verdict.note


class LittleEnv(SumEnv):
    """Pays a little for any file."""

    least: ClassVar[float] = 0.5

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare both."""
        found = self.read(ctx)
        return 1.0 if found == item["answer"] else 0.1 * isinstance(found, dict)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Count those that pass."""
        passed = []
        for item in self.held_out:
            async with self.agent_rollout(item) as rollout:
                passed.append(await self.compute_reward(item, rollout.result, rollout.ctx) > self.least)
        await self.evaluate_log({"eval/pass_rate": sum(passed) / len(passed)})


class AnyFileEnv(LittleEnv):
    """Counts everything above 0."""

    least = 0.0


@pytest.mark.parametrize(
    ("env_class", "told"), [(LittleEnv, ""), (AnyFileEnv, "as with gold, where the work on one item earned 0.1")]
)
def test_an_evaluation_does_not_count_what_earns_little_as_gold(env_class: type, told: str) -> None:
    """A metric is lower where one item was done badly."""
    messages = [finding.message for finding in judged("HE708", env_class).findings]

    assert any(told in message for message in messages) if told else messages == []


class PreparedEnv(SumEnv):
    """Prepares a file."""

    file: ClassVar[str] = "notes.json"

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write what the class says."""
        ctx.write_file(self.file, json.dumps(self.content(item)))

    def content(self, item: Any) -> Any:
        """Return other numbers."""
        return {"total": item["a"], "count": item["b"], "of": "the task"}


class BackupEnv(PreparedEnv):
    """Leaves the answer, under a name of its own."""

    file = "sum.json.orig"

    def content(self, item: Any) -> Any:
        """Return the answer's fields."""
        return item["answer"]


@pytest.mark.parametrize(
    ("env_class", "told"), [(PreparedEnv, ""), (BackupEnv, "lies in the sandbox before: /workspace/sum.json.orig")]
)
def test_what_gold_writes_does_not_lie_beside_it(env_class: type, told: str) -> None:
    """A copy is the answer, whatever its name is."""
    messages = [finding.message for finding in judged("HE208", env_class).findings]

    assert any(told in message for message in messages) if told else messages == []


@pytest.mark.parametrize(
    ("worth", "plays"), [(Worth.SAME, [False, True]), (Worth.AS_GOOD, [False, True]), (Worth.WORSE, [False])]
)
def test_what_is_as_good_is_not_judged_by_a_clock(monkeypatch: pytest.MonkeyPatch, worth: Worth, plays: list[bool]) -> None:
    """A busy machine may stop its commands: then it is played again, with all the time that they ask for."""
    seen: list[bool] = []

    async def stopped(*given: Any, is_patient: bool = False) -> PlayedCase:
        seen.append(is_patient)
        return PlayedCase(rung=given[-1], was_stopped=not is_patient)

    monkeypatch.setattr("pytest_hermes_env.play.cases.neighbours.played", stopped)
    gold = PlayedCase(rung=Rung(name="gold", item="0", is_automatic=False))
    stage: Any = None
    around = Around(
        stage=stage, gold=gold, transcript=Transcript(turns=()), work=Work(turns=(turn(say("gold")),)), left=1, tried=Tried()
    )

    asyncio.run(around._one("another way", (turn(say("other")),), worth))

    assert seen == plays


class ArchiveEnv(SumEnv):
    """Unpacks an archive, which has other bytes each time that it is made, as the ages in it differ."""

    prompts = (
        "Add {a} and {b}. Put total and count of the numbers, as sum.json, into sum.tar.gz; list what is in it in list.txt."
    )

    def read(self, ctx: ToolContext) -> Any:
        """Unpack it, and look for the list."""
        ctx.read_file("list.txt")
        out = str(ctx.terminal("mkdir -p out && tar xzf sum.tar.gz -C out && cat out/sum.json").get("output"))
        try:
            return json.loads(out)
        except ValueError:
            return None


def archived(command: str) -> Any:
    """Gold that writes the file, and packs it by a command."""
    return cases(
        [
            item_cases(
                where="*",
                gold=lambda item: [
                    call("write_file", path="sum.json", content=json.dumps(item["answer"])),
                    call("terminal", command=command),
                    say("Done."),
                ],
            )
        ]
    )


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("tar czf sum.tar.gz sum.json && tar tzf sum.tar.gz", []),
        ("tar czf sum.tar.gz sum.json && cp sum.json list.txt", ["the last part of call 2 left out"]),
        ("tar czf sum.tar.gz sum.json; date +%N > list.txt; echo sum.json >> list.txt", ["the last part of call 2 left out"]),
        ("tar czf sum.tar.gz sum.json; date +%N > list.txt; cat list.txt", []),
    ],
)
def test_a_look_at_work_that_differs_each_time_is_no_work(command: str, told: list[str]) -> None:
    """What is not written any more is less work, although other bytes are not."""
    verdict = judged("HE405", ArchiveEnv, archived(command))

    messages = [finding.message for finding in verdict.findings]
    assert [text for text in told if not any(text in message for message in messages)] == []
    assert bool(messages) == bool(told), messages


class NamedLoggerEnv(SumEnv):
    """Reads two of three values, below a key that is another one for each item."""

    prompts = (
        "Write sum.json: an object with the key sum-{a}; in it total, the sum of {a} and {b}, and count, that of the numbers."
    )

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare two."""
        found = self.read(ctx)
        inner = found.get(f"sum-{item['a']}") if isinstance(found, dict) else None
        return float(isinstance(inner, dict) and {key: inner.get(key) for key in item["answer"]} == item["answer"])


def test_a_value_that_all_items_have_is_no_answer_below_a_key_of_its_own_for_each() -> None:
    """Gold writes it, and nobody asked for it; nor does it matter how often it stands in a list."""
    gold = cases(
        [
            item_cases(
                where="*",
                gold=lambda item: [
                    call(
                        "write_file",
                        path="sum.json",
                        content=json.dumps({f"sum-{item['a']}": {**item["answer"], "exact": False, "by": ["hand"]}}),
                    ),
                    say("Done."),
                ],
            )
        ]
    )

    verdict = judged("HE405", NamedLoggerEnv, gold)

    assert [finding.message for finding in verdict.findings] == []


class PortEnv(SumEnv):
    """A service writes down its number, which is another one in each play."""

    prompts = "Add {a} and {b}. Start a service whose number stands in port.txt; it writes total and count to sum.json."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Ask the service with that number."""
        port, service = (str(ctx.terminal(f"cat {name}").get("output")).strip() for name in ("port.txt", "service.log"))
        return float(bool(port) and port == service and self.read(ctx) == item["answer"])


def test_what_a_program_wrote_in_one_play_is_not_put_into_another_one() -> None:
    """The number of another play is no other way to the same work."""
    gold = cases(
        [
            item_cases(
                where="*",
                gold=lambda item: [
                    call("write_file", path="sum.json", content=json.dumps(item["answer"])),
                    call("terminal", command="date +%s%N > service.log; tr -d '\\n' < service.log > port.txt"),
                    say("It runs."),
                ],
            )
        ]
    )

    verdict = judged("HE405", PortEnv, gold)

    assert [finding.message for finding in verdict.findings] == []
