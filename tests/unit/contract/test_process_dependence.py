"""Which rewards are worth a second process."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.contract.rules.he404_reward_is_repeatable import process_dependent
from pytest_hermes_env.source import read_class

from .conftest import IMPORTS

HEAD = "import random\nfrom datetime import date, datetime\nLUCK = random.random()\nWORDS = {'a', 'b'}\n\nclass Env(HermesAgentBaseEnv):\n"
SETUP = "    async def setup(self):\n        self.luck = random.random()\n        self.items = [1]\n\n"

DEPENDENT = (
    ("return time.time() % 1", "the clock"),
    ("return date.today().day / 31", "the clock"),
    ("return float(datetime.now().hour > 3)", "the clock"),
    ("return hash(item['x']) % 2", "a hash, which PYTHONHASHSEED changes"),
    ("return float(list(set(item['x'].split()))[0] == 'a')", "the order of a set, which PYTHONHASHSEED changes"),
    ("for word in WORDS:\n            return len(word)", "the order of a set, which PYTHONHASHSEED changes"),
    ("return ' '.join({w for w in item['x']}) == 'a b'", "the order of a set, which PYTHONHASHSEED changes"),
    ("return self.luck", "self.luck, which setup draws"),
    ("return LUCK", "LUCK, which is drawn when the module is imported"),
)
INDEPENDENT = (
    "return len(set(item['x'].split())) / 10",
    "return float('a' in WORDS)",
    "return float(bool(self.items))",
    "return sum(time.monotonic() for _ in ()) + float(sorted([2, 1])[0])",
)


def dependences(tmp_path: Path, body: str) -> list[str]:
    """Return what a reward depends on."""
    reward = f"    async def compute_reward(self, item, result, ctx):\n        {body}\n"
    (tmp_path / "env.py").write_text(IMPORTS + HEAD + SETUP + reward, encoding="utf-8")
    source = read_class(str(tmp_path / "env.py"), "Env")
    assert source is not None
    return [what for _, _, what in process_dependent(source)]


@pytest.mark.parametrize(("body", "what"), DEPENDENT)
def test_what_another_process_may_change_is_found(body: str, what: str, tmp_path: Path) -> None:
    """Clocks, hashes, orders and numbers that were drawn earlier."""
    assert what in dependences(tmp_path, body)


@pytest.mark.parametrize("body", INDEPENDENT)
def test_what_is_the_same_everywhere_needs_no_process(body: str, tmp_path: Path) -> None:
    """Sizes, memberships, plain data."""
    assert dependences(tmp_path, body) == []
