"""The terminal benchmarks and AgenticOPDEnv from the command line, on their own data."""

from __future__ import annotations

import json
from typing import Any

import pytest

COMMANDS = {"port 80": "sed -i 's/^port = 80$/port = 8080/' server.ini", "people.csv": "cp people.csv sorted.csv"}
HINT = "[HINT_START 0]The file missing.txt does not exist; do not read it.[HINT_END]"


OWN_DATA = ("--env.dataset_name", "None", "--env.terminal_backend", "local")


@pytest.mark.parametrize(
    "program",
    [["-m", f"environments.benchmarks.{name}"] for name in ("terminalbench_2.terminalbench2_env", "tblite.tblite_env")],
)
def test_a_benchmark_is_evaluated_and_saved(run, home):
    """Two of the three sample tasks, one of which is passed."""
    from pytest_hermes_env.inference import MockServer, call, say

    def answer(conversation: Any) -> Any:
        prompt = conversation.messages[0]["content"]
        return (
            say("done") if conversation.turn else call("terminal", command=next(c for w, c in COMMANDS.items() if w in prompt))
        )

    flags = ("--env.skip_tasks", "sample-error-count", "--env.data_dir_to_save_evals", "evals")
    with MockServer(answer, allow_leftovers=True) as server:
        finished = run("evaluate", *OWN_DATA, *flags, server=server)

    assert finished.returncode == 0, finished.stderr
    metrics = json.loads((home / "evals" / "metrics.json").read_text())["results"]["all"]
    lines = [json.loads(line) for line in (home / "evals" / "results.jsonl").read_text().splitlines() if line]
    assert (metrics["eval/total_tasks"], metrics["eval/passed_tasks"], metrics["eval/pass_rate"]) == (2, 1, 0.5)
    assert {line["sample"]["task_name"]: line["sample"]["score"] for line in lines} == {
        "sample-config-port": 1.0,
        "sample-sorted-people": 0.0,
    }


@pytest.mark.parametrize("program", [["-m", "environments.agentic_opd_env"]])
def test_a_group_with_distillation_is_written(run, home, hermes_tokenizer):
    """``process`` writes the columns beside the tokens."""
    from pytest_hermes_env.inference import MockServer, Script, call, say

    turns = [call("terminal", command="cat missing.txt"), say("done")]
    flags = (
        "--env.total_steps",
        "1",
        "--env.group_size",
        "2",
        "--env.distill_topk",
        "2",
        "--openai.server_type",
        "vllm",
        "--openai.tokenizer_name",
        hermes_tokenizer,
    )
    with MockServer(Script(turns, judge=HINT), template="chatml", allow_leftovers=True) as server:
        finished = run("process", *OWN_DATA, *flags, "--env.data_path_to_save_groups", "groups.jsonl", server=server)

    assert finished.returncode == 0, finished.stderr
    (group,) = [json.loads(line) for line in (home / "groups.jsonl").read_text().splitlines()]
    assert [len(row) for row in group["distill_token_ids"]] == [len(row) for row in group["tokens"]]
    assert {len(place) for row in group["distill_logprobs"] for place in row} == {2}
