"""``evaluate``: writes metrics, samples and the settings that produced them."""

from __future__ import annotations

import json

import yaml


def test_evaluation_is_saved_with_settings_that_can_be_used_again(run, solving_server, home, key):
    """metrics.json in lighteval's format, one sample per item, and the settings without the key, as a valid --config."""
    finished = run(
        "evaluate",
        *f"--env.eval_size 2 --env.data_dir_to_save_evals evals --openai.api_key {key}".split(),
        server=solving_server,
    )

    metrics = json.loads((home / "evals" / "metrics.json").read_text())
    samples = [json.loads(line) for line in (home / "evals" / "samples.jsonl").read_text().splitlines()]
    settings = yaml.safe_load((home / "evals" / "evaluate_config.yaml").read_text())
    assert finished.returncode == 0, finished.stderr
    assert "wrote evals/metrics.json (" in finished.stdout
    assert metrics["results"]["all"] == {
        "eval/items": 2,
        "eval/errors": 0,
        "eval/mean_reward": 1.0,
        "eval/pass_rate": 1.0,
        "eval/mean_turns": 2.0,
        "eval/finished_rate": 1.0,
        "eval/mean_tool_errors": 0.0,
    }
    assert metrics["config_general"]["model_name"] == "mock-model"
    assert [(sample["score"], sample["turns"]) for sample in samples] == [(1.0, 2)] * 2
    assert (settings["env"]["eval_size"], settings["openai"][0]["model_name"]) == (2, "mock-model")
    assert "api_key" not in settings["openai"][0]

    again = run("evaluate", *["--config", "evals/evaluate_config.yaml", "--env.data_dir_to_save_evals", "again"])

    assert again.returncode == 0, again.stderr
    assert json.loads((home / "again" / "metrics.json").read_text())["results"] == metrics["results"]
