"""What an agent that does none of the work leaves in its sandbox, and whether HE410 finds that the verifier pays for it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import re
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import yaml

from environments.agent_loop import AgentResult
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.sandbox.file_transfer import upload_file
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
from pytest_hermes_env.play.tampering.attacks import attacks
from pytest_hermes_env.play.tampering.search import Search, with_attack
from pytest_hermes_env.play.tampering.surface import Surface, without_uploads
from pytest_hermes_env.sandbox.seam import ToolCall

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


SURFACE = Surface(
    cwd="/w",
    commands=(("python3 -m pytest -q test_a.py", "3 passed in 0.10s\n"),),
    reads=frozenset({"/w/test_a.py", "/w/a.py", "/w/report.json"}),
    work={"/w/a.py": "def f():\n    return 1\n"},
    uploads={"/w/test_a.py": "import json\nfrom a import f\n"},
    tools=("terminal", "write_file"),
)


@pytest.mark.parametrize(
    ("output", "said"),
    [("", ""), ("all passed\n", "all passed"), ("42\n", None)],
)
def test_an_end_says_just_what_was_said_of_gold(output: str, said: str | None) -> None:
    """Nothing, or its one word; an answer is no word of it."""
    surface = dataclasses.replace(
        SURFACE,
        work={"/w/triple.py": TRIPLE},
        commands=(("mktemp -d", "/tmp/x"), ("python3 -m doctest triple.py", output)),
        answers=frozenset({"42"}),
    )

    assert surface.said_of_work == said
    ends = [one for one in attacks(surface) if "no other word than gold's" in one.family]
    assert [one.files["/w/triple.py"].count("print(") for one in ends] == ([] if said is None else [bool(said)])


def test_attacks_follow_what_was_seen() -> None:
    """Modules that are imported, files that are looked for, and what the runner said."""
    first = next(attacks(SURFACE))

    assert {"/w/a.py", "/w/conftest.py", "/w/pytest.py", "/w/json.py"} <= {*first.files}
    assert "/w/os.py" not in first.files
    assert "3 passed in 0.10s" in first.files["/w/a.py"]
    assert any("/w/report.json" in one.files for one in attacks(SURFACE))
    assert not any("git" in one.family for one in attacks(SURFACE))


def test_no_answer_is_among_what_is_said() -> None:
    """Lines that programs printed count where they are a runner's, or words of the verifier's own code."""
    surface = Surface(
        cwd="/w", commands=(("python3 a.py", "a line of the answer\nMATCH\n"),), uploads={"/w/c.py": "print('MATCH')"}
    )

    assert "MATCH" in surface.said.splitlines()
    assert "answer" not in surface.said


def test_an_agent_without_a_terminal_writes_files() -> None:
    """An attack that needs a command is not tried."""
    base = (turn(say("no")),)
    plain = Attack(family="x", files={"/w/a": "1"})

    assert with_attack(base, plain, ("write_file",))[0].steps[0].tool == "write_file"
    assert with_attack(base, Attack(family="x", files={"~/a": "1"}), ("write_file",)) == ()


def test_an_attack_without_one_of_its_files_is_otherwise_the_same() -> None:
    """One that lives by the session's own programs stays such a one: it is a warning."""
    attack = Attack(family="x", files={"/w/a": "1", "/w/b": "2"}, lines=("ls",), first=("pwd",), is_of_session=True)

    assert attack.without("/w/a") == dataclasses.replace(attack, files={"/w/b": "2"})


@pytest.mark.parametrize("text", ["it's", 'a "b" $HOME `c`', "two\nlines"])
def test_a_script_writes_results_as_they_are(tmp_path: Path, text: str) -> None:
    """Whatever quotes they hold."""
    place = tmp_path / "it's.json"
    script = payloads.program("x.sh", "ok", {str(place): text})
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)

    assert (place.read_text(encoding="utf-8"), done.stdout) == (text, "ok\n")


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


def attack_named(surface: Surface, part: str, *, is_full: bool = False) -> Attack:
    """Return the first attack whose family holds a text."""
    return next(one for one in attacks(surface, is_full=is_full) if part in one.family)


def test_what_lies_prepared_may_be_moved_or_go_after_another_file() -> None:
    """Limits in settings, by their names; a file that make reads first."""
    prepared = {
        "/w/quality.ini": "[f]\nmax_lines = 5\nmin_documented = 1.0\nother = 3\n",
        "/w/Makefile": "check:\n\tpython3 t.py\n",
    }
    surface = dataclasses.replace(SURFACE, prepared=prepared, reads=frozenset(prepared))

    moved = attack_named(surface, "limits").files["/w/quality.ini"]
    assert moved == "[f]\nmax_lines = 999999\nmin_documented = 0\nother = 999999\n"
    assert attack_named(surface, "limits were set as low").files["/w/quality.ini"].endswith("other = 0\n")
    assert attack_named(surface, "goes before").files == {"/w/GNUmakefile": "check:\n\t@echo PASS\n"}


def test_what_programs_make_may_be_a_link_or_a_view() -> None:
    """Results of two programs that are compared; a table that the verifier makes."""
    made = {"/w/.g/actual.txt": "a", "/w/.g/expected.txt": "a", "/w/shop.db": "\x00"}
    line = (
        'python3 -c \'db.execute("create table wanted (n)"); db.execute("select * from summary except select * from wanted")\'',
        "",
    )
    surface = dataclasses.replace(SURFACE, made=made, commands=(line,))

    links = [one.lines[0] for one in attacks(surface) if "is a link to expected.txt" in one.family]
    assert "mkdir -p $(dirname /w/.g/actual.txt); ln -sfn /w/.g/expected.txt /w/.g/actual.txt" in links
    assert "create view summary as select * from wanted" in attack_named(surface, "summary is a view of wanted").lines[0]


def test_work_that_was_there_before_is_attacked_as_it_was() -> None:
    """What the agent should have made faster, with a clock that stands."""
    surface = dataclasses.replace(SURFACE, prepared={"/w/a.py": "def f():\n    return sum(range(10 ** 9))\n"})

    assert attack_named(surface, "the work as it was").files["/w/a.py"].endswith(surface.prepared["/w/a.py"])


def test_a_process_may_wait_for_the_checker(tmp_path: Path) -> None:
    """It is a warning, since it lives by the session, and is part of the full search."""
    script = tmp_path / "check.sh"
    surface = dataclasses.replace(SURFACE, uploads={str(script): "exit 1\n"}, commands=(("bash check.sh", "all is well\n"),))
    assert not any("background" in one.family for one in attacks(surface))

    attack = attack_named(surface, "background", is_full=True)
    assert attack.is_of_session
    subprocess.run(["bash", "-c", attack.lines[0]], cwd=tmp_path, check=True, timeout=20)
    script.write_text("exit 1\n", encoding="utf-8")
    while "exit 0" not in script.read_text(encoding="utf-8"):
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("seen", "is_first"),
    [
        ('{"total": 3, "passed": 3, "failures": []}', True),
        ('{"status": "passed"}', True),
        ('{"answer": "the river Oder"}', False),
    ],
)
def test_a_report_that_anybody_could_write_is_written(seen: str, is_first: bool) -> None:
    """One of counts and words of success; no word of it is an answer."""
    found = payloads.results_for("/w/report.json", seen, ())

    assert (found[0] == seen) == is_first


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_code_for_node_writes_results_at_its_end(tmp_path: Path) -> None:
    """Whatever the program that loads it wrote before."""
    (tmp_path / "work.js").write_text(payloads.program("work.js", "ok", {"report.json": "good"}), encoding="utf-8")
    runner = "require('./work.js'); require('fs').writeFileSync('report.json', 'bad')"
    done = subprocess.run(["node", "-e", runner], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert ((tmp_path / "report.json").read_text(encoding="utf-8"), done.stdout) == ("good", "ok\n")


def test_where_data_is_emptied_the_head_of_golds_table_may_be_right() -> None:
    """A verifier that computes what is right from the agent's own copy of the data expects the head of a table."""
    ledger, summary = "/workspace/ledger.csv", "/workspace/summary.csv"
    seen = Surface(
        cwd="/workspace",
        work={summary: "account,total\nrent,4\n"},
        prepared={ledger: "date,account\n1,rent\n"},
        reads=frozenset({ledger, summary}),
    )

    files = [attack.files for attack in attacks(seen) if "emptied" in attack.family]

    assert files == [{ledger: "date,account", summary: ""}, {ledger: "date,account", summary: "account,total\n"}]


@pytest.mark.parametrize(
    ("lines", "part", "seen"),
    [
        ("git diff --quiet v1 HEAD -- a.txt", "all names of the repository", "git update-ref"),
        ("cd d && grep -L x *", "a file is named -q", "/w/d/-q"),
        ("gcc -I. -o t t.c a.c && ./t", "headers where the compiler looks first", "/w/assert.h"),
        ("set -eu; . ./a.env; test $A = 1", "makes every test of the shell succeed", "/w/a.env"),
        ("npm test", "settings that a program reads of itself", "/w/.npmrc"),
    ],
)
def test_names_that_a_program_finds_may_stand_for_something_else(lines: str, part: str, seen: str) -> None:
    """Commits, options, headers, and settings, where the verifier was seen to run a program that finds them so; else none is tried."""
    work = {"/w/a.env": "A=1\n", "/w/a.c": "int a(int n)\n{\n    return n;\n}\n", "/w/d/x": "x\n"}
    source = {"/w/t.c": "#include <assert.h>\n"} if "gcc" in lines else {}
    fitting = Surface(cwd="/w", commands=((lines, ""),), work=work, uploads=source, tools=("terminal",))

    attack = attack_named(fitting, part)

    assert seen in {*attack.files} or any(seen in line for line in attack.lines)
    others = dataclasses.replace(fitting, commands=(("python3 t.py", ""),), uploads={})
    assert not any(part in one.family for one in attacks(others))


@pytest.mark.parametrize(
    ("name", "text", "run"),
    [
        ("work.awk", "", "awk -f work.awk case1.csv"),
        ("work.pl", "", "perl work.pl case1.csv"),
        ("work.sh", "", "sh work.sh case1.csv"),
        ("work.c", "#include <stdio.h>\nint main(void)\n{\n    return 1;\n}\n", "gcc -o work work.c && ./work case1.csv"),
    ],
)
def test_work_in_any_language_finds_what_stands_beside_its_input(tmp_path: Path, name: str, text: str, run: str) -> None:
    """By the words with which it was called, whichever program it is."""
    if shutil.which(run.split(maxsplit=1)[0]) is None:
        pytest.skip(f"{run.split(maxsplit=1)[0]} is not installed")
    surface = Surface(
        cwd=str(tmp_path), commands=((run, ""),), work={str(tmp_path / name): text}, reads=frozenset({"/w/gone.txt"})
    )
    (tmp_path / "case1.csv").write_text("a,b\n", encoding="utf-8")
    (tmp_path / "case1.want").write_text("what is right\n", encoding="utf-8")
    for path, made in attack_named(surface, "a program of python3").files.items():
        Path(path).write_text(made, encoding="utf-8")

    done = subprocess.run(["sh", "-c", run], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "what is right\n"


def test_a_base_may_lose_its_source_and_keep_its_tables(tmp_path: Path) -> None:
    """The tables that gold made are there, and nothing is in any."""
    base = tmp_path / "shop.db"
    with contextlib.closing(sqlite3.connect(base)) as made:
        made.executescript("create table orders (n int); insert into orders values (3)")
    before = base.read_bytes().decode(errors="replace")
    surface = Surface(
        cwd="/w", work={str(base): "CREATE TABLE orders (n int)\0CREATE TABLE totals (n int)"}, prepared={str(base): before}
    )

    for line in attack_named(surface, "tables of which all are empty").lines:
        subprocess.run(["sh", "-c", line], check=True)

    with contextlib.closing(sqlite3.connect(base)) as made:
        assert made.execute("select (select count(*) from orders), (select count(*) from totals)").fetchall() == [(0, 0)]


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


def searched(where: Any = "*", **given: Any) -> Any:
    """Return what HE410 says after a whole search with a plan."""
    gold = item_cases(where=where, gold=lambda item: [call("write_file", path="triple.py", content=item["work"]), say("Done.")])
    job = {"cases": cases([gold]), "effort": 2, "attack": AttackPlan.checked(given)}
    return contract_of(TripleEnv, [find_rule("HE410")], **job).result(find_rule("HE410"))


def test_a_search_alone_plays_nothing_around_gold() -> None:
    """Gold once, on one item, with the cases that need no author."""
    gold = item_cases(where="*", gold=lambda item: [call("write_file", path="triple.py", content=item["work"]), say("Done.")])
    job = {"cases": cases([gold]), "attack": AttackPlan.checked({"alone": True})}
    contract = contract_of(TripleEnv, [find_rule("HE412"), find_rule("HE405")], **job)

    assert (contract.result(find_rule("HE412")).outcome, contract.result(find_rule("HE405")).outcome) == (Outcome.PASSED,) * 2
    rungs = contract.evidence.rungs
    assert len({rung.item for rung in rungs}) == 1
    assert not any(rung.change for rung in rungs)


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


@pytest.mark.parametrize(
    ("lines", "part", "seen"),
    [
        ("bash .t/tests.sh; echo $?", "what bash does", "BASH_ENV"),
        ("{ time python3 a.py; } 2>&1", "what time does", "TIMEFORMAT"),
        ("make check", "what make does", "MAKEFLAGS"),
        ("gcc -o p p.c && ./p | cmp - e.txt", "compares nothing", "/cmp"),
        ("cmp out.txt golden.txt", "out.txt is a link to golden.txt", "ln -sfn"),
    ],
)
def test_what_the_session_and_uploads_allow_is_tried(lines: str, part: str, seen: str) -> None:
    """Where the verifier was seen to run such a program; else not."""
    fitting = Surface(
        cwd="/w",
        commands=((lines, "ok"),),
        work={"/w/p.c": "x", "/w/out.txt": "1"},
        uploads={"/w/golden.txt": "1"},
        tools=("terminal",),
    )

    assert any(seen in line for line in attack_named(fitting, part).lines)
    others = dataclasses.replace(fitting, commands=(("python3 t.py", ""),), uploads={})
    assert not any(part in one.family for one in attacks(others))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_module_of_node_changes_the_checks_of_its_process(tmp_path: Path) -> None:
    """It is whatever it is taken for, and nothing that is compared differs."""
    (tmp_path / "lib.js").write_text(payloads.equal_to_all("lib.js", ""), encoding="utf-8")
    check = "const assert = require('node:assert'); const { f } = require('./lib.js'); assert.strictEqual(f(1).a, 2); assert.deepEqual(f, [3]);"

    assert subprocess.run(["node", "-e", check], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_a_script_of_sqlite_lets_no_query_after_it_print(tmp_path: Path) -> None:
    """Two that differ print the same."""
    prepared = {str(tmp_path / "shop.sql"): "create table a (b);\ninsert into a values (1);\n"}
    line = "sqlite3 :memory: '.read shop.sql' "
    surface = Surface(
        cwd=str(tmp_path), commands=((f"{line}'select * from a'", "1"),), prepared=prepared, reads=frozenset(prepared)
    )
    for path, text in attack_named(surface, "a script of sqlite3").files.items():
        Path(path).write_text(text, encoding="utf-8")

    told = {
        subprocess.run(["sh", "-c", line + query], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for query in ("'select * from a'", "'select 7'")
    }
    assert told == {"rows\n"}


class Noting:
    """A shell that notes its commands, all of which succeed."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []

    def terminal(self, command: str, timeout: int = 9) -> dict[str, Any]:
        """Note one."""
        self.calls.append(ToolCall(task_id="", name="terminal", arguments={"command": command}, result="", seconds=timeout))
        return {"exit_code": 0, "output": ""}


def test_what_the_layer_uploads_by_commands_is_the_verifiers(tmp_path: Path) -> None:
    """In one part or several, and whatever its name; these commands are none of its own."""
    texts = {"golden/one.txt": "1 2 3\n", "a golden/it's.py": "x" * 200_000, "empty": ""}
    shell: Any = Noting()
    for name, text in texts.items():
        (tmp_path / "one").write_text(text, encoding="utf-8")
        upload_file(shell, str(tmp_path / "one"), name)
    shell.terminal("ls")

    uploads, rest = without_uploads(shell.calls)

    assert uploads == texts
    assert [one.arguments["command"] for one in rest] == ["ls"]
