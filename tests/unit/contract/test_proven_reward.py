"""HE412 and the sweep of gold, HE404 elsewhere, and cases as Python declares them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env import call, case, cases, cli, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.rules import ALL_RULES, find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.play.cases.yaml_file import read_cases

from ..play.small_env import SmallEnv  # noqa: TID252 - another room has the small environment


class ManyEnv(SmallEnv):
    """A hundred questions in two forms; the reward reads the last answer."""

    name = "many"

    async def setup(self) -> None:
        """Make the items."""
        self.many = [{"word": f"w{number}", "kind": "late" if number >= 40 else "early"} for number in range(100)]
        self.eval_items, self.next_index = [{"word": "v", "kind": "early"}], 0

    async def get_next_item(self) -> Any:
        """Cycle."""
        self.next_index += 1
        return self.many[(self.next_index - 1) % len(self.many)]

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare the answer."""
        said = [message.get("content") or "" for message in result.messages if message["role"] == "assistant"]
        return float(bool(said) and said[-1].strip() == item["word"])


class LateNoneEnv(ManyEnv):
    """Good work on late items has no reward."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> Any:
        """Forget the last return."""
        reward = await super().compute_reward(item, result, ctx)
        return None if reward and item["kind"] == "late" else reward


class ItemsAlikeEnv(ManyEnv):
    """Every word of the data is right for every item."""

    async def setup(self) -> None:
        """Have words without numbers."""
        await super().setup()
        for number, item in enumerate(self.many):
            item["word"] = "abcdefghij"[number // 10] + "klmnopqrst"[number % 10]

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look the answer up in all answers."""
        said = [message.get("content") or "" for message in result.messages if message["role"] == "assistant"]
        return float(bool(said) and said[-1].strip() in {one["word"] for one in self.many})


class OnlyHereEnv(ManyEnv):
    """Cannot be made where it is not now."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Look where it is."""
        if Path.cwd().name.startswith("elsewhere-"):
            raise LookupError("not here")
        super().__init__(*args, **kwargs)


class SwallowingEnv(ManyEnv):
    """Takes the result of a tool for text, and the error for a wrong answer; a number is looked for before."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Catch all."""
        with contextlib.suppress(ValueError):
            int(item["word"])
        try:
            return float(json.loads({"content": item["word"]}) == item)  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 - what the author wrote
            return 0.0


class ForgettingEnv(ManyEnv):
    """A coroutine is always true: so is the condition, and no work is paid."""

    async def _is_wrong(self, result: AgentResult, item: Any) -> bool:
        return result.messages[-1]["content"] != item["word"]

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Forget to await."""
        return 0.0 if self._is_wrong(result, item) else 1.0


class RepeatingEnv(ManyEnv):
    """The second definition is the one that runs."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare."""
        return float(result.messages[-1]["content"] == item["word"])

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> Any:  # type: ignore[no-redef]  # noqa: F811
        """Return nothing."""
        result.messages.copy()


class StdoutEnv(ManyEnv):
    """A result of the terminal has no stdout."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Take the default."""
        shown = ctx.terminal(f"echo {item['word']}")
        return float(item["word"] in shown.get("stdout", ""))


class ExamEnv(ManyEnv):
    """A benchmark: it trains nothing."""

    async def get_next_item(self) -> Any:
        """Have no items."""
        raise NotImplementedError("an evaluation")


class AskingEnv(ManyEnv):
    """A model decides all."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Ask."""
        answer = await self.server.chat_completion(messages=[{"role": "user", "content": "Is it right? 0 to 1."}], n=1)
        try:
            return float(answer.choices[0].message.content)
        except ValueError:
            return 0.25


def judged(rule: str, env_class: type, declared: Any) -> Verdict:
    """Return what one rule says."""
    return contract_of(env_class, [find_rule(rule)], cases=declared).result(find_rule(rule))


def template(**more: Any) -> Any:
    """Return gold for all items."""
    return cases([item_cases(where="*", gold=lambda item: [say(item["word"])], **more)])


def test_gold_is_played_on_items_spread_over_the_data() -> None:
    """The note says on how many, of how many."""
    verdict = judged("HE412", ManyEnv, template())

    assert (verdict.outcome, verdict.note) == (
        Outcome.PASSED,
        "gold earned 1 to 1 on 50 items, of 100 different training items",
    )


def test_without_gold_the_ways_to_one_are_shown() -> None:
    """Each is one command; so it is where gold is still to be written."""
    for declared in (None, cases([item_cases(where="*", gold=None, nothing=[say("no")])])):
        (finding,) = judged("HE412", ManyEnv, declared).findings

        assert "no good work that was paid" in finding.message
        assert all(way in finding.fix for way in ("hermes-env init", "--from ROLLOUTS", "waive"))


def test_cases_under_another_name_are_told(pytester: pytest.Pytester) -> None:
    """They are next to the environment, and nobody reads them."""
    pytester.makepyfile(own_env=(Path(__file__).parents[1] / "play" / "small_env.py").read_text(encoding="utf-8"))
    pytester.makefile(".cases.yml", own_env="items:\n  - index: 0\n    gold: [{say: x}]\n", own_env_2="gold: x\n")
    pytester.mkdir("own_env.yaml")

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--hermes-env", "own_env.py", "--hermes-rules", "HE412")

    result.stdout.fnmatch_lines(["*own_env.cases.yml is not read: call it own_env.contract.yaml.*"])


@pytest.mark.parametrize(
    ("env_class", "gold", "told"),
    [
        (ManyEnv, lambda item: [say(item["word"] if item["kind"] == "early" else "?")], "gold earns less than 1 on "),
        (LateNoneEnv, lambda item: [say(item["word"])], "gold has no reward on "),
        (ManyEnv, lambda item: [say(["w0"][int(item["kind"] == "late")])], ""),
        (ManyEnv, [say("w0 is the word")], "gold earned 0, and doing nothing 0"),
    ],
)
def test_gold_that_is_not_paid_everywhere_is_named_with_its_items(env_class: type, gold: Any, told: str) -> None:
    """It earns less, has no reward, or cannot be made; HE405 reports the last."""
    verdict = judged("HE412", env_class, cases([item_cases(where="*", gold=gold)]))

    if told:
        assert verdict.outcome is Outcome.FAILED
        assert verdict.findings[0].message.startswith(told)
    else:
        assert (verdict.outcome, verdict.blocked_by) == (Outcome.NOT_EXERCISED, ("HE405",))


def test_a_key_that_no_result_of_the_terminal_has_is_named() -> None:
    """Its default is all that the reward ever sees."""
    (finding,) = judged("HE412", StdoutEnv, template()).findings

    assert finding.message.endswith("where compute_reward asks a result of ctx.terminal for 'stdout'")
    assert finding.fix.startswith("It has 'output' and 'exit_code'")


class RefusedFileEnv(ManyEnv):
    """Prepares a file of settings that hermes takes for broken, and so does not write; nor does it raise."""

    @classmethod
    def config_init(cls) -> Any:
        """With files."""
        config, servers = super().config_init()
        return config.model_copy(update={"enabled_toolsets": ["terminal", "file"]}), servers

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write it."""
        ctx.write_file("app.toml", "name = demo\nword = unset\n")

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Read it."""
        return float(item["word"] in str(ctx.read_file("app.toml").get("content")))


def test_a_file_that_was_not_prepared_is_named() -> None:
    """With the error that nobody read, at the line that wrote it."""
    gold = [
        item_cases(
            where="*", gold=lambda item: [call("terminal", command=f"sed -i s/unset/{item['word']}/ app.toml"), say("Done.")]
        )
    ]
    (finding,) = judged("HE412", RefusedFileEnv, cases(gold)).findings

    assert "where write_file of prepare_sandbox was refused for app.toml: Refusing to write" in finding.message
    assert 'ctx.write_file("app.toml"' in Path(__file__).read_text(encoding="utf-8").splitlines()[finding.line - 1]


def test_entries_take_turns() -> None:
    """The items of the second are not left out because the first selects many."""
    gold = {"gold": lambda item: [say(item["word"])]}
    late, early = (item_cases(where=lambda item, kind=kind: item["kind"] == kind, **gold) for kind in ("late", "early"))

    contract = contract_of(ManyEnv, [find_rule("HE412")], cases=cases([late, early]))
    assert contract.result(find_rule("HE412")).outcome is Outcome.PASSED
    played = [int(rung.item.rpartition(" ")[2]) for rung in contract.rungs if rung.name == "gold"]

    assert len(played) == 50
    assert min(sum(number < 40 for number in played), sum(number >= 40 for number in played)) >= 20


def test_what_was_not_played_elsewhere_is_not_judged() -> None:
    """What another process did not show has not passed."""
    verdict = judged("HE404", OnlyHereEnv, template())

    assert (verdict.outcome, verdict.findings) == (Outcome.NOT_EXERCISED, ())
    assert verdict.note.startswith("nothing was compared with another process: ")
    assert "not here" in verdict.note


def test_gold_that_is_not_paid_shows_what_its_reward_caught() -> None:
    """At its line; that a text is no number tells less."""
    (finding,) = judged("HE412", SwallowingEnv, template()).findings

    line = Path(__file__).read_text(encoding="utf-8").splitlines()[finding.line - 1]
    assert "compute_reward caught TypeError: the JSON object must be str, bytes or bytearray, not dict" in finding.message
    assert (finding.path, "json.loads(" in line) == (__file__, True)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize(("env_class", "rule", "cause"), [(ForgettingEnv, "HE412", "HE102"), (RepeatingEnv, "HE401", "HE101")])
def test_unpaid_gold_follows_from_what_the_source_shows(env_class: Any, rule: str, cause: str) -> None:
    """The rule that reads the source names the line; what was seen in play is told beside it."""
    findings = judged(rule, env_class, template()).findings

    assert {finding.because_of for finding in findings} == {cause}
    (named,) = judged(cause, env_class, template()).findings
    assert ("_is_wrong" if cause == "HE102" else "compute_reward") in named.message


def test_a_benchmark_needs_gold_too() -> None:
    """It trains nothing, and its scores are believed all the same."""
    without = judged("HE412", ExamEnv, None)
    item = {"word": "w1", "kind": "early"}

    assert without.outcome is Outcome.FAILED
    assert "no good work that was paid" in without.findings[0].message
    assert judged("HE412", ExamEnv, cases([item_cases(item=item, gold=[say("w1")])])).outcome is Outcome.PASSED


def test_gold_beside_guesses_is_compared_with_what_its_judge_finds_worst() -> None:
    """The judge of the others says what nobody declared; its worst verdict is known from the one on gold."""
    gold = {"gold": case([say("w1")], judge="0.9")}
    alone = judged("HE405", AskingEnv, cases([item_cases(where="*", **gold)]))
    both = judged("HE405", AskingEnv, cases([item_cases(where="*", **gold, nothing=case([say("no")], judge="0.1"))]))

    assert (alone.outcome, both.outcome) == (Outcome.PASSED, Outcome.PASSED)


def test_gold_of_another_item_that_is_paid_on_each_is_an_error() -> None:
    """On one item labels may coincide; on many they do not."""
    messages = [finding.message for finding in judged("HE405", ItemsAlikeEnv, template()).findings]

    assert any(message.startswith("gold of another item scored like the item's own on each of ") for message in messages)
    assert judged("HE405", ManyEnv, template()).outcome is Outcome.PASSED


def test_a_hack_that_earns_what_gold_earns_is_an_error_in_any_order() -> None:
    """Without a declared order, too."""
    verdict = judged("HE405", ManyEnv, template(hack=lambda item: [call("terminal", command="ls"), say(item["word"])]))

    assert [finding.severity for finding in verdict.findings] == ["error"]
    assert "the same as hack" in verdict.findings[0].message


def test_what_init_finds_is_gold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The template earned on several items, and the file says what."""
    env = tmp_path / "asked_env.py"
    body = Path(__file__).read_text(encoding="utf-8").partition("class LateNoneEnv")[0].partition("class ManyEnv")[2]
    head = (Path(__file__).parents[1] / "play" / "small_env.py").read_text(encoding="utf-8")
    env.write_text(f"{head}\n\nclass ManyEnv{body}", encoding="utf-8")

    assert cli.main(["init", f"{env}:ManyEnv"]) == 0
    file = next(tmp_path.glob("*.contract.yaml"))
    gold = next(one for one in read_cases(file).cases.items[0].cases if one.name == "gold")

    assert "gold was found, and earned 1, 1, 1" in capsys.readouterr().out
    assert gold.of is not None
    assert [str(turn) for turn in gold.of({"word": "w7", "kind": "x"}).turns] == ["say 'w7'"]


def test_rollouts_become_gold_near_miss_and_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The best, a middling and the worst, for the item with their prompt."""
    env = tmp_path / "small_env.py"
    env.write_text((Path(__file__).parents[1] / "play" / "small_env.py").read_text(encoding="utf-8"), encoding="utf-8")
    rollouts = tmp_path / "groups.jsonl"
    asked = {"role": "user", "content": "Print blue"}
    call_of = {"id": "1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "echo blue"}'}}
    said = [
        [asked, {"role": "assistant", "content": "", "tool_calls": [call_of]}, {"role": "assistant", "content": "done"}],
        [asked, {"role": "assistant", "content": "half"}],
        [asked, {"role": "assistant", "content": "no"}],
    ]
    rollouts.write_text(json.dumps({"scores": [1.0, 0.4, 0.0], "messages": said}) + "\n", encoding="utf-8")

    assert cli.main(["init", str(env), "--from", str(rollouts)]) == 0
    found = read_cases(tmp_path / "small_env.contract.yaml").cases.items[0].cases
    assert cli.main(["init", str(env), "--force", "--from", str(tmp_path / "none.jsonl")]) == 2

    transcripts = {one.name: [str(turn) for turn in one.of({}).turns] for one in found if one.of is not None}
    assert transcripts == {
        "gold": ["call terminal(command='echo blue')", "say 'done'"],
        "near_miss": ["say 'half'"],
        "nothing": ["say 'no'"],
    }
    assert "none.jsonl cannot be read" in capsys.readouterr().err


def test_python_declares_what_the_file_does() -> None:
    """Other names, a judge for all, and a function that returns a case."""
    declared = cases(
        [
            item_cases(
                item={"word": "red"},
                files={"a": "1"},
                gold=lambda item: case([say(item["word"])], judge="0.9", files={"b": "2"}),
                others={"wrong_place": [say("x")]},
            )
        ],
        judge="0.1",
        files={"c": "3"},
    )
    transcripts = {one.name: one.of({"word": "red"}) for one in declared.items[0].cases if one.of is not None}

    assert [str(one) for one in transcripts["gold"].judge + transcripts["wrong_place"].judge] == ["say '0.9'", "say '0.1'"]
    assert dict(transcripts["gold"].files) == {"a": "1", "b": "2", "c": "3"}
    assert dict(transcripts["wrong_place"].files) == {"a": "1", "c": "3"}


def test_a_class_may_waive_gold_and_what_is_not_judged(pytester: pytest.Pytester) -> None:
    """With a reason, in a comment at the class; both stand in the ledger, and the run is green."""
    text = (Path(__file__).parents[1] / "play" / "small_env.py").read_text(encoding="utf-8")
    waived = text.replace("\nclass SmallEnv(", "\n# hermes: HE412, HE405 its work cannot be written down\nclass SmallEnv(")
    pytester.makepyfile(waived_env=waived)

    result = pytester.runpytest_inprocess(
        "-p", "no:cacheprovider", "--hermes-env", "waived_env.py", "--hermes-rules", "HE412,HE405,HE103"
    )

    result.assert_outcomes(passed=1, xfailed=2, deselected=len(ALL_RULES) - 3)
    assert result.ret == 0
