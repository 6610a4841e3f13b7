"""Breakages of an environment's source: which apply, what they write, and that the contract's own rules notice them."""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from pytest_hermes_env.cli.mutants import chosen_class
from pytest_hermes_env.contract.mutation.operators import OPERATORS, PLACES, breakages
from pytest_hermes_env.errors import BadTarget
from pytest_hermes_env.source import ClassSource

SOUND = Path(__file__).parents[3] / "contract" / "sound"


def lines_changed(source: ClassSource, rule: str) -> list[tuple[str, str]]:
    """Return the lines that the breakages of one rule take away and bring."""
    changed = []
    for breakage in breakages(source):
        if breakage.rule == rule:
            before, after = breakage.module.text.decode().splitlines(), breakage.text.decode().splitlines()
            gone = "\n".join(line.strip() for line in before if line not in after)
            came = "\n".join(line.strip() for line in after if line not in before)
            changed.append((gone, came))
    return changed


@pytest.fixture(scope="module")
def ledger() -> ClassSource:
    """The tool-verified environment."""
    return chosen_class(f"{SOUND / 'ledger_books.py'}:LedgerEnv")


@pytest.mark.parametrize("name", ["ledger_books", "graded_letters", "many_signals", "capitals_exam"])
def test_every_breakage_is_a_program(name: str) -> None:
    """Each broken file parses, and differs from the whole one in what it means."""
    found = breakages(chosen_class(str(SOUND / f"{name}.py")))

    whole = {breakage.module.file: ast.dump(breakage.module.tree) for breakage in found}
    assert len({(breakage.module.file, breakage.text) for breakage in found}) == len(found) > 14
    assert all(ast.dump(ast.parse(breakage.text)) != whole[breakage.module.file] for breakage in found)
    assert max(Counter((item.rule, item.name) for item in found).values()) <= PLACES


def test_each_operator_says_which_rule_it_breaks() -> None:
    """The docstring of an operator begins with the id that its breakages have."""
    found = {operator: (operator.__doc__ or "")[:5] for operator in OPERATORS}

    assert len(found) == len(OPERATORS)
    assert all(rule.startswith("HE") and rule[2:].isdecimal() for rule in found.values())


def test_what_is_written(ledger: ClassSource) -> None:
    """A breakage changes one place, and nothing around it."""
    expected = {
        "HE105": [("return settings, servers", "return settings, (servers)[0]")],
        "HE202": [
            ("book = self.books[self.turned % len(self.books)]", "book = self.books[self.turned]"),
        ],
        "HE409": [('answer = ctx.terminal(f"cat {shlex.quote(path)}")', 'answer = ctx.terminal(f"cat {str(path)}")')],
        "HE601": [("", "")],
        "HE703": [("temperature=0.0,", "temperature=1.0,")],
        "HE801": [("await super().wandb_log(metrics)", "")],
        "HE802": [("metrics = dict(wandb_metrics or {})", "metrics = dict(wandb_metrics)")],
        "HE803": [("self.recent.clear()", "")],
    }
    expected["HE601"] = [("ctx.cleanup()", "")]

    seen = {rule: lines_changed(ledger, rule) for rule in expected}

    cleaned = {rule: [(gone, came.replace("pass", "")) for gone, came in pairs] for rule, pairs in seen.items()}
    assert cleaned == expected


def test_an_evaluation_through_the_layer_is_broken_too(tmp_path: Path) -> None:
    """agent_rollout and evaluate_items lose their temperature, their turns and the agent."""
    path = tmp_path / "env.py"
    path.write_text(
        textwrap.dedent(
            """
            from environments.hermes_base_env import HermesAgentBaseEnv

            class Env(HermesAgentBaseEnv):
                async def evaluate(self):
                    async with self.agent_rollout(1, temperature=0.0) as rollout: pass
                    await self.evaluate_items(pass_score=0.5)
            """
        ),
        encoding="utf-8",
    )
    block = "async with self.agent_rollout(1, temperature=0.0) as rollout: pass"
    whole = "await self.evaluate_items(pass_score=0.5)"

    found = {rule: lines_changed(chosen_class(str(path)), rule) for rule in ("HE701", "HE703", "HE704")}

    assert found == {
        "HE701": [(whole, "await self.evaluate_log(metrics={'eval/mean_reward': 1.0}, samples=[{'score': 1.0}])")],
        "HE703": [
            (block, block.replace("0.0", "1.0")),
            (whole, "await self.evaluate_items(pass_score=0.5, temperature=1.0)"),
        ],
        "HE704": [
            (block, block.replace("0.0", "0.0, max_turns=1")),
            (whole, "await self.evaluate_items(pass_score=0.5, max_turns=1)"),
        ],
    }


def test_evaluation_that_restores_loses_its_restoration(tmp_path: Path) -> None:
    """Where evaluate puts a buffer back in a finally, that is taken away: adding to the buffer would change nothing."""
    path = tmp_path / "env.py"
    path.write_text(
        textwrap.dedent(
            """
            from environments.hermes_base_env import HermesAgentBaseEnv

            class Env(HermesAgentBaseEnv):
                async def compute_reward(self, item, result, ctx):
                    self.seen.append(1.0)
                    return 1.0

                async def evaluate(self):
                    kept = list(self.seen)
                    try:
                        await self.compute_reward(None, None, None)
                    finally:
                        self.seen = kept
            """
        ),
        encoding="utf-8",
    )

    found = lines_changed(chosen_class(str(path)), "HE702")

    assert found == [("self.seen = kept", "pass")]


def test_characters_of_several_bytes_do_not_shift_an_edit(tmp_path: Path) -> None:
    """The parser counts columns in bytes, and so do edits."""
    path = tmp_path / "env.py"
    path.write_text(
        "from environments.hermes_base_env import HermesAgentBaseEnv\n\n\n"
        "class Env(HermesAgentBaseEnv):\n"
        "    async def get_next_item(self):\n"
        '        return ("grün", "日本")[len("ü日") + self.index % 2]\n',
        encoding="utf-8",
    )

    (breakage,) = breakages(chosen_class(str(path)))

    assert breakage.text.decode().splitlines()[-1] == '        return ("grün", "日本")[len("ü日") + self.index]'


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere.py", "nowhere.py is not a file: give path/to/my_env.py or path/to/my_env.py:MyEnv"),
        ("two.py", "two.py has 2 environments (A, B): name one as two.py:CLASS"),
        ("two.py:C", "two.py has no class C; its environments are: A, B"),
        ("bad.py", "bad.py:1: the file does not parse: invalid syntax"),
    ],
)
def test_a_target_that_cannot_be_broken(target: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that names no single environment is refused with what there is."""
    base = "from environments.hermes_base_env import HermesAgentBaseEnv as Base\n"
    (tmp_path / "two.py").write_text(f"{base}class A(Base): name = 'a'\nclass B(Base): name = 'b'\n", encoding="utf-8")
    (tmp_path / "bad.py").write_text("class A(:\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(BadTarget) as refused:
        chosen_class(target)

    assert str(refused.value) == message
