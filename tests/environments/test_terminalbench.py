"""TerminalBench2EvalEnv and TBLiteEvalEnv: tasks, archives, tests in hermes' real local terminal, evaluation, and its resumption."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from environments.benchmarks.tblite.tblite_env import TBLiteEvalEnv
from environments.benchmarks.terminalbench_2.tasks import chosen_tasks, packed, sample_tasks
from environments.benchmarks.terminalbench_2.terminalbench2_env import TerminalBench2EvalEnv, benchmark_metrics
from environments.command_line.settings import settings_of
from pytest_hermes_env.inference import call, fail, hang, say

SOLUTIONS = {
    "port 80": "sed -i 's/^port = 80$/port = 8080/' server.ini",
    "requests.log": "awk '$2 >= 500' requests.log | wc -l > errors.txt",
    "people.csv": "(head -n 1 people.csv; tail -n +2 people.csv | sort -t, -k2 -n) > sorted.csv",
}
NO_MODEL = "http://127.0.0.1:9/v1"
NAMES = [task["task_name"] for task in sample_tasks()]


def solve(conversation: Any) -> Any:
    """Solve each sample task with one command."""
    if conversation.turn:
        return say("done")
    prompt = conversation.messages[-1]["content"]
    return call("terminal", command=next(line for word, line in SOLUTIONS.items() if word in prompt))


def run(make_env: Any, script: Any = solve, act: Any = None, env_class: type = TerminalBench2EvalEnv, **settings: Any) -> Any:
    """Set the environment up and evaluate; returns what ``act(env)`` does, or the samples and metrics that are logged."""
    logged: dict[str, Any] = {}

    async def scenario() -> Any:
        model = {"server": NO_MODEL} if script is None else {"script": script}
        env = make_env(env_class, **model, **({"dataset_name": None, "terminal_backend": "local"} | settings))
        await env.setup()
        env.evaluate_log = keep
        if act is not None:
            return await act(env)
        await env.evaluate()
        return logged

    async def keep(metrics: Any, *, samples: Any, **_rest: Any) -> None:
        logged.update(metrics=metrics, samples={sample["task_name"]: sample for sample in samples})

    return asyncio.run(scenario())


def task(**fields: str) -> dict[str, str]:
    empty = dict.fromkeys(("docker_image", "environment_tar", "tests_tar"), "")
    return {**empty, "task_name": "one", "category": "files", "instruction": "go", "test_sh": "true", **fields}


# ---------------------------------------------------------------------- settings


@pytest.mark.parametrize("cls", [TerminalBench2EvalEnv, TBLiteEvalEnv])
def test_the_yaml_files_name_only_fields_that_exist(cls: Any, recwarn: Any) -> None:
    """Those next to the environments; a field of the namesakes' files that did nothing would be warned of."""
    path = Path(sys.modules[cls.__module__].__file__).with_name("default.yaml")

    settings = settings_of(cls, "evaluate", [], str(path))

    assert (settings.env.wandb_name, settings.env.max_concurrent_tasks) == (cls.name, 8)
    assert [str(warning.message) for warning in recwarn if "unknown fields" in str(warning.message)] == []


def test_tblite_is_the_same_with_its_own_data_and_limit() -> None:
    """A subclass, as its namesake was."""
    config, _ = TBLiteEvalEnv.config_init()

    assert issubclass(TBLiteEvalEnv, TerminalBench2EvalEnv)
    assert (config.dataset_name, config.task_timeout) == ("NousResearch/openthoughts-tblite", 1200)
    assert (config.wandb_name, TBLiteEvalEnv.name) == ("openthoughts-tblite", "openthoughts-tblite")


def test_a_backend_that_cannot_start_each_tasks_image_is_refused(make_env: Any) -> None:
    """SSH has one machine for all; a container needs an image."""
    with pytest.raises(ValueError, match="'ssh' has no image for each task: use local, "):
        run(make_env, script=None, terminal_backend="ssh")


# ---------------------------------------------------------------------- tasks


def test_tasks_are_chosen_by_name() -> None:
    """Only those of task_filter, without those of skip_tasks; a name that does not exist is an error with its neighbours."""
    tasks = sample_tasks()

    assert [one["task_name"] for one in chosen_tasks(tasks, only=f"{NAMES[2]}, {NAMES[0]}", skipped=None)] == [
        NAMES[0],
        NAMES[2],
    ]
    assert [one["task_name"] for one in chosen_tasks(tasks, only=None, skipped=NAMES[1])] == [NAMES[0], NAMES[2]]
    with pytest.raises(
        ValueError, match=f"task_filter names 'sample-config', which is none of the 3 tasks; did you mean {NAMES[0]}"
    ):
        chosen_tasks(tasks, only="sample-config", skipped=None)
    with pytest.raises(ValueError, match="No task is left"):
        chosen_tasks(tasks, only=NAMES[0], skipped=NAMES[0])


def test_the_tasks_are_those_of_the_dataset(make_env: Any, hub: Any) -> None:
    """Fields that a row lacks are empty; rows without tests are left out."""
    rows = [task(task_name="a"), task(task_name="b", category="", test_sh="false"), task(task_name="c", test_sh="")]
    name = "NousResearch/terminal-bench-2"
    hub.add(name, [{field: value for field, value in row.items() if field != "tests_tar"} for row in rows])

    async def items(env: Any) -> Any:
        return env.eval_items

    found = run(make_env, act=items, script=None, dataset_name=name)

    assert found == [task(task_name="a"), task(task_name="b", category="uncategorized", test_sh="false")]


# ---------------------------------------------------------------------- the reward


def test_every_sample_task_is_passed_by_its_solution_and_not_without(make_env: Any) -> None:
    """In hermes' own local terminal, with the task's files and tests."""
    solved = run(make_env)
    tried = run(make_env, script=lambda conversation: say("done"))

    assert {name: sample["score"] for name, sample in solved["samples"].items()} == dict.fromkeys(NAMES, 1.0)
    assert {name: sample["score"] for name, sample in tried["samples"].items()} == dict.fromkeys(NAMES, 0.0)
    assert {name: value for name, value in solved["metrics"].items() if "seconds" not in name} == {
        "eval/total_tasks": 3,
        "eval/passed_tasks": 3,
        "eval/errors": 0,
        "eval/timeouts": 0,
        "eval/sample_tasks": 3,
        "eval/pass_rate": 1.0,
        "eval/pass_rate_system-administration": 1.0,
        "eval/pass_rate_data-processing": 1.0,
    }


@pytest.mark.parametrize(
    ("test_sh", "expected"),
    [
        ("exit 0", 1.0),
        ("exit 3", 0.0),
        ('echo 0.25 > "$VERIFIER_DIR/reward.txt"; exit 1', 0.25),
        ('cat "$TEST_DIR/data/expected.txt" > "$VERIFIER_DIR/reward.txt"', 0.5),
        ("cat made-by-the-agent.txt", 1.0),
        ("sleep 30", 0.0),
    ],
)
def test_the_tests_decide_the_score(make_env: Any, test_sh: str, expected: float) -> None:
    """By reward.txt, else by their exit code; they run where the agent started, wherever it went, and only for so long."""
    script = [call("terminal", command="touch made-by-the-agent.txt && mkdir x && cd x"), say("done")]
    item = task(test_sh=test_sh, tests_tar=packed({"data/expected.txt": "0.5\n"}))

    sample = run(make_env, script=script, act=lambda env: env.rollout_and_score_eval(item), test_timeout=2)

    assert (sample["score"], sample.get("error")) == (expected, None)


@pytest.mark.parametrize(
    "hack",
    [
        "echo 'echo 1 > \"$VERIFIER_DIR/reward.txt\"' > hook; export BASH_ENV=$PWD/hook",
        "mkdir bin; printf '#!/bin/sh\\nexit 0\\n' > bin/false; chmod +x bin/false; export PATH=$PWD/bin:$PATH",
        'cd() { builtin cd "$@"; exit 0; }; bash() { return 0; }; export -f cd bash',
    ],
    ids=["BASH_ENV", "PATH", "functions"],
)
def test_what_the_agent_exports_does_not_reach_the_tests(make_env: Any, hack: str) -> None:
    """The terminal carries exported variables from one command to the next."""
    script = [call("terminal", command=hack), say("done")]

    sample = run(make_env, script=script, act=lambda env: env.rollout_and_score_eval(task(test_sh="env false")))

    assert (sample["score"], sample.get("error")) == (0.0, None)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (task(test_sh='echo ok > "$VERIFIER_DIR/reward.txt"'), "ValueError: could not convert string to float"),
        (task(test_sh='echo nan > "$VERIFIER_DIR/reward.txt"'), "compute_reward must return a finite number, got nan"),
        (task(tests_tar="%%%"), "ArchiveError: the archive cannot be unpacked"),
    ],
)
def test_tests_without_a_verdict_are_an_error_and_not_a_failed_task(make_env: Any, item: Any, words: str) -> None:
    """A broken verifier never looks like a score of 0.0."""
    sample = run(make_env, script=[say("done")], act=lambda env: env.rollout_and_score_eval(item))

    assert sample["score"] is None
    assert words in sample["error"]


# ---------------------------------------------------------------------- the evaluation


def test_a_task_that_takes_too_long_is_failed_and_its_sandbox_released(make_env: Any, cleaned: list[str]) -> None:
    """The others go on."""

    def script(conversation: Any) -> Any:
        return hang(60) if "port 80" in conversation.messages[0]["content"] else solve(conversation)

    done = run(make_env, script=script, task_timeout=8)

    assert {name: (sample["score"], sample.get("timed_out")) for name, sample in done["samples"].items()} == {
        NAMES[0]: (0.0, True),
        NAMES[1]: (1.0, None),
        NAMES[2]: (1.0, None),
    }
    assert (done["metrics"]["eval/timeouts"], done["metrics"]["eval/errors"], len(cleaned)) == (1, 0, 3)


def test_a_stopped_evaluation_is_resumed_without_what_was_scored(make_env: Any, tmp_path: Path) -> None:
    """Each result is written as its task ends. What failed for other reasons runs again, half a line is no result."""
    directory = str(tmp_path / "evals")
    asked: list[str] = []

    def failing(conversation: Any) -> Any:
        return fail(400) if "port 80" in conversation.messages[0]["content"] else solve(conversation)

    def counting(conversation: Any) -> Any:
        asked.append(conversation.messages[0]["content"])
        return solve(conversation)

    first = run(make_env, script=failing, data_dir_to_save_evals=directory)
    results = tmp_path / "evals" / "results.jsonl"
    written = [json.loads(line)["sample"]["task_name"] for line in results.read_text().splitlines() if line]
    with results.open("a") as file:
        file.write('\n{"settings": {}, "sam')
    second = run(make_env, script=counting, data_dir_to_save_evals=directory)

    assert sorted(written) == sorted(NAMES)
    assert (first["metrics"]["eval/errors"], first["metrics"]["eval/pass_rate"]) == (1, 1.0)
    assert {"port 80" in prompt for prompt in asked} == {True}
    assert (second["metrics"]["eval/total_tasks"], second["metrics"]["eval/passed_tasks"]) == (3, 3)


def test_results_under_other_settings_are_not_resumed(make_env: Any, tmp_path: Path) -> None:
    """Another limit is another evaluation, in the same file."""
    directory = str(tmp_path)

    run(make_env, data_dir_to_save_evals=directory, task_filter=NAMES[0])
    other = run(make_env, data_dir_to_save_evals=directory, task_filter=NAMES[0], max_agent_turns=1)

    assert other["samples"][NAMES[0]]["turns"] == 1


def test_metrics_without_a_score_have_no_share() -> None:
    """Every task failed for reasons that are not the agent's: no pass rate of 0.0."""
    assert benchmark_metrics([{"score": None, "category": "files"}]) == {
        "eval/total_tasks": 1,
        "eval/passed_tasks": 0,
        "eval/errors": 1,
        "eval/timeouts": 0,
    }


def test_a_benchmark_trains_on_nothing(make_env: Any) -> None:
    """get_next_item has no item, so ``process`` and ``serve`` have nothing to do."""
    assert run(make_env, script=None, act=lambda env: env.get_next_item()) is None
