"""HE205: shuffles are seeded."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.rules.he205_split_is_seeded import dynamic
from pytest_hermes_env.play.scenario import ELSEWHERE, ItemSeen, Scenario
from pytest_hermes_env.source.finding import Finding

from .rule_cases import broken, check, open_, sound


def env(body: str, more: str = "") -> str:
    """Return an environment with this body of setup."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    imports = "import random\nfrom random import shuffle as mix\nimport numpy as np\n\nROWS = [1, 2, 3]\n"
    return f"{imports}{more}\nclass Env(HermesAgentBaseEnv):\n    async def setup(self):\n        rows = list(ROWS)\n{lines}"


def unseeded(what: str) -> str:
    """Return the message about a shuffle."""
    return f"{what} has no fixed seed: the split differs in every run"


CASES = (
    broken("random.shuffle", env("random.shuffle(rows)  # <- here"), unseeded("random.shuffle()")),
    broken("under another name", env("mix(rows)  # <- here"), unseeded("random.shuffle()")),
    broken("random.sample", env("rows = random.sample(ROWS, 3)  # <- here"), unseeded("random.sample()")),
    broken("numpy", env("order = np.random.permutation(3)  # <- here"), unseeded("numpy.random.permutation()")),
    broken(
        "a generator without a seed", env("rng = random.Random()  # <- here\nrng.shuffle(rows)"), unseeded("random.Random()")
    ),
    broken("a dataset", env("self.rows = self.data.shuffle()  # <- here"), unseeded("shuffle()")),
    broken(
        "scikit-learn",
        env("from sklearn.model_selection import train_test_split\na, b = train_test_split(rows)  # <- here"),
        unseeded("sklearn.model_selection.train_test_split()"),
    ),
    broken(
        "in a helper",
        env("rows = mixed(rows)", "def mixed(rows):\n    random.shuffle(rows)  # <- here\n    return rows\n"),
        unseeded("random.shuffle()"),
    ),
    sound("a seed that is the hash of a number", env("random.Random(hash(self.config.seed)).shuffle(rows)")),
    sound("a generator with a seed", env("random.Random(42).shuffle(rows)")),
    sound("a generator behind a name", env("rng = np.random.default_rng(7)\nrng.shuffle(rows)")),
    sound("a seeded module", env("random.seed(42)\nrandom.shuffle(rows)")),
    sound("a dataset with a seed", env("self.rows = self.data.shuffle(seed=42)")),
    sound(
        "scikit-learn with a seed",
        env("from sklearn.model_selection import train_test_split\na, b = train_test_split(rows, random_state=1)"),
    ),
    sound("a generator of the configuration", env("self.rng.shuffle(rows)")),
    sound("nothing", env("self.rows = rows[1:]")),
    open_("no setup", "from company import Base\n\nclass Env(Base, HermesAgentBaseEnv): ...\n"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_split_is_seeded(judge, case):
    check(judge, "HE205", case)


def again(first: dict[str, str], second: dict[str, str], error: str = "", elsewhere: dict[str, str] | None = None):
    """Return what was seen where two setups gave items with these keys and prompts."""

    def items(rows: dict[str, str]) -> tuple[ItemSeen, ...]:
        return tuple(ItemSeen(value=None, key=key, prompt=prompt) for key, prompt in rows.items())

    scenarios = {
        "items": Scenario(name="items", items=items(first)),
        "setup_again": Scenario(name="setup_again", items=items(second), error=error),
        ELSEWHERE: Scenario(name=ELSEWHERE, items=items(elsewhere or {})),
    }
    return SimpleNamespace(
        scenario=scenarios.__getitem__,
        without_items=lambda: None if first else Verdict.not_applicable("none"),
        finding=lambda message, method, **rest: Finding(message=message, path="env.py", line=3, **rest),
    )


THREE = {"a": "A", "b": "B", "c": "C"}


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        (again({"a": "A", "b": "B"}, {"a": "A", "b": "B"}), Outcome.PASSED),
        (again({"a": "A", "b": "B"}, {"b": "B", "a": "A"}), Outcome.FAILED),
        (again({"id 1": "A", "id 2": "B"}, {"id 3": "A", "id 4": "B"}), Outcome.PASSED),
        (again({"a": "Guess", "b": "Guess"}, {"b": "Guess", "a": "Guess"}), Outcome.FAILED),
        (again({"a": "A", "b": "B"}, {"b": "B"}, error="IndexError"), Outcome.FAILED),
        (again({"a": "A"}, {}, error="IndexError"), Outcome.NOT_EXERCISED),
        (again({}, {}), Outcome.NOT_APPLICABLE),
        (again(THREE, THREE, elsewhere={"x": "A", "y": "B"}), Outcome.PASSED),
        (again(THREE, THREE, elsewhere={"b": "B", "a": "A"}), Outcome.FAILED),
        (again({"a": "A", "b": "A"}, {"a": "A", "b": "A"}, elsewhere={"b": "A", "a": "A"}), Outcome.PASSED),
    ],
    ids=[
        "same",
        "shuffled",
        "fresh ids",
        "one prompt for all",
        "ended early",
        "broken",
        "none",
        "same there",
        "other order there",
        "not told apart",
    ],
)
def test_two_setups_give_the_same_items(seen, outcome):
    """By their prompts where these tell items apart, else by the items themselves; where there are none, nothing has passed."""
    assert dynamic(seen).outcome is outcome
