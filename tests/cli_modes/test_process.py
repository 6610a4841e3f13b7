"""``process``: writes groups as JSON lines, and an HTML page next to them."""

from __future__ import annotations

import json


def test_groups_are_written_with_all_columns_and_a_page(run, solving_server, home, key):
    """One line per group: tokens, masks, scores and messages of every rollout; the page is next to the file. The key is not shown."""
    finished = run(
        "process",
        *["--env.total_steps", "2", "--env.group_size", "3", "--env.data_path_to_save_groups", "out/groups.jsonl"],
        *["--openai.api_key", key],
        server=solving_server,
    )

    lines = [json.loads(line) for line in (home / "out" / "groups.jsonl").read_text().splitlines()]
    assert finished.returncode == 0, finished.stderr
    assert "'api_key': 'set, not shown'" in finished.stdout
    assert "'group_size': 3" in finished.stdout
    assert "max_token_length" not in finished.stdout  # has its default
    assert [line.split(" (")[0] for line in finished.stdout.splitlines() if line.startswith("wrote")] == [
        "wrote out/groups.jsonl",
        "wrote out/groups.html",
        "wrote out/groups.rollouts.jsonl",
    ]
    assert "\r" not in finished.stderr  # a progress bar is for a terminal
    assert [line["scores"] for line in lines] == [[1.0] * 3] * 2
    assert [[len(tokens) for tokens in line["tokens"]] for line in lines] == [
        [len(mask) for mask in line["masks"]] for line in lines
    ]
    assert all(tokens for line in lines for tokens in line["tokens"])
    assert [message["role"] for message in lines[0]["messages"][0]] == ["system", "user", "assistant", "tool", "assistant"]
    assert "greeting.txt" in (home / "out" / "groups.html").read_text()
    assert sorted(path.name for path in (home / "out").iterdir()) == [
        "groups.html",
        "groups.jsonl",
        "groups.rollouts.files",
        "groups.rollouts.jsonl",
    ]


def test_yaml_and_flags_are_merged(run, solving_server, home):
    """Flags override the YAML file, which overrides config_init; the default file name comes from config_init."""
    (home / "c.yaml").write_text(
        f"env: {{total_steps: 1, group_size: 5}}\nopenai: {{base_url: '{solving_server.base_url}', model_name: mock-model}}\n"
    )

    finished = run("process", "--config", "c.yaml", "--env.group_size", "2")

    assert finished.returncode == 0, finished.stderr
    assert [len(json.loads(line)["scores"]) for line in (home / "data" / "terminal-test.jsonl").read_text().splitlines()] == [2]


def test_usage_errors_end_with_2_and_one_line(run_here, command, key):
    """A misspelt setting or a wrong value: exit code 2, no traceback, no part of the key."""
    misspelt = run_here(command("process", "--openai.api_keyy", key))
    wrong = run_here(command("process", "--env.group_size", "many"))

    assert [finished.returncode for finished in (misspelt, wrong)] == [2, 2]
    assert "There is no setting --openai.api_keyy." in misspelt.stderr
    assert "env.group_size: Input should be a valid integer" in wrong.stderr
    printed = misspelt.stdout + misspelt.stderr + wrong.stdout + wrong.stderr
    assert [text for text in ("Traceback", key, key[:12]) if text in printed] == []


def test_no_credential_of_a_url_or_a_variable_is_printed(run, solving_server, home, key):
    """The address of the model has a password in it, and another variable's secret stands in a setting."""
    address = solving_server.base_url.replace("://", "://bob:hunter2-hunter2@")

    finished = run(
        "process",
        *["--env.total_steps", "1", "--env.group_size", "1", "--env.data_path_to_save_groups", "out/groups.jsonl"],
        *["--openai.base_url", address, "--openai.model_name", "mock-model", "--openai.health_check", "false"],
        *["--env.wandb_name", "run of planted-secret-2"],
        MY_SECRET="planted-secret-2",
    )

    printed = finished.stdout + finished.stderr
    assert "://***@127.0.0.1:" in printed
    assert [word for word in ("hunter2", "planted-secret-2") if word in printed] == []
