"""Refuses wrong options before a conftest is loaded, which may import atroposlib and hermes for seconds."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from pytest_hermes_env.contract.run.rows import minimum_of
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.live.settings import check_numbers
from pytest_hermes_env.missing_files import no_file
from pytest_hermes_env.options import attack_to_play, requires_confinement, settings_to_play
from pytest_hermes_env.plugin.cassette_hooks import mode_of


class _Given:
    """The options of a run before conftests are loaded, read like those of its configuration."""

    def __init__(self, config: pytest.Config) -> None:
        self._known = config.known_args_namespace
        self.getini = config.getini

    def getoption(self, name: str, default: Any = None) -> Any:
        """Return what the command line and ``addopts`` give."""
        return getattr(self._known, name, default)


def refuse_wrong_options(config: pytest.Config) -> None:
    """Check the options whose values are known without a conftest. Raises: pytest.UsageError."""
    given: Any = _Given(config)
    for check in (
        minimum_of,
        settings_to_play,
        mode_of,
        requires_confinement,
        check_numbers,
        _check_attack,
        _check_rules,
        _check_targets,
    ):
        try:
            check(given)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
    file = given.getoption("hermes_judge")
    if file and not os.path.isfile(file):
        raise pytest.UsageError(f"--hermes-judge: {no_file(file)}")


def _check_attack(given: Any) -> None:
    if attack := attack_to_play(given):
        from pytest_hermes_env.play.attack_plan import AttackPlan  # noqa: PLC0415 - only where something is attacked

        AttackPlan.checked(attack)
        if attack.get("alone") and not given.getoption("hermes_rules"):
            raise UsageError(
                "--hermes-attack alone=true plays gold on one item alone, and the whole contract is judged by more.\n"
                "  expected  the rules of the searches beside it\n"
                "  fix       hermes-env attack TARGET, or add --hermes-rules HE405,HE410,HE412"
            )


def _check_rules(given: Any) -> None:
    if words := given.getoption("hermes_rules"):
        from pytest_hermes_env.contract.rules import rule_words, select_rules  # noqa: PLC0415 - only where rules are named

        known: Any = given
        strays = [
            word
            for word in known.getoption("file_or_dir") or ()
            if re.fullmatch(r"HE\d{1,3}", word) and not os.path.exists(word)
        ]
        if strays:
            both = ",".join([*rule_words(words), *strays])
            raise UsageError(
                f"{strays[0]} is taken for a path: rules are separated by commas.\n  fix       --hermes-rules {both}"
            )
        try:
            select_rules(rule_words(words))
        except UsageError as error:
            raise UsageError(f"--hermes-rules: {error}") from None


def _check_targets(given: Any) -> None:
    """Look for a file of ``--hermes-env`` that can be judged; the modules of a target may need the paths that a conftest adds."""
    unusable = []
    for target in given.getoption("hermes_env"):
        module, colon, _ = target.rpartition(":")
        if colon and not module.endswith(".py") and not os.path.isdir(target):
            return
        from pytest_hermes_env.contract.judge.subject import subjects_of  # noqa: PLC0415 - only where a file is named

        try:
            for subject in subjects_of(target):
                subject.check_cases()
        except UsageError as error:
            unusable.append(f"--hermes-env {target}: {error}")
        else:
            return
    if unusable:
        raise UsageError("\n".join(unusable))
