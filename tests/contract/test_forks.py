"""Environments of a fork whose base has another name, and whose base has faults of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import environments
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.layer import find_class, layer_of

from .mutants.mutant import SOUND

LAYER = Path(environments.__path__[0])
WITHOUT_CONTEXT = ("context = contextvars.copy_context()", "context = contextvars.Context()")
WITHOUT_CLEANUP = ("            await to_the_end(asyncio.to_thread(ctx.cleanup))\n", "")


def fork(directory: Path, name: str, *changes: tuple[str, str]) -> str:
    """Write a copy of the layer under other names, and an environment on it; return its target."""
    package = directory / name
    for file in LAYER.rglob("*.py"):
        copy = package / file.relative_to(LAYER)
        if not copy.relative_to(package).parts[0].endswith("_env"):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(renamed(file.read_text(encoding="utf-8"), name, *changes), encoding="utf-8")
    (package / "hermes_base_env.py").rename(package / "acme_base.py")
    env = directory / f"env_of_{name}.py"
    env.write_text(renamed((SOUND / "terminal_tasks.py").read_text(encoding="utf-8"), name), encoding="utf-8")
    return f"{env}:TerminalTasks"


def renamed(text: str, name: str, *changes: tuple[str, str]) -> str:
    """Return the text of a file of the fork."""
    for old, new in changes:
        text = text.replace(old, new)
    text = re.sub(r"\benvironments(?=\.| import)", name, text)
    return text.replace("HermesAgentBaseEnv", "AcmeEnv").replace(f"{name}.hermes_base_env", f"{name}.acme_base")


def judged(target: str, *rules: str) -> dict[str, Verdict]:
    """Return the results of some rules."""
    chosen = [find_rule(rule) for rule in rules]
    contract = contract_of(target, chosen, timeout_s=120)
    return {rule.id: contract.result(rule) for rule in chosen}


def test_a_renamed_layer_is_judged_although_its_tools_lose_context_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class is found, its rollouts are scored, and the calls of its agents are seen."""
    monkeypatch.syspath_prepend(str(tmp_path))
    target = fork(tmp_path, "acme_layer", WITHOUT_CONTEXT)

    results = judged(target, "HE206", "HE511", "HE601", "HE603")

    assert layer_of(find_class(target)[0]).base.__name__ == "AcmeEnv"
    assert {rule: result.outcome for rule, result in results.items()} == dict.fromkeys(results, Outcome.PASSED), results


def test_a_fault_of_the_base_is_at_the_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox that the base opens and never releases is not blamed on the class."""
    monkeypatch.syspath_prepend(str(tmp_path))
    result = judged(fork(tmp_path, "leaky_layer", WITHOUT_CLEANUP), "HE601")["HE601"]

    assert [Path(finding.path).name for finding in result.findings] == ["acme_base.py"], result
