"""`hermes-env mutants`: the share of breakages that an environment's own tests detect."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

HERMES_ENV = (sys.executable, "-m", "pytest_hermes_env.cli")
SOUND = Path(__file__).parent.parent / "contract" / "sound" / "ledger_books.py"

TESTS = """
import asyncio
import inspect

import ledger_books


def test_metrics_may_be_none(make_env, monkeypatch):
    logged = []

    async def log(self, metrics=None):
        logged.append(metrics)

    monkeypatch.setattr(ledger_books.HermesAgentBaseEnv, "wandb_log", log)
    env = make_env(ledger_books.LedgerEnv)

    async def run():
        await env.setup()
        await env.wandb_log(None)

    asyncio.run(run())
    assert logged == [{}]


def test_the_source_is_the_one_that_was_imported():
    assert "def wandb_log" in inspect.getsource(ledger_books.LedgerEnv.wandb_log)
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with one environment and tests that only check its wandb_log."""
    shutil.copy(SOUND, pytester.path / "ledger_books.py")
    pytester.makepyfile(test_mine=TESTS)
    return pytester


def test_the_share_that_the_tests_detect(project: pytest.Pytester) -> None:
    """Each breakage is printed when its result is known, and survivors again at the end; no file is changed."""
    before = (project.path / "ledger_books.py").read_bytes()

    result = project.run(*HERMES_ENV, "mutants", "ledger_books.py", "--select", "HE801,HE105", "-j", "2")

    printed = sorted(line for line in result.outlines if re.match(r"  (caught|SURVIVED)", line))
    assert printed == [
        "  SURVIVED  HE105  ledger_books.py:56  config_init returns one server instead of a list",
        "  caught    HE801  ledger_books.py:150  wandb_log does not call super().wandb_log",
    ]
    result.stdout.fnmatch_lines(
        [
            "ledger_books.py:LedgerEnv: 2 breakages, each tried with `pytest*`",
            "1 of 2 breakages caught by your tests: 50 %",
            "Not detected; `hermes-env explain RULE` says why each matters:",
            "*HE105  ledger_books.py:56*",
        ]
    )
    assert result.ret == 1
    assert (project.path / "ledger_books.py").read_bytes() == before


def test_the_contract_reads_the_broken_text(project: pytest.Pytester) -> None:
    """A contract among the tests checks the broken environment, including its source."""
    target = project.path / "ledger_books.py"

    result = project.run(
        *HERMES_ENV, "mutants", str(target), "--select", "HE105", "--", "--hermes-env", str(target), "-k", "HE105 or HE101"
    )

    result.stdout.fnmatch_lines(["1 of 1 breakages caught by your tests: 100 %"])
    assert result.ret == 0


def test_tests_that_judge_nothing_are_refused(project: pytest.Pytester) -> None:
    """Tests that fail on the unbroken environment or never import it, and a run without tests, are usage errors without a score."""
    project.makepyfile(test_fails="def test_no():\n    assert False", test_far="def test_far():\n    pass")
    (project.path / "empty").mkdir()

    command = (*HERMES_ENV, "mutants", "ledger_books.py", "--select", "HE801", "--")
    fails = project.run(*command, "test_fails.py")
    far = project.run(*command, "test_far.py")
    none = project.run(*command, "empty")

    assert [result.ret for result in (fails, far, none)] == [2, 2, 2]
    fails.stderr.fnmatch_lines(
        ["hermes-env: error: the tests fail on the unchanged environment (`pytest test_fails.py` ended with 1)*"]
    )
    far.stderr.fnmatch_lines(["hermes-env: error: the tests never import */ledger_books.py, so they cannot detect*"])
    none.stderr.fnmatch_lines(["hermes-env: error: there are no tests to run: `pytest empty` collects none."])


def test_breakages_can_be_listed(project: pytest.Pytester) -> None:
    """--list runs nothing."""
    result = project.run(*HERMES_ENV, "mutants", "ledger_books.py", "--list", "--select", "HE8")

    assert [line.split()[0] for line in result.outlines] == ["HE801", "HE802", "HE803"][: len(result.outlines)]
    assert result.ret == 0
