"""`hermes-env mutants`: the share of breakages that an environment's own tests detect."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_hermes_env.cli import main

pytestmark = pytest.mark.usefixtures("warm_python")

Mutants = Callable[..., tuple[int, list[str], str]]

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


@pytest.fixture
def mutants(project: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> Mutants:
    """``mutants(*arguments)``: exit code of the command in the project, the lines that it prints, and its errors."""

    def run(*arguments: str) -> tuple[int, list[str], str]:
        code = main(["mutants", *arguments])
        printed = capsys.readouterr()
        return code, printed.out.splitlines(), printed.err

    return run


def test_the_share_that_the_tests_detect(project: pytest.Pytester, mutants: Mutants) -> None:
    """Each breakage is printed when its result is known, and survivors again at the end; no file is changed."""
    before = (project.path / "ledger_books.py").read_bytes()

    code, lines, _ = mutants("ledger_books.py", "--select", "HE801,HE105", "-j", "2")

    assert sorted(line for line in lines if re.match(r"  (caught|SURVIVED)", line)) == [
        "  SURVIVED  HE105  ledger_books.py:56  config_init returns one server instead of a list",
        "  caught    HE801  ledger_books.py:150  wandb_log does not call super().wandb_log",
    ]
    pytest.LineMatcher(lines).fnmatch_lines(
        [
            "ledger_books.py:LedgerEnv: 2 breakages, each tried with `pytest*`",
            "1 of 2 breakages caught by your tests: 50 %",
            "Not detected; `hermes-env explain RULE` says why each matters:",
            "*HE105  ledger_books.py:56*",
        ]
    )
    assert code == 1
    assert (project.path / "ledger_books.py").read_bytes() == before


def test_the_contract_reads_the_broken_text(project: pytest.Pytester, mutants: Mutants) -> None:
    """A contract among the tests checks the broken environment, including its source."""
    target = str(project.path / "ledger_books.py")

    code, lines, _ = mutants(target, "--select", "HE105", "--", "--hermes-env", target, "-k", "HE105 or HE101")

    assert (code, lines[-1]) == (0, "1 of 1 breakages caught by your tests: 100 %")


@pytest.mark.parametrize(
    ("tests", "says"),
    [
        ("test_fails.py", "the tests fail on the unchanged environment (`pytest test_fails.py` ended with 1)"),
        ("test_far.py", "the tests never import */ledger_books.py, so they cannot detect"),
        ("empty", "there are no tests to run: `pytest empty` collects none."),
    ],
)
def test_tests_that_judge_nothing_are_refused(project: pytest.Pytester, mutants: Mutants, tests: str, says: str) -> None:
    """Tests that fail on the unbroken environment or never import it, and a run without tests, are usage errors without a score."""
    project.makepyfile(test_fails="def test_no():\n    assert False", test_far="def test_far():\n    pass")
    (project.path / "empty").mkdir()

    code, _, errors = mutants("ledger_books.py", "--select", "HE801", "--", tests)

    assert code == 2
    pytest.LineMatcher(errors.splitlines()).fnmatch_lines([f"hermes-env: error: {says}*"])


def test_breakages_can_be_listed(mutants: Mutants) -> None:
    """--list runs nothing."""
    code, lines, _ = mutants("ledger_books.py", "--list", "--select", "HE8")

    assert [line.split()[0] for line in lines] == ["HE801", "HE802", "HE803"][: len(lines)]
    assert code == 0
