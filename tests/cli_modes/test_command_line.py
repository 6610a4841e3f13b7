"""The command line of environments that have nothing to process, or their own config_init."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HEAD = """
from atroposlib.envs.server_handling.server_baseline import APIServerConfig, ServerBaseline
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig

class Env(HermesAgentBaseEnv):
    name = "tiny"
    @classmethod
    def config_init(cls):
        config = HermesAgentEnvConfig(enabled_toolsets=["file"], group_size=1, use_wandb=False, total_steps=2)
        return config, SERVERS
    async def setup(self): pass
    async def get_next_item(self): return ITEM
    def format_prompt(self, item): return item
    async def compute_reward(self, item, result, ctx): return 1.0
    async def evaluate(self, *args, **kwargs): print("evaluated")
    async def collect_trajectories(self, item): return None, []
"""
LIST = '[APIServerConfig(base_url="http://127.0.0.1:9/v1", health_check=False, server_type="openai", api_key="x")]'


def words(home: Path, tokenizer: str, mode: str, servers: str, item: str = '"item"') -> list[str]:
    """Write an environment and return the command that starts it."""
    code = f"SERVERS, ITEM = None, {item}\n{HEAD}\nSERVERS = {servers}\nEnv.cli()\n"
    (home / "env.py").write_text(code)
    flags = [] if mode == "--help" else ["--env.tokenizer_name", tokenizer]
    return [sys.executable, "env.py", mode, *flags]


def test_process_gives_up_when_nothing_comes(home, run_words, hermes_tokenizer):
    """Atropos would retry (None, []) forever."""
    finished = run_words(words(home, hermes_tokenizer, "process", LIST))

    assert finished.returncode == 1
    assert "process gives up: collect_trajectories of Env returned no data for 3 items in a row" in finished.stderr
    assert "run `evaluate` instead" in finished.stderr


def test_process_names_the_server_that_does_not_answer(home, run_words, hermes_tokenizer):
    """What it said, its address and what to do, without a traceback."""
    code = words(home, hermes_tokenizer, "process", LIST)
    source = (home / "env.py").read_text()
    asking = "    async def collect_trajectories(self, item):\n        from environments.loop.log_once import OF_SERVERS, log_once\n        import logging\n        log_once(logging.getLogger(), ConnectionError('refused'), OF_SERVERS)\n        return None, []\n"
    (home / "env.py").write_text(source.replace("    async def collect_trajectories(self, item): return None, []\n", asking))

    finished = run_words(code)

    assert finished.returncode == 1
    assert "  seen      ConnectionError: refused (3 times), at http://127.0.0.1:9/v1\n" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_process_ends_when_there_are_no_items(home, run_words, hermes_tokenizer):
    """None from get_next_item ends the run without an error."""
    finished = run_words(words(home, hermes_tokenizer, "process", LIST, item="None"))

    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("mode", ["serve", "evaluate"])
def test_config_init_without_a_list_ends_with_2(home, run_here, hermes_tokenizer, mode):
    """It must not wait for localhost:9004."""
    finished = run_here(words(home, hermes_tokenizer, mode, "ServerBaseline()"))

    assert finished.returncode == 2
    assert "its second value is ServerBaseline, not a filled list" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_a_tokenizer_that_cannot_be_loaded_is_named_with_its_flag(home, run_here, tmp_path):
    """Transformers' own error fills two screens and names no setting."""
    finished = run_here(words(home, str(tmp_path), "process", LIST))

    assert (finished.returncode, "Traceback" in finished.stderr) == (2, False)
    assert f"The tokenizer could not be loaded: {tmp_path}.\n  seen      " in finished.stderr
    assert "fix       --env.tokenizer_name NAME or DIRECTORY" in finished.stderr


def test_evaluation_that_saves_nothing_warns_early(home, run_words, hermes_tokenizer):
    """The warning is printed before the evaluation."""
    finished = run_words(words(home, hermes_tokenizer, "evaluate", LIST))

    assert (finished.returncode, finished.stdout.splitlines()[-1]) == (0, "evaluated")
    assert "evaluate will save nothing: set --env.data_dir_to_save_evals DIR" in finished.stderr
