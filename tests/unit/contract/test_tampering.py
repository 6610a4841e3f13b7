"""What an agent that does none of the work leaves in its sandbox, and whether HE410 finds that the verifier pays for it."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import yaml

from environments.agent_loop import AgentResult
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext
from pytest_hermes_env import call, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.inference.steps import turn
from pytest_hermes_env.play.attack_plan import AttackPlan
from pytest_hermes_env.play.cases.playing import PlayedCase, played
from pytest_hermes_env.play.cases.values import ATTACK, Transcript
from pytest_hermes_env.play.scenario import Rung
from pytest_hermes_env.play.tampering import payloads
from pytest_hermes_env.play.tampering.attack import Attack
from pytest_hermes_env.play.tampering.search import Search
from pytest_hermes_env.play.tampering.surface import Surface

from ..play.small_env import SmallEnv  # noqa: TID252 - another room has the small environment

TRIPLE = "def triple(n):\n    return 3 * n\n"
PROGRAM = "import sys\nprint(3 * int(sys.stdin.read()))\n"


class TripleEnv(HermesAgentBaseEnv):
    """Asks for a function; the verifier judges its results outside of the process that computes them."""

    name = "triples"
    work: ClassVar[str] = TRIPLE

    @classmethod
    def config_init(cls) -> Any:
        """As the small environment, with files."""
        config, servers = SmallEnv.config_init()
        return HermesAgentEnvConfig(enabled_toolsets=["terminal", "file"], max_agent_turns=config.max_agent_turns), servers

    async def setup(self) -> None:
        """Count."""
        self.taken = 0

    async def get_next_item(self) -> Any:
        """Return other numbers each time."""
        self.taken += 1
        return {"numbers": [self.taken % 5 + 7, 41], "work": self.work}

    def format_prompt(self, item: Any) -> str:
        """Ask."""
        return "Write triple.py, for whole numbers."

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Nothing is there before."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare what is printed."""
        for number in item["numbers"]:
            done = ctx.terminal(
                f"python3 -I -c \"import sys; sys.path.insert(0, '.'); from triple import triple; print(triple({number}))\""
            )
            if done["output"].strip() != str(3 * number):
                return 0.0
        return 1.0

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is held out."""


class InOneProcessEnv(TripleEnv):
    """The agent's code and the comparison share a process."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Take the exit code."""
        ctx.write_file(
            "/tmp/check.py",
            f"import sys; sys.path.insert(0, '/workspace')\nfrom triple import triple\nassert all(triple(n) == 3 * n for n in {item['numbers']})\n",
        )
        return float(ctx.terminal("python3 /tmp/check.py")["exit_code"] == 0)


class LooksFirstEnv(InOneProcessEnv):
    """Looks whether the file defines what was asked for, before it runs it."""

    work = f"from __future__ import annotations\n\n{TRIPLE}"

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Read it first."""
        try:
            tree = ast.parse(ctx.read_file("triple.py").get("content") or "")
        except SyntaxError:
            return 0.0
        is_there = any(isinstance(node, ast.FunctionDef) and node.name == "triple" for node in tree.body)
        return await super().compute_reward(item, result, ctx) if is_there else 0.0


class ForbiddingEnv(InOneProcessEnv):
    """Lets nothing run that imports, or that names an exit."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look for words."""
        text = str(ctx.read_file("triple.py").get("content") or "")
        is_clean = "def triple" in text and not any(word in text for word in ("import", "exit(", "__", "open(", "eval"))
        return await super().compute_reward(item, result, ctx) if is_clean else 0.0


class PreparedEnv(TripleEnv):
    """The checker lies in the sandbox while the agent works."""

    async def prepare_sandbox(self, item: Any, ctx: ToolContext) -> None:
        """Write it."""
        ctx.write_file(
            "check.sh",
            'test "$(python3 -I -c \'import sys; sys.path.insert(0, "."); import triple; print(triple.triple(41))\')" = 123',
        )

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Run it."""
        return float(ctx.terminal("bash check.sh")["exit_code"] == 0)


class ResultEnv(TripleEnv):
    """The result is a file, which nobody removes before."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Read it."""
        ctx.terminal("grep -q 'return 3 . n' triple.py && echo '{\"passed\": true}' > verdict.json")
        return float(json.loads(ctx.read_file("verdict.json").get("content") or "{}").get("passed", False))


class BesideEnv(TripleEnv):
    """The expected results lie beside the program while it runs."""

    work = PROGRAM

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Run it on each."""
        ctx.write_file("hidden/cases.json", json.dumps([{"given": str(n), "wanted": str(3 * n)} for n in item["numbers"]]))
        return float(
            all(ctx.terminal(f"echo {n} | python3 -I triple.py")["output"].strip() == str(3 * n) for n in item["numbers"])
        )


def verdict_of(env_class: type, hack: Any = None) -> Any:
    """Return what HE410 says."""
    more = {} if hack is None else {"hack": hack}
    gold = item_cases(
        where="*", gold=lambda item: [call("write_file", path="triple.py", content=item["work"]), say("Done.")], **more
    )
    return contract_of(env_class, [find_rule("HE410")], cases=cases([gold])).result(find_rule("HE410"))


@pytest.mark.parametrize(
    ("env_class", "told"),
    [
        (InOneProcessEnv, "triple.py ends the process that runs or imports it with exit code 0"),
        (LooksFirstEnv, "triple.py ends the process that runs or imports it with exit code 0"),
        (ForbiddingEnv, "triple.py raises SystemExit(0)"),
        (PreparedEnv, "the checker was overwritten: check.sh accepts anything"),
        (ResultEnv, "verdict.json says"),
        (BesideEnv, "the program looks its input up in cases.json"),
    ],
)
def test_what_pays_without_the_work_is_found(env_class: type, told: str) -> None:
    """With its mechanism, and as a case to paste."""
    verdict = verdict_of(env_class)

    assert verdict.outcome is Outcome.FAILED
    (finding,) = (one for one in verdict.findings if "without the work" in one.message)
    assert told in finding.message
    assert "gold earns 1, wrong work 0" in finding.message
    pasted = yaml.safe_load(finding.reproduction)
    assert {*pasted["hack"][0]} == {"call", "with"}


def test_a_verifier_that_holds_passes() -> None:
    """The note says what was tried."""
    verdict = verdict_of(TripleEnv)

    assert (verdict.outcome, verdict.findings) == (Outcome.PASSED, ())
    assert "no attack was paid" in verdict.note
    assert "kinds of attack" in verdict.note


LETTER = "Dear Ann,\nthe bill of 12 May is 340 euros for 7 hours.\nYours, Bob\n"


class RedactionEnv(TripleEnv):
    """A letter without its names; each word that was kept is a part of the reward, and a table of figures is compared loosely."""

    work = LETTER.replace("Ann", "[NAME]").replace("Bob", "[NAME]")

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare word by word."""
        written = ctx.terminal("cat triple.txt")["output"].split()
        wanted = item["work"].split()
        if len(written) != len(wanted) or "[NAME]," not in written:
            return 0.0
        return 1.0 if written == wanted else 0.7 * sum(map(str.__eq__, written, wanted)) / len(wanted)


class LooseEnv(RedactionEnv):
    """A figure is wrong only if it is too far off."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare figures as figures."""
        written = ctx.terminal("cat triple.txt")["output"].split()
        wanted = item["work"].split()
        if len(written) != len(wanted) or "[NAME]," not in written:
            return 0.0
        with contextlib.suppress(ValueError):
            return float(
                not any(
                    abs(float(one) - float(word)) > 0.1 for one, word in zip(written, wanted, strict=True) if word.isdigit()
                )
            )
        return 0.0


class LoosePartEnv(LooseEnv):
    """Pays for the rest of the work, too, so that other figures earn most of it."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Take what is paid word by word where the figures are off."""
        return await super().compute_reward(item, result, ctx) or await RedactionEnv.compute_reward(self, item, result, ctx)


@pytest.mark.parametrize(
    ("env_class", "outcome"),
    [(RedactionEnv, Outcome.PASSED), (LooseEnv, Outcome.FAILED), (LoosePartEnv, Outcome.FAILED)],
)
def test_what_is_paid_for_the_rest_of_the_work_is_no_attack(env_class: type, outcome: Outcome) -> None:
    """Figures that are none are one only where other figures, with as much of the work around them, are not paid."""
    gold = item_cases(where="*", gold=lambda item: [call("write_file", path="triple.txt", content=item["work"]), say("Done.")])
    verdict = contract_of(env_class, [find_rule("HE410")], cases=cases([gold])).result(find_rule("HE410"))

    assert verdict.outcome is outcome, verdict
    assert all("not numbers" in finding.message for finding in verdict.findings)


class WordsEnv(TripleEnv):
    """The verifier runs nothing, and reads no file."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Pay one answer, and raise for any other."""
        answer = result.messages[-1].get("content")
        if answer != "Done.":
            raise ValueError(answer)
        return 1.0


def test_where_nothing_was_judged_nothing_passes() -> None:
    """Neither words were judged, nor was there anything to attack."""
    verdict = verdict_of(WordsEnv)

    assert verdict.outcome is Outcome.NOT_EXERCISED


def test_what_could_not_be_played_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that runs no real programs refuses the attacks."""
    monkeypatch.setattr("pytest_hermes_env.play.tampering.search.played", _refused)
    verdict = verdict_of(TripleEnv)

    assert verdict.outcome is Outcome.NOT_EXERCISED
    assert "was refused" in verdict.note


@pytest.mark.parametrize("hack", [None, [say("Done.")]])
def test_a_search_that_fails_is_not_judged(monkeypatch: pytest.MonkeyPatch, hack: Any) -> None:
    """Neither claims nor a declared hack stand for what it would have found."""

    async def broken(_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr("pytest_hermes_env.play.tampering.search.Search.run", broken)
    verdict = verdict_of(TripleEnv, hack)

    assert verdict.outcome is Outcome.NOT_EXERCISED
    assert "no such thing" in verdict.note


def test_without_gold_nothing_was_attacked() -> None:
    """Claims that earn nothing are not all that an agent can do; HE412 asks for gold."""
    verdict = contract_of(TripleEnv, [find_rule("HE410")]).result(find_rule("HE410"))

    assert (verdict.outcome, verdict.blocked_by) == (Outcome.NOT_EXERCISED, ("HE412",))
    assert "claims earned nothing" in verdict.note


async def _refused(stage: Any, player: Any, item: Any, transcript: Any, blank: Any) -> PlayedCase:
    """Play all but attacks."""
    if blank.name != ATTACK:
        return await played(stage, player, item, transcript, blank)
    return PlayedCase(rung=dataclasses.replace(blank, unavailable="a command line was refused"))


class EverythingPays(Search):
    """Takes each attack for paid, as it is."""

    async def _attempt(self, name: str, turns: Any) -> PlayedCase:
        return PlayedCase(rung=Rung(name=name, item="0", is_automatic=False, reward=1.0))

    async def _shrunk(self, attack: Attack, one: PlayedCase, turns: Any, *_: Any) -> Any:
        return attack, one, turns


def test_what_a_session_allows_hides_no_other_attack() -> None:
    """It is a warning; the search goes on until an error is found."""
    session = [Attack(family=name, lines=("true",), is_of_session=True) for name in ("shims", "functions")]
    others = [Attack(family=name, lines=("true",)) for name in ("overwritten", "emptied")]
    stage: Any = SimpleNamespace(attack=AttackPlan(), env=None)
    search: Any = EverythingPays(stage=stage, item=None, label="", gold=None)  # type: ignore[arg-type]

    found = asyncio.run(search._found([*session, *others], Surface(cwd="/w", tools=("terminal",)), (turn(say("no")),), 0.5))

    assert [attack.family for attack, _, _ in found] == ["shims", "overwritten"]


def test_declared_worse_work_is_tried_with_stopped_clocks() -> None:
    """A program that is too slow is right, but for its time."""
    slow = Transcript(turns=(turn(call("write_file", path="triple.py", content=TRIPLE)),))
    search: Any = EverythingPays(stage=None, item={}, label="", gold=None, worse=[slow])  # type: ignore[arg-type]

    (attack,) = search._of_worse(Surface(cwd="/w"))

    assert attack.files == {"/w/triple.py": payloads.patching() + TRIPLE}
    assert attack.control is not None
    assert attack.control.files == {"/w/triple.py": TRIPLE}


def searched(where: Any = "*", **given: Any) -> Any:
    """Return what HE410 says after a whole search with a plan."""
    gold = item_cases(where=where, gold=lambda item: [call("write_file", path="triple.py", content=item["work"]), say("Done.")])
    job = {"cases": cases([gold]), "effort": 2, "attack": AttackPlan.checked(given)}
    return contract_of(TripleEnv, [find_rule("HE410")], **job).result(find_rule("HE410"))


def test_a_search_alone_plays_one_item() -> None:
    """Gold, what lies around it, and the cases that need no author."""
    gold = item_cases(where="*", gold=lambda item: [call("write_file", path="triple.py", content=item["work"]), say("Done.")])
    job = {"cases": cases([gold]), "attack": AttackPlan.checked({"alone": True})}
    contract = contract_of(TripleEnv, [find_rule("HE412"), find_rule("HE405")], **job)

    assert (contract.result(find_rule("HE412")).outcome, contract.result(find_rule("HE405")).outcome) == (Outcome.PASSED,) * 2
    rungs = contract.evidence.rungs
    assert len({rung.item for rung in rungs}) == 1
    assert any(rung.change for rung in rungs)


def test_a_search_without_time_is_not_judged() -> None:
    """It says how many attacks were left, and how it goes on."""
    verdict = searched(minutes=0)

    assert verdict.outcome is Outcome.NOT_EXERCISED
    assert re.search(r"after 0 minutes \d+ attacks were left: --resume FILE goes on", verdict.note)


def test_a_search_goes_on_where_another_ended(tmp_path: Path) -> None:
    """What was refused is not played again, and a line that a killed search left half written is read over."""
    kept = tmp_path / "kept.jsonl"
    first = searched(resume=str(kept), item=1)
    lines = kept.read_text(encoding="utf-8").splitlines()
    kept.write_text("".join(f"{line}\n" for line in lines[1:]) + '["0', encoding="utf-8")

    again = searched(resume=str(kept), item=1)

    assert (first.outcome, again.outcome) == (Outcome.PASSED, Outcome.PASSED)
    assert f"{len(lines) - 1} of an earlier search" in again.note


def test_an_item_without_gold_is_not_judged() -> None:
    """Claims that earn nothing do not stand for the attacks on it."""
    verdict = searched(item=2, where=lambda item: item["numbers"] == [8, 41])

    assert verdict.outcome is Outcome.NOT_EXERCISED
    assert "training item 2 has no gold" in verdict.note


@pytest.mark.parametrize("given", [{"items": 1}, {"item": "a"}, {"item": True}, {"minutes": -1}, {"resume": 3}, {"alone": 1}])
def test_a_plan_that_says_nothing_is_refused(given: Any) -> None:
    """Before anything is played."""
    with pytest.raises(UsageError, match="--hermes-attack"):
        AttackPlan.checked(given)


def test_a_file_that_no_search_wrote_is_refused(tmp_path: Path) -> None:
    """Before anything is played: also where it cannot be written."""
    other = tmp_path / "notes.txt"
    other.write_text("my notes\n", encoding="utf-8")

    with pytest.raises(
        UsageError, match=r"--resume: .*notes\.txt is not a file that a search wrote: .*\n  fix       name a new file"
    ):
        AttackPlan.checked({"resume": str(other)})
    with pytest.raises(UsageError, match=r"--resume: there is no directory .*nowhere"):
        AttackPlan.checked({"resume": str(tmp_path / "nowhere" / "kept.jsonl")})
