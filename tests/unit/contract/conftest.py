"""Judging a piece of source by one rule, with the expected lines marked in the source itself."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.source import read_classes, without_abstract_bases

MARK = "# <- here"

IMPORTS = """\
import asyncio
import contextlib
import logging
import time
import uuid
from collections import defaultdict, deque

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from environments.agent_loop import AgentResult, HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext

logger = logging.getLogger(__name__)

"""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict of a rule's static half on the only environment of a source, and the lines that the source marks."""

    verdict: Verdict
    marked: tuple[int, ...]

    @property
    def outcome(self) -> Outcome:
        """What the rule concluded."""
        return self.verdict.outcome

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of the findings."""
        return tuple(finding.line for finding in self.verdict.findings)

    @property
    def messages(self) -> tuple[str, ...]:
        """The messages of the findings."""
        return tuple(finding.message for finding in self.verdict.findings)


Judge = Callable[[str, str], Judgement]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Return a function of a rule's id and a source; common imports are written above the source."""

    def judged(rule_id: str, source: str) -> Judgement:
        text = IMPORTS + textwrap.dedent(source)
        path = tmp_path / "env.py"
        path.write_text(text, encoding="utf-8")
        reading = without_abstract_bases([read_classes(str(path))])[0]
        assert reading.problem is None, reading.problem
        (env,) = [item for item in reading.classes if item.name == "Env"]
        static = find_rule(rule_id).static
        assert static is not None
        marked = tuple(number for number, line in enumerate(text.splitlines(), 1) if MARK in line)
        return Judgement(verdict=static(env), marked=marked)

    return judged
