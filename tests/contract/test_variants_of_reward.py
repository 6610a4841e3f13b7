"""Broken rewards: each variant of a sound environment fails its own law, and no other that fails a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_hermes_env.contract.engine import ClassContract, RuleResult
from pytest_hermes_env.contract.rule import Outcome
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.layer import find_class
from pytest_hermes_env.source.finding import Severity

from .mutants.mutant import CLASSES, SOUND
from .test_broken_variants import good_source

START = '        found = ctx.read_file(item["path"]).get("content", "")\n'
"""The first line of TerminalTestEnv.compute_reward."""

ANSWER = '(result.messages[-1]["content"] or "")'
ASKED = """\
            completion = await self.server.chat_completion(
                messages=[{"role": "user", "content": question}], n=1, max_tokens=100, temperature=0.0
            )
"""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A breakage of TerminalTestEnv's reward, or of ``env``; ``says`` is in the message or in what was seen."""

    rule: str
    name: str
    new: str
    old: str = START
    env: str = ""
    says: str


VARIANTS = (
    Variant(
        rule="HE302",
        name="calls like objects, and the error swallowed",
        new=START
        + "        try:\n"
        + '            used = [call.function.name for one in result.messages for call in one.get("tool_calls") or ()]\n'
        + "        except Exception:\n"
        + "            used = []\n"
        + "        logger.debug(used)\n",
        says="compute_reward reads call.function, but a tool call is a dict",
    ),
    Variant(
        rule="HE303",
        name="a tool that hermes does not have",
        new=START
        + '        names = [call["function"]["name"] for one in result.messages for call in one.get("tool_calls") or ()]\n'
        + '        if "patch_file" in names:\n            return 0.2\n',
        says="compute_reward looks for a tool 'patch_file', which hermes does not have; near: 'patch'",
    ),
    Variant(
        rule="HE402",
        name="a bonus without a clamp",
        new=START + "        if result.turns_used > 1:\n            return 1.5\n",
        says="compute_reward returned 1.5, which is not between 0.0 and 1.0",
    ),
    Variant(
        rule="HE403",
        name="the first word of an empty answer",
        new=START + f"        first = {ANSWER}.split()[0]\n        logger.debug(first)\n",
        says="compute_reward raised IndexError: list index out of range",
    ),
    Variant(
        rule="HE404",
        name="a random part",
        new="        import random\n\n" + START + "        if found is not None:\n            return random.random()\n",
        says="for equal inputs",
    ),
    Variant(
        rule="HE404",
        name="paid by the call",
        new=START + '        return min(1.0, 0.1 * sum(message["role"] == "tool" for message in result.messages))\n',
        says="repeating a tool call that was already made does not raise the reward",
    ),
    Variant(
        rule="HE405",
        name="the same for everybody",
        new="        return 1.0\n",
        says="compute_reward returned 1 for each of",
    ),
    Variant(
        rule="HE406",
        name="only what parsing raises is caught",
        env="graded_letters",
        old='        except Exception as error:\n            log.warning("the judge failed: %s", error)\n',
        new='        except ValueError as error:\n            log.warning("the judge failed: %s", error)\n',
        says="judged asks a judge, and nothing catches what it raises",
    ),
    Variant(
        rule="HE407",
        name="two questions",
        env="graded_letters",
        old=ASKED,
        new=ASKED + ASKED.replace('"content": question', '"content": "Is this a letter? " + letter'),
        says="a judge was asked 2 times per rollout",
    ),
    Variant(
        rule="HE408",
        name="the item tidied in place",
        new='        item["path"] = item["path"].strip()\n' + START,
        says="compute_reward changed the item",
    ),
    Variant(
        rule="HE409",
        name="a path in a command",
        new='        found = ctx.terminal(f"cat {item[\'path\']}").get("output", "")\n',
        says="compute_reward puts item['path'] into a command without quoting it",
    ),
    Variant(
        rule="HE410",
        name="words that are believed",
        new=START + f'        if "tests passed" in {ANSWER}:\n            return 1.0\n',
        says="the claim 'All tests passed.' earned 1 without any work",
    ),
    Variant(
        rule="HE410",
        name="a score in a file",
        new=START + '        if ctx.terminal("cat /tmp/score.txt").get("output", "").strip() == "1":\n            return 1.0\n',
        says="the verifier read: /workspace/greeting.txt (written by nobody), /tmp/score.txt (written by the agent)",
    ),
    Variant(
        rule="HE411",
        name="a clean-up for long rollouts",
        new=START + "        if result.turns_used > 100:\n            ctx.cleanup()\n",
        says="compute_reward cleans up the tool context that it was given: ctx.cleanup",
    ),
)


def judged(path: Path) -> dict[str, RuleResult]:
    """Return every rule's result on the environment in ``path``."""
    (env_class,) = find_class(str(path))
    contract = ClassContract(env_class, sandbox="fake", timeout_s=30)
    return {rule.id: contract.result(rule) for rule in ALL_RULES}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: f"{variant.rule}-{variant.name}".replace(" ", "-"))
def test_a_broken_reward_fails_its_law_and_no_other(variant: Variant, tmp_path: Path) -> None:
    """A breakage is found by its own rule, which says what is wrong, and by no other that is an error."""
    source = (SOUND / f"{variant.env}.py").read_text(encoding="utf-8") if variant.env else good_source()
    assert source.count(variant.old) == 1, f"{variant.old!r} does not stand there once"
    path = tmp_path / f"broken_{VARIANTS.index(variant)}.py"
    path.write_text(source.replace(variant.old, variant.new), encoding="utf-8")

    results = judged(Path(f"{path}:{CLASSES[variant.env]}") if variant.env else path)

    errors = {
        rule: result.findings
        for rule, result in results.items()
        if any((finding.severity or result.rule.severity) is Severity.ERROR for finding in result.findings)
    }
    found = results[variant.rule]
    assert found.outcome is Outcome.FAILED, found
    assert any(variant.says in f"{finding.message} {finding.seen}" for finding in found.findings), found.findings
    assert set(errors) <= {variant.rule}, errors
