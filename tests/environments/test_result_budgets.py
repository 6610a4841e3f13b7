"""Results that are too long for the conversation are moved into the rollout's sandbox."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tools.budget_config import BudgetConfig

from environments.agent_loop import HermesAgentLoop
from environments.sandbox.isolation import close_sandbox


def run(fake: Any, calls: list[Any], budget: BudgetConfig, task_id: str) -> list[str]:
    """Run one turn of terminal calls in a real sandbox; return the tool messages' texts."""
    server = fake.server(fake.completion(None, *calls), fake.completion("done"))
    loop = HermesAgentLoop(server, [fake.schema("terminal")], {"terminal"}, task_id=task_id, budget_config=budget)
    result = asyncio.run(loop.run([{"role": "user", "content": "go"}]))
    return [message["content"] for message in result.messages if message["role"] == "tool"]


@pytest.fixture
def task_id():
    """A rollout whose sandbox is gone afterwards."""
    yield "result-budgets"
    close_sandbox("result-budgets")


def stored(text: str) -> str:
    """The file that a moved result points to."""
    return Path(text.split("Full output saved to: ")[1].partition("\n")[0]).read_text()


def test_long_result_is_moved_out_whole_and_a_preview_stays(fake, task_id):
    """The conversation keeps a preview and the path; the file holds the whole result."""
    budget = BudgetConfig(default_result_size=1000, preview_size=50)

    (text,) = run(fake, [fake.call("terminal", {"command": "seq 1 3000"})], budget, task_id)

    assert text.startswith("<persisted-output>")
    assert "Preview (first 50 chars)" in text
    assert json.loads(stored(text))["output"].split() == [str(number) for number in range(1, 3001)]


def test_short_result_stays(fake, task_id):
    """What fits is left as it is."""
    (text,) = run(fake, [fake.call("terminal", {"command": "echo hi"})], BudgetConfig(default_result_size=1000), task_id)

    assert json.loads(text)["output"] == "hi"


def test_tool_of_its_own_size_is_measured_by_it(fake, task_id):
    """An override for one tool wins over the default."""
    budget = BudgetConfig(default_result_size=10, tool_overrides={"terminal": 100_000})

    (text,) = run(fake, [fake.call("terminal", {"command": "seq 1 3000"})], budget, task_id)

    assert not text.startswith("<persisted-output>")


def test_turn_budget_moves_the_largest_results_out(fake, task_id):
    """Results that fit one by one, but not together: the largest go first."""
    calls = [
        fake.call("terminal", {"command": f"seq 1 {last}"}, call_id) for last, call_id in ((100, "a"), (2000, "b"), (1500, "c"))
    ]
    budget = BudgetConfig(default_result_size=100_000, turn_budget=12_000, preview_size=50)

    texts = run(fake, calls, budget, task_id)

    assert [text.startswith("<persisted-output>") for text in texts] == [False, True, False]
    assert json.loads(stored(texts[1]))["output"].split()[-1] == "2000"
