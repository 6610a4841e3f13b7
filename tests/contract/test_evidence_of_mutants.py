"""What `hermes-env judge` reads gives the verdicts of the run that kept it, whatever is wrong with the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.contract.judge.engine import ClassContract
from pytest_hermes_env.contract.judge.subject import Subject, subjects_of
from pytest_hermes_env.contract.judge.verdict import Verdict
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.play.evidence_file import PlayedClass, keep_evidence, read_evidence
from pytest_hermes_env.play.player import play_all
from pytest_hermes_env.play.player_process import play_twice

from .mutants import MUTANTS, Mutant

OF_ONE_CLASS = tuple(mutant for mutant in MUTANTS if mutant.env == "terminal_tasks" and not mutant.is_only_read)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play the sample, or all mutants of the class."""
    mutants = OF_ONE_CLASS if metafunc.config.getoption("all_rules") else OF_ONE_CLASS[:1]
    metafunc.parametrize("mutant", mutants, ids=lambda mutant: mutant.id)


def verdicts(subject: Subject, played: PlayedClass) -> dict[str, Verdict]:
    """Return what all rules conclude from what was played."""
    contract = ClassContract(subject, lambda: played.collection)
    return {rule.id: contract.result(rule) for rule in ALL_RULES}


def test_a_kept_file_is_judged_as_the_run_was(mutant: Mutant, tmp_path: Path) -> None:
    """By all rules, with the same findings."""
    (subject,) = subjects_of(mutant.write(tmp_path))
    contract = ClassContract(subject, lambda: pytest.fail("the source alone says what must be played"))
    parts = play_twice(play_all, [contract.job(ALL_RULES, timeout_s=120, server_type=mutant.mode)], str(tmp_path))
    keep_evidence(str(tmp_path / "kept.gz"), parts)

    (kept,) = read_evidence(str(tmp_path / "kept.gz"))
    (played,) = read_evidence(*parts)

    assert verdicts(Subject.from_evidence(kept.target, kept.header["about"]), kept) == verdicts(subject, played)
