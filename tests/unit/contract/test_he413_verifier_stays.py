"""What a reward does on the host with the agent's work is found, and what it does with its own files is not."""

from __future__ import annotations

import ast
import importlib.util
import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from environments.agent_loop import AgentResult
from environments.tool_context import ToolContext
from pytest_hermes_env import call, cases, item_cases, say
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of

from .test_tampering import TripleEnv

OWN = Path(__file__).with_name("rule_cases.py")


class SubprocessEnv(TripleEnv):
    """Runs the agent's code beside the trainer."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Take what it prints."""
        code = ctx.read_file("triple.py").get("content") or ""
        done = subprocess.run(
            [sys.executable, "-I", "-c", f"{code}\nprint(triple(41))"], capture_output=True, text=True, check=False
        )
        return float(done.stdout.strip() == "123")


class ExecEnv(TripleEnv):
    """Runs the agent's code in the trainer."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Call it."""
        known: dict[str, Any] = {}
        try:
            exec(ctx.read_file("triple.py").get("content") or "", known)
            return float(known["triple"](41) == 123)
        except (SyntaxError, KeyError, TypeError, NameError):
            return 0.0


class OpenEnv(TripleEnv):
    """Looks for the agent's file on the host."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Read it."""
        try:
            with open("triple.py") as file:
                return float("triple" in file.read())
        except OSError:
            return 0.5 * ("def triple" in (ctx.read_file("triple.py").get("content") or ""))


class QueryEnv(TripleEnv):
    """Asks a database of the host what the agent wrote."""

    work = "select 3 * n from numbers order by n"

    async def setup(self) -> None:
        """Fill it."""
        await super().setup()
        path = Path(tempfile.mkdtemp()) / "numbers.db"
        self.base = sqlite3.connect(path, check_same_thread=False)
        self.base.executescript("create table numbers (n); insert into numbers values (7), (9); create table names (name);")

    def asked(self, query: str) -> list[Any]:
        """Return rows; none where the query is none."""
        try:
            return self.base.execute(query).fetchall()
        except sqlite3.Error:
            return []

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Compare the rows."""
        return float(self.asked(ctx.read_file("triple.py").get("content") or "") == [(21,), (27,)])


class LookedUpEnv(QueryEnv):
    """Looks the agent's text up in it."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """By a parameter."""
        text = ctx.read_file("triple.py").get("content") or ""
        self.base.execute("insert into names values (?)", (text,))
        found = self.base.execute("select count(*) from names where name = ?", (text,)).fetchone()[0]
        return float(found > 0 and text.strip() == item["work"])


class ImportEnv(TripleEnv):
    """Imports the agent's module on the host."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """From a file of its own name."""
        place = Path(tempfile.mkdtemp()) / "candidate.py"
        place.write_text(ctx.read_file("triple.py").get("content") or "", encoding="utf-8")
        spec = importlib.util.spec_from_file_location("candidate", place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            return float(module.triple(41) == 123)
        except (SyntaxError, AttributeError, NameError, TypeError):
            return 0.0


class OwnFilesEnv(TripleEnv):
    """Reads its own data, and parses what the agent wrote."""

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Do all that is allowed."""
        own = OWN.read_text(encoding="utf-8")
        text = ctx.read_file("triple.py").get("content") or ""
        version = subprocess.run([sys.executable, "--version"], capture_output=True, check=False) if not text else None
        try:
            tree = ast.parse(text)
            ast.literal_eval("[1]")
        except SyntaxError:
            return 0.0
        assert json.dumps([own, text, str(version)])
        return float(ast.dump(tree) == ast.dump(ast.parse(item["work"])))


def verdict_of(env_class: type) -> Any:
    """Return what HE413 says."""
    gold = item_cases(where="*", gold=lambda item: [call("write_file", path="triple.py", content=item["work"]), say("Done.")])
    return contract_of(env_class, [find_rule("HE413")], cases=cases([gold])).result(find_rule("HE413"))


@pytest.mark.parametrize(
    ("env_class", "told"),
    [
        (SubprocessEnv, "subprocess.run runs on the host what compute_reward gives it"),
        (ExecEnv, "exec runs on the host what compute_reward gives it"),
        (QueryEnv, "asked asks a database of the host with the agent's work"),
        (ImportEnv, "imports code in the trainer's own process with the agent's work"),
        (OpenEnv, "compute_reward opens a file of the host with the agent's work: 'triple.py'"),
    ],
)
def test_the_agents_work_on_the_host_is_found(env_class: type, told: str) -> None:
    """At the line that does it, seen in rollouts."""
    verdict = verdict_of(env_class)

    assert verdict.outcome is Outcome.FAILED
    assert any(told in one.message and one.is_confirmed and one.severity is None for one in verdict.findings), verdict.findings


@pytest.mark.parametrize("env_class", [TripleEnv, OwnFilesEnv, LookedUpEnv])
def test_the_environments_own_files_are_allowed(env_class: type) -> None:
    """And so is all that only reads the agent's text."""
    assert verdict_of(env_class).outcome is Outcome.PASSED
