"""What was left alone, values that the prompt shows, other ways to write a tag or a day, names in other scripts, lengths in a group, a judge's error."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import unicodedata
from typing import Any, ClassVar

import openai
import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env import call, case, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.play.cases.code_changes import only_shown
from pytest_hermes_env.play.cases.edits import CHANGED, GONE, damaged

from .test_around_gold import SumEnv, judged


def messages_of(rule: str, env_class: type, gold: Any, **more: Any) -> list[str]:
    """Return what a rule says of an environment whose gold is this, on each item."""
    return [one.message for one in judged(rule, env_class, cases([item_cases(where="*", gold=gold, **more)])).findings]


class PortEnv(SumEnv):
    """One of three settings is changed."""

    prompts = "In app.ini, set port to {a}, and leave every other setting as it is."

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write them."""
        ctx.write_file("app.ini", "[app]\nhost = here\nport = 1\nlog = all\n")

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare them."""
        found = dict(re.findall(r"(?m)^(\w+) = (\w+)$", str(ctx.read_file("app.ini").get("content") or "")))
        wanted = {"host": "here", "port": str(item["a"]), "log": "all"}
        return float(
            all(found.get(name) == wanted[name] for name in self.compared(wanted, found))
            and found.get("port") == wanted["port"]
        )

    def compared(self, wanted: dict[str, str], found: dict[str, str]) -> list[str]:
        """Return the settings that must be right."""
        return [*wanted]


class LostSettingsEnv(PortEnv):
    """Does not miss those that are gone."""

    def compared(self, wanted: dict[str, str], found: dict[str, str]) -> list[str]:
        """Look at what is there."""
        return [*found]


@pytest.mark.parametrize(("env_class", "is_told"), [(PortEnv, False), (LostSettingsEnv, True)])
def test_what_is_left_alone_counts(env_class: type, is_told: bool) -> None:
    """Where the prompt says that it stays."""
    told = messages_of(
        "HE405",
        env_class,
        lambda item: [
            call("write_file", path="app.ini", content=f"[app]\nhost = here\nport = {item['a']}\nlog = all\n"),
            say("Done."),
        ],
    )

    assert any(f"gold ({GONE} in" in one for one in told) == is_told
    assert is_told or told == []


@pytest.mark.parametrize(
    ("text", "before", "expected"),
    [
        ('{"a": 1, "b": 2}', '{"a": 1, "b": 3}', {(GONE, '{"b":2}'), (CHANGED, '{"a":"otherwise","b":2}')}),
        ("a = 1\nb = 2\n", "a = 1\nb = 3\n", {(GONE, "b=2"), (CHANGED, "a=otherwiseb=2")}),
        ("# a\n[b]\nc = 2\n", "# a\n[b]\nc = 3\n", set()),
        ("a\n", "a\n", set()),
        ("new\n", "", set()),
    ],
)
def test_damage_is_to_what_was_left_alone(text: str, before: str, expected: set[tuple[str, str]]) -> None:
    """All of it, or one; notes and brackets do not count."""
    assert {(one.name, re.sub(r"\s", "", one.text)) for one in damaged(text, before)} == expected


class DoubleEnv(SumEnv):
    """Functions; half of the tests are the prompt's own examples."""

    tried: ClassVar[Any] = [[[1, 2, 3]], [[40, 50]], [[7, 8]], [[100]]]
    prompts = "Write double.py: double([1, 2, 3]) is [2, 4, 6], double([40, 50]) is [80, 100]. It is task {a}."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Run it."""
        code = f"import sys; sys.path.insert(0, '.'); from double import double; print([double(*one) for one in {self.tried}])"
        done = ctx.terminal(f"python3 -I -c {shlex.quote(code)} 2> /dev/null")
        return float(done["output"].strip() == str([[2 * n for n in one[0]] for one in self.tried]))


class ShownOnlyEnv(DoubleEnv):
    """Tries what the prompt shows."""

    tried: ClassVar[Any] = DoubleEnv.tried[:2]


@pytest.mark.parametrize(("env_class", "is_told"), [(DoubleEnv, False), (ShownOnlyEnv, True)])
def test_the_examples_of_the_prompt_are_not_enough(env_class: type, is_told: bool) -> None:
    """Code that is right for them alone is wrong."""
    code = "def double(values):\n    return [2 * one for one in values]\n"
    told = messages_of("HE405", env_class, lambda item: [call("write_file", path="double.py", content=code), say("Done.")])

    assert any("right only for values that the prompt shows" in one for one in told) == is_told


def test_a_program_that_reads_is_right_for_what_the_prompt_shows() -> None:
    """Others, and code of which the prompt speaks not at all, have no such change."""
    code = only_shown("import sys\nprint(sys.stdin.read().upper())\n", "For `a b` it prints A B.")

    assert code.startswith("import io, sys\n")
    assert only_shown("def f(x): return x\n", "Write a program.") == ""
    assert only_shown("print(1)\n", "Print 1.") == ""
    program = "import sys\ndef run(x): return x.upper()\nfor line in sys.stdin: print(run(line))\n"
    assert only_shown(program, "It will run.").endswith(program)
    assert only_shown("def run(x): return x\n", "Write turn(x) or runs(x).") == ""


class CronEnv(SumEnv):
    """A line of cron, in which 0 and 7 are Sunday."""

    prompts = "Which cron line fires at minute {a} of each hour on Sundays? Answer with the line alone."
    is_folded: ClassVar[bool] = True

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare its meaning."""
        said = str(result.messages[-1].get("content") or "").strip()
        return float((re.sub(r"7$", "0", said) if self.is_folded else said) == f"{item['a'] % 60} * * * 0")


class UnfoldedCronEnv(CronEnv):
    """Knows one of them."""

    is_folded: ClassVar[bool] = False


@pytest.mark.parametrize(("env_class", "is_told"), [(CronEnv, False), (UnfoldedCronEnv, True)])
def test_sunday_is_seven_too(env_class: type, is_told: bool) -> None:
    """The same line by another number."""
    told = messages_of("HE405", env_class, lambda item: [say(f"{item['a'] % 60} * * * 0")])

    assert any("gold (with Sunday as 7, the final answer) scored 0" in one for one in told) == is_told


class NamesEnv(SumEnv):
    """Names in their own scripts."""

    names: ClassVar[list[str]] = [
        "Wien",
        "Praha",
        *["Αθήνα", "Москва", "Київ", "Београд", "София", "Минск", "Тбилиси", "Ереван"],
        "Roma",
        "Oslo",
    ]
    prompts = "What is place number {a} called? Answer with the name alone."

    async def setup(self) -> None:
        """Give each item a name."""
        await super().setup()
        self.items = [{**item, "name": self.names[number % len(self.names)]} for number, item in enumerate(self.items)]

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare."""
        said = str(result.messages[-1].get("content") or "").strip()
        return float(bool(said) and self.plain(said) == self.plain(item["name"]))

    def plain(self, name: str) -> str:
        """Return it as it is compared."""
        return name.casefold()


class FoldedNamesEnv(NamesEnv):
    """Folds all to ASCII, which leaves nothing of most."""

    def plain(self, name: str) -> str:
        """Leave accents out."""
        return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()


@pytest.mark.parametrize(("env_class", "is_told"), [(NamesEnv, False), (FoldedNamesEnv, True)])
def test_an_answer_of_another_item_that_most_items_pay_is_told(env_class: type, is_told: bool) -> None:
    """Not all need to pay it."""
    told = messages_of("HE405", env_class, lambda item: [say(item["name"])])

    assert any("gold of another item scored like the item's own on " in one for one in told) == is_told


class AnyLargerEnv(SumEnv):
    """Any number that is larger is right, which that of another item is on half of them."""

    prompts = "Answer with an even number above {a}."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare with the item."""
        said = str(result.messages[-1].get("content") or "").strip()
        return float(said.isdigit() and int(said) > item["a"] and int(said) % 2 == 0)


def test_an_answer_of_another_item_may_be_right() -> None:
    """Where the item has none of its own that the reward compares with."""
    told = messages_of("HE405", AnyLargerEnv, lambda item: [say(str(item["a"] // 2 * 2 + 2))])

    assert not any("gold of another item" in one for one in told)


class ShortestEnv(SumEnv):
    """Length costs, among right rollouts."""

    async def collect_trajectories(self, item: Any) -> Any:
        """Change their scores."""
        group, backlog = await super().collect_trajectories(item)
        right = [place for place, score in enumerate(group["scores"]) if score >= 1.0] if group else []
        lengths = [len(group["tokens"][place]) for place in right]
        for place, length in self.placed(right, lengths) if len({*lengths}) > 1 else ():
            group["scores"][place] *= 1.0 - 0.4 * (length > min(lengths))
        return group, backlog

    def placed(self, right: list[int], lengths: list[int]) -> Any:
        """Yield the places with their lengths."""
        return zip(right, lengths, strict=True)


class MisplacedCostEnv(ShortestEnv):
    """Counts the places anew."""

    def placed(self, right: list[int], lengths: list[int]) -> Any:
        """Yield the first ones."""
        return enumerate(lengths)


@pytest.mark.parametrize(("env_class", "outcome"), [(ShortestEnv, Outcome.PASSED), (MisplacedCostEnv, Outcome.FAILED)])
def test_what_length_costs_is_paid_by_the_long_one(env_class: type, outcome: Outcome) -> None:
    """In the same group the other way round, too."""
    verdict = judged("HE511", env_class)

    assert verdict.outcome is outcome
    assert all("a short and a long rollout that earned the same have the scores" in one.message for one in verdict.findings)


class ReviewEnv(SumEnv):
    """A judge lists mistakes."""

    prompts = "Translate text number {a} into text.txt, and keep {{name}} in it."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Count them."""
        text = str(ctx.read_file("text.txt").get("content") or "")
        if "{name}" not in text:
            return 0.0
        told = [{"role": "user", "content": f"List mistakes as JSON: {text}"}]
        try:
            answer = await self.server.chat_completion(messages=told, n=1, max_tokens=20, temperature=0.0)
            return max(0.0, 1.0 - self.mistakes(json.loads(answer.choices[0].message.content)) / 2)
        except (ValueError, KeyError, TypeError, OSError, openai.OpenAIError):
            return 0.0

    def mistakes(self, review: Any) -> int:
        """Return how many there are."""
        return len(review["errors"])


class AnyReviewEnv(ReviewEnv):
    """Takes an object without them for one without mistakes."""

    def mistakes(self, review: Any) -> int:
        """Count what is there."""
        return len(review.get("errors", []))


@pytest.mark.parametrize(("env_class", "is_told"), [(ReviewEnv, False), (AnyReviewEnv, True)])
def test_an_object_that_is_no_review_pays_nothing(env_class: type, is_told: bool) -> None:
    """Also where nobody knows the judge's worst verdict."""
    gold = case(
        lambda item: [
            call("write_file", path="text.txt", content=f"Guten Tag, {{name}}, hier ist Text {item['a']}."),
            say("Done."),
        ],
        judge=say('{"errors": []}'),
    )
    told = messages_of("HE406", env_class, gold)

    assert any(one.startswith("the judge gave an object without a score") for one in told) == is_told


class TagEnv(SumEnv):
    """A commit is tagged."""

    prompts = "In the repository in your directory, tag the first commit as v{a}."
    asked: ClassVar[str] = "^{commit}"

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Make two commits."""
        ctx.terminal(
            "git init -q -b main . && git config user.email a@b.c && git config user.name A && git commit -q --allow-empty -m one && git commit -q --allow-empty -m two"
        )

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare their ids."""
        done = ctx.terminal(f"git rev-parse 'v{item['a']}{self.asked}' main~1")
        return float(done["exit_code"] == 0 and len({*done["output"].split()}) == 1)


class AnonymousTagEnv(TagEnv):
    """The repository knows nobody's name."""

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Forget it."""
        await super().prepare_sandbox(item, ctx)
        ctx.terminal("git config --unset user.email; git config --unset user.name")


class CommittedEnv(TagEnv):
    """Two files are committed in a repository that knows nobody's name: gold gives one with its command, other commands fail."""

    prompts = "In the repository in your directory, write {a} to a.txt and {b} to b.txt, and commit them."

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Forget the name."""
        await super().prepare_sandbox(item, ctx)
        ctx.terminal("git config --unset user.email; git config --unset user.name; git config user.useConfigOnly true")

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look at what is committed, and that nothing else is there."""
        done = ctx.terminal("git show HEAD:a.txt HEAD:b.txt && git status --porcelain")
        return float(done["exit_code"] == 0 and done["output"].split() == [str(item["a"]), str(item["b"])])


def test_a_way_in_which_a_command_fails_is_no_work() -> None:
    """It was not done: the reward is right to pay nothing for it."""
    who = "-c user.name=a -c user.email=a@b.c"
    made = "printf '{a}\\n' > a.txt && printf '{b}\\n' > b.txt && git add -A && git {who} commit -q -m done"
    told = messages_of(
        "HE405", CommittedEnv, lambda item: [call("terminal", command=made.format(who=who, **item)), say("Done.")]
    )

    assert not [one for one in told if "in a commit for each file" in one], told


class UnpeeledTagEnv(TagEnv):
    """Compares the id of the tag itself."""

    asked: ClassVar[str] = ""


@pytest.mark.parametrize(("env_class", "is_told"), [(TagEnv, False), (AnonymousTagEnv, False), (UnpeeledTagEnv, True)])
def test_an_annotated_tag_is_a_tag(env_class: type, is_told: bool) -> None:
    """Where the prompt leaves its kind open."""
    told = messages_of(
        "HE405", env_class, lambda item: [call("terminal", command=f"git tag v{item['a']} main~1"), say("Done.")]
    )

    assert any("gold (with an annotated tag) scored 0" in one for one in told) == is_told


class SubtitlesEnv(SumEnv):
    """Times are written into a text that is neither JSON nor a table."""

    prompts = "Write out.srt with two subtitles, Hello at {a} ms after its second and Bye at {b} ms."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare it."""
        return float(self.read(str(ctx.read_file("out.srt").get("content") or "")) == self.read(subtitles(item)))

    def read(self, text: str) -> list[str]:
        """Return what must be right."""
        return [line.strip() for line in text.splitlines() if line.strip()]


class MillisecondsEnv(SubtitlesEnv):
    """The seconds are read and not compared."""

    def read(self, text: str) -> list[str]:
        """Take the last part of each time."""
        return [re.sub(r"[\d:]+,(?=\d)", "", line) for line in super().read(text)]


def subtitles(item: Any) -> str:
    return "".join(
        f"{number}\n00:00:{item[key] % 60:02d},{item[key]:03d} --> 00:01:{item[key] % 60:02d},{item[key]:03d}\n{said}\n\n"
        for number, (key, said) in enumerate((("a", "Hello"), ("b", "Bye")), 1)
    )


@pytest.mark.parametrize(("env_class", "is_told"), [(SubtitlesEnv, False), (MillisecondsEnv, True)])
def test_lines_of_figures_are_changed_one_by_one(env_class: type, is_told: bool) -> None:
    """In a text of any format."""
    gold = lambda item: [call("write_file", path="out.srt", content=subtitles(item)), say("done")]  # noqa: E731 - as authors write it

    told = messages_of("HE405", env_class, gold)

    assert any("number in line" in one for one in told) == is_told, told


class TableEnv(SumEnv):
    """Reads what `csv` reads, and no more."""

    prompts = "Write sums.csv with the columns a,b,sum for {a} and {b}, and for 2 and 2."

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare rows."""
        text = str(ctx.read_file("sums.csv").get("content") or "")
        return float([*csv.reader(io.StringIO(text))] == [*csv.reader(io.StringIO(sums(item)))])


def sums(item: Any) -> str:
    return f"a,b,sum\n{item['a']},{item['b']},{item['a'] + item['b']}\n2,2,4\n"


def test_a_table_with_a_carriage_return_in_a_value_is_no_error() -> None:
    """Hardly a model writes one; that the reward raises is told."""
    gold = lambda item: [call("write_file", path="sums.csv", content=sums(item)), say("done")]  # noqa: E731 - as authors write it

    findings = judged("HE403", TableEnv, cases([item_cases(where="*", gold=gold)])).findings

    assert [(one.severity, "unquoted field" in one.message) for one in findings] == [("warning", True)]


class TownsEnv(SumEnv):
    """Asks for a table with a row for each of four towns."""

    def format_prompt(self, item: Any) -> str:
        """Show all values."""
        shown = "; ".join(towns(item).splitlines()[1:]).replace(",", ", ")
        return f"Write towns.csv with the columns town,parcels,weight of: {shown}"

    def rows(self, text: str) -> Any:
        """Return the rows in any order."""
        return sorted(text.split())

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare rows."""
        text = str(ctx.read_file("towns.csv").get("content") or "")
        return float(self.rows(text) == self.rows(towns(item)))


class ColumnsEnv(TownsEnv):
    """Compares each column by itself."""

    def rows(self, text: str) -> Any:
        """Return the values of each column in any order."""
        table = [*csv.reader(io.StringIO(text))]
        return [sorted(column) for column in zip(*table, strict=False)]


def towns(item: Any) -> str:
    names = ["Bath", "Hull", "Leeds", "York"]
    rows = (f"{name},{item['a'] % 90 + 7 * at},{item['b'] / 4 + at:g}" for at, name in enumerate(names))
    return "\n".join(["town,parcels,weight", *rows, ""])


@pytest.mark.parametrize(("env_class", "is_told"), [(TownsEnv, False), (ColumnsEnv, True)])
def test_values_that_belong_to_no_row_are_told(env_class: type, is_told: bool) -> None:
    """One exchange may be as good; where each is paid, in several columns, the reward does not see which values belong together."""
    gold = lambda item: [call("write_file", path="towns.csv", content=towns(item)), say("done")]  # noqa: E731 - as authors write it

    told = messages_of("HE405", env_class, gold)

    assert any("exchanges of values between rows" in one for one in told) == is_told, told
