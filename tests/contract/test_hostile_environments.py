"""Whatever an environment does to its process ends that process: its rule reports it, and the next class is judged.

Each row puts a few lines into a sound environment: into the module, `setup`, the reward, the evaluation, or what runs at exit.
"""

from __future__ import annotations

import os
import signal
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

import environments.hermes_base_env  # noqa: F401 - loaded before the children are forked, or each would load it within its deadline
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.source.finding import Severity

from .mutants.mutant import terminal_tasks

PLACES = {
    "import": ("from __future__ import annotations\n", ""),
    "setup": ("        held_out = self.config.eval_size\n", "        "),
    "reward": ('        found = ctx.read_file(item["path"]).get("content", "")\n', "        "),
    "evaluate": ("        start_time = time.time()\n", "        "),
}
"""Where the lines go: the text that they stand beside, and their indentation."""

OWNERS = {"import": "HE110", "setup": "HE206", "reward": "HE403", "evaluate": "HE705", "exit": "HE606"}
"""The rule that reports what ends a process there."""

LIMIT_S = 3.0
"""Deadline of a silent child; a busy machine makes it later, never sooner."""


@dataclass(frozen=True, kw_only=True)
class Hostile:
    """``code`` stands at ``place``; what it does shows at ``shows`` and in a finding that has the text ``says``."""

    place: str
    code: str
    says: str
    shows: str = ""

    @property
    def id(self) -> str:
        """The place and the first line of the code."""
        return f"{self.place}: {self.code.strip().splitlines()[-1]}"


HOSTILE = (
    Hostile(place="import", code="import os\nos._exit(3)", says="ended its process with exit code 3"),
    Hostile(place="import", code="import sys\nsys.exit(0)", says="SystemExit: 0"),
    Hostile(place="import", code="sum(range(10**13))", says="did not return"),
    Hostile(place="import", code="def deeper(): deeper()\ndeeper()", says="RecursionError"),
    Hostile(place="import", code="import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", says="ended by SIGKILL"),
    Hostile(place="setup", code="os._exit(0)", says="ended its process with exit code 0"),
    Hostile(place="setup", code="time.sleep(10**6)", says="did not return"),
    Hostile(place="setup", code="asyncio.get_running_loop().stop()", says="ended its event loop"),
    Hostile(place="setup", code="os.kill(os.getpid(), 15)", says="ended by SIGTERM"),
    Hostile(place="setup", code="if not os.fork():\n    time.sleep(10**6)", says="the process created here", shows="exit"),
    Hostile(place="setup", code="self.much = bytearray(1 << 50)", says="MemoryError"),
    Hostile(place="reward", code="os._exit(1)", says="ended its process with exit code 1"),
    Hostile(place="reward", code="import re\nre.match('(a+)+$', 'a' * 60 + 'b')", says="did not return"),
    Hostile(place="reward", code="import ctypes\nctypes.string_at(0)", says="ended by SIGSEGV"),
    Hostile(place="reward", code="asyncio.get_running_loop().stop()", says="ended its event loop"),
    Hostile(place="evaluate", code="os._exit(0)", says="ended its process with exit code 0"),
    Hostile(place="evaluate", code="time.sleep(10**6)", says="did not return"),
    Hostile(place="evaluate", code="os.abort()", says="ended by SIGABRT"),
    Hostile(place="evaluate", code="os.closerange(0, 1000)", says="ended its process with exit code 70"),
    Hostile(place="evaluate", code="import atexit\natexit.register(time.sleep, 10**6)", says="did not end", shows="exit"),
    Hostile(place="evaluate", code="import atexit\natexit.register(os._exit, 0)", says="exit code 0", shows="exit"),
)


def judged(case: Hostile, directory: Path) -> tuple[Rule, Verdict]:
    """Return the owner of the place, and what it says of the environment."""
    old, indent = PLACES[case.place]
    code = textwrap.indent(case.code, indent) + "\n"
    new = old + code if case.place == "import" else code + old
    target = terminal_tasks("", case.place, (old, new)).write(directory)
    rule = find_rule(OWNERS[case.shows or case.place])
    return rule, contract_of(target, [rule], timeout_s=LIMIT_S).result(rule)


def test_the_other_class_of_the_run_is_judged(tmp_path: Path, pytester: pytest.Pytester) -> None:
    """One class ends its process in its set-up; the next one is sound."""
    old, indent = PLACES["setup"]
    mutants = terminal_tasks("", "hostile", (old, f"{indent}os._exit(0)\n{old}")), terminal_tasks("", "sound")
    targets = [f"--hermes-env={mutant.write(tmp_path)}" for mutant in mutants]

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-v", "--hermes-rules", "HE206", *targets)

    result.stdout.fnmatch_lines(["*TerminalTasks*HE206* FAILED*", "*TerminalTasks*HE206* PASSED*"])
    result.stdout.fnmatch_lines(["*ended its process with exit code 0*"])


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: case.id)
def test_what_ends_a_process_is_an_error_of_its_rule(case: Hostile, tmp_path: Path) -> None:
    """Within the deadline, and this process goes on as it was."""
    before = dict(os.environ), os.getcwd(), signal.getsignal(signal.SIGTERM)

    rule, result = judged(case, tmp_path)

    assert result.outcome is Outcome.FAILED, result
    assert any(
        rule.severity_of(finding) is Severity.ERROR and case.says in f"{finding.message} {finding.seen}"
        for finding in result.findings
    ), result.findings
    assert (dict(os.environ), os.getcwd(), signal.getsignal(signal.SIGTERM)) == before
