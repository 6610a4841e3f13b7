"""Functions that all call one another are followed once each, not once per path through them."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome

COUNT = 25
FUNCTIONS = "".join(
    f"def step{number}():\n" + "".join(f"    step{other}()\n" for other in range(COUNT)) + "\n" for number in range(COUNT)
)
METHODS = "".join(
    f"    def part{number}(self):\n" + "".join(f"        self.part{other}()\n" for other in range(COUNT)) + "\n"
    for number in range(COUNT)
)


@pytest.mark.parametrize("rule_id", ["HE109", "HE110", "HE201", "HE205"])
def test_a_dense_graph_of_calls_is_read_to_its_end(judge, rule_id):
    source = (
        f"{FUNCTIONS}\nstep0()\n\nclass Env(HermesAgentBaseEnv):\n    async def setup(self):\n        step0()\n        self.part0()\n"
        f"        self.train, self.held_out = [1], [2]\n\n{METHODS}"
        "    async def get_next_item(self):\n        return self.train[0]\n\n"
        "    async def evaluate(self):\n        for item in self.held_out:\n            self.part0()\n\n"
        "if __name__ == '__main__':\n    step0()\n    Env.cli()\n"
    )

    assert judge(rule_id, source).outcome is Outcome.PASSED
