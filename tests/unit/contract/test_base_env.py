"""`hermes-env check --hermes-base-env`: environments on Atropos' BaseEnv alone, judged by the rules that concern it."""

from __future__ import annotations

import pytest

from pytest_hermes_env.cli import main
from pytest_hermes_env.contract.rules import ALL_RULES

ATROPOS_ONLY = """\
import os
import random

from atroposlib.envs.base import APIServerConfig, BaseEnv, BaseEnvConfig


class GsmConfig(BaseEnvConfig):
    strict: bool = False


class GsmEnv(BaseEnv):
    name = "gsm"
    env_config_cls = GsmConfig

    @classmethod
    def config_init(cls):
        servers = [APIServerConfig(model_name="m", base_url="http://localhost:9001/v1", api_key=os.environ.get("KEY"))]
        return GsmConfig(group_size=8, strict=True), servers

    async def setup(self):
        self.rows, self.at = list(range(9)), 0
        random.Random(3).shuffle(self.rows)

    def compute_reward(self, text):
        return float(self.config.strict and bool(text))

    async def get_next_item(self):
        self.at += 1
        return self.rows[self.at % len(self.rows)]

    async def collect_trajectories(self, item):
        reply = await self.server.chat_completion(messages=[{"role": "user", "content": str(item)}], n=8)
        return {"scores": [self.compute_reward(choice.message.content) for choice in reply.choices]}, []

    async def evaluate(self, *args, **kwargs):
        self.held_out = 1.0

    async def wandb_log(self, wandb_metrics=None):
        metrics = dict(wandb_metrics or {})
        metrics["eval/held_out"] = self.held_out
        await super().wandb_log(metrics)


if __name__ == "__main__":
    GsmEnv.cli()
"""


def checked(capsys, folder, *words):
    """Return the exit code and what was printed."""
    code = main(["check", f"{folder}/gsm.py", "--hermes-base-env", *words])
    return code, capsys.readouterr().out.replace(f"{folder}/", "")


def test_an_atropos_environment_is_judged_when_asked_for(capsys, tmp_path):
    """The laws of BaseEnv hold for it, those of the Hermes layer do not: a compute_reward of its own needs not be async."""
    (tmp_path / "gsm.py").write_text(ATROPOS_ONLY, encoding="utf-8")

    code, out = checked(capsys, tmp_path)

    of_base_env = [rule for rule in ALL_RULES if rule.holds_for_base_env]
    read = [rule for rule in of_base_env if rule.static is not None]
    assert (code, out.splitlines()[0], out.splitlines()[-1]) == (
        0,
        f"gsm.py:GsmEnv  {len(ALL_RULES)} rules: {len(read)} passed, {len(ALL_RULES) - len(of_base_env)} not applicable, "
        f"{len(of_base_env) - len(read)} not exercised",
        "1 file, 1 environment: no findings",
    )


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        ("HE102", "async def get_next_item", "def get_next_item"),
        ("HE103", '    name = "gsm"\n', ""),
        ("HE107", 'os.environ.get("KEY")', '"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"'),
        ("HE109", "    GsmEnv.cli()", "    pass"),
        ("HE110", "class GsmConfig", 'os.environ["A"] = "1"\n\n\nclass GsmConfig'),
        ("HE111", "class GsmEnv(BaseEnv):", "class GsmEnv(BaseEnv)"),
        ("HE112", "self.config.strict and ", ""),
        ("HE113", "group_size=8", "groupsize=8"),
        ("HE201", "list(range(9))", '__import__("datasets").load_dataset("gsm8k")'),
        ("HE205", "random.Random(3).shuffle", "random.shuffle"),
        ("HE801", "await super().wandb_log(metrics)", "super().wandb_log(metrics)"),
    ],
)
def test_an_atropos_environment_breaks_the_laws_of_base_env(capsys, tmp_path, rule, right, wrong):
    assert ATROPOS_ONLY.count(right) == 1
    (tmp_path / "gsm.py").write_text(ATROPOS_ONLY.replace(right, wrong), encoding="utf-8")

    code, out = checked(capsys, tmp_path, "--strict")

    assert code == 1
    assert rule in out.partition(" ")[2].split()
