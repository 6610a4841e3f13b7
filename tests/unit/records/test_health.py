"""Was the run healthy? Each kind of sick run is named by its check and by no other; a healthy one is clean."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_env_shared.rollout_record import FORMAT, JudgeCall, Record, Sequence, ToolFailure, World, WorldFile
from pytest_hermes_env.cli import main
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.records.checks import CHECKS
from pytest_hermes_env.records.health import health_of
from pytest_hermes_env.records.observed import failed, observed_in, score_in
from pytest_hermes_env.records.reading import read_lines
from pytest_hermes_env.records.verdicts import Verdict


def rollout(chance: random.Random, number: int) -> dict[str, Any]:
    """The fields of one rollout of a healthy run: a call that worked, an answer, tokens, a judge."""
    command = json.dumps({"command": f"make {number} {chance.random()}"})
    call = {"id": "c", "type": "function", "function": {"name": "terminal", "arguments": command}}
    answer = {"choices": [{"message": {"content": f"{chance.random():.3f}"}}]}
    return {
        "format": FORMAT,
        "id": str(number),
        "run": "run",
        "source": "evaluate" if number % 8 == 7 else "process",
        "group": number // 8 + 1,
        "place": number % 8 + 1,
        "item": {"number": number // 8 % 6, "question": f"{'held out' if number % 8 == 7 else 'training'} {number // 8 % 6}"},
        "tools": ["terminal"],
        "end": "finished",
        "turns": 2 + chance.randrange(3),
        "reward": float(chance.random() < 0.5),
        "messages": [
            {"role": "user", "content": "do it"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": "c",
                "content": json.dumps({"output": "x", "exit_code": chance.randrange(2), "error": None}),
            },
            {"role": "assistant", "content": "It is there. " + "x" * chance.randrange(50)},
        ],
        "judges": [JudgeCall(method="chat_completion", request={}, answer=answer)],
        "model": "first",
        "versions": {"hermes-agent": "0.19.0"},
        "world": World(files=[WorldFile(path="tests/test_it.py", by="environment"), WorldFile(path="it.py")]),
        "sequences": [Sequence(tokens=[1, 2, 3], masks=[-100, 2, 3], logprobs=[1.0, -0.1, -0.2])],
    }


Change = Callable[[dict[str, Any], random.Random], dict[str, Any]]


def said(row: dict[str, Any], text: str) -> dict[str, Any]:
    return {"messages": [*row["messages"][:-1], {"role": "assistant", "content": text}]}


def called(row: dict[str, Any], result: str, times: int = 1, text: str | None = None) -> dict[str, Any]:
    ask, answer = row["messages"][1], {**row["messages"][2], "content": result}
    last = row["messages"][-1] if text is None else {"role": "assistant", "content": text}
    return {"messages": [row["messages"][0], *[ask, answer] * times, last]}


FAILED = json.dumps({"error": "no such tool"})
REWRITTEN = World(files=[WorldFile(path="tests/test_it.py"), WorldFile(path="it.py")])
SICK: dict[str, Change] = {
    "reward_outliers": lambda row, chance: {"reward": 1000.0} if chance.random() < 0.03 else {},
    "no_prompt": lambda row, _: {"messages": [{"role": "user", "content": "None"}, *row["messages"][1:]]},
    "mixed_groups": lambda row, _: {"item": {**row["item"], "number": row["place"] % 6, "question": f"{row['source']} {row['place']}"}, "prompt": f"question {row['place']}"},
    "one_item": lambda row, _: {"item": {"question": "held out" if row["source"] == "evaluate" else "one"}, "source": "process"},
    "calls_as_text": lambda row, _: said(row, f'<tool_call>{{"name": "terminal", "arguments": {{"command": "ls {row["id"]}"}}}}'),
    "repeated_words": lambda row, chance: said(row, "ok yes " * 60 + row["id"]) if chance.random() < 0.3 else {},
    "reward_by_place": lambda row, _: {"reward": float(row["place"] == 2)},
    "labels_without_logprobs": lambda row, _: {"sequences": [Sequence(tokens=[1, 2, 3], masks=[-100, 2, 3], logprobs=[1.0, 1.0, 1.0])]},
    "trained_on_evaluation": lambda row, _: {"item": {"number": row["item"]["number"], "question": "training 1"}},
    "repeated_records": lambda row, _: {"id": "0", "group": 1, "place": 1, "source": "process"},
    "failed_rollouts": lambda row, chance: {"reward": None, "end": "model_failed"} if chance.random() < 0.3 else {},
    "failures_as_zeros": lambda row, chance: {**called(row, FAILED), "reward": 0.0} if chance.random() < 0.4 else {},
    "always_zero": lambda row, _: {"reward": 0.0},
    "constant_groups": lambda row, _: {"reward": float(row["group"] % 2)},
    "cut_rollouts": lambda row, chance: {"end": "cut_by_length"} if chance.random() < 0.4 else {},
    "turns_used_up": lambda row, chance: {"end": "turns_used_up"} if chance.random() < 0.6 else {},
    "looping_rollouts": lambda row, chance: called(row, "{}", 6) if chance.random() < 0.3 else {},
    "empty_answers": lambda row, chance: said(row, "") if chance.random() < 0.4 else {},
    "failing_tools": lambda row, _: called(row, FAILED),
    "judge_falls_back": lambda row, chance: {"judges": [JudgeCall(method="chat_completion", request={}, answer=None)]} if chance.random() < 0.2 else {},
    "judge_says_one_thing": lambda row, _: {
        "judges": [JudgeCall(method="chat_completion", request={}, answer={"choices": [{"message": {"content": "1.0"}}]})]
    },
    "reward_follows_length": lambda row, chance: said(row, "x" * int(10 + 500 * row["reward"] + chance.randrange(50))),
    "reward_follows_turns": lambda row, _: {"turns": 2 + int(6 * row["reward"])},
    "duplicates": lambda row, _: {"messages": [{"role": "user", "content": "do it"}, {"role": "assistant", "content": "the same, and so long that nobody says it twice by chance"}]},
    "falling_reward": lambda row, chance: {"reward": float(chance.random() < (0.9 if row["group"] <= 15 else 0.2))},
    "items_never_earn": lambda row, _: {"reward": 0.0 if row["item"]["number"] < 3 else row["reward"]},
    "claims_pay": lambda row, _: {**called(row, FAILED, text="All tests pass."), "reward": 1.0} if row["place"] % 4 == 1 else {},
    "tokens_without_labels": lambda row, _: {"sequences": [Sequence(tokens=[1, 2], masks=[-100, -100])]},
    "uneven_tokens": lambda row, _: {"sequences": [Sequence(tokens=[1, 2], masks=[-100, 2], logprobs=[0.0])]},
    "mixed_models": lambda row, _: {"model": "first" if row["group"] < 20 else "second"},
    "shrinking_answers": lambda row, _: said(row, f"{row['id']} " + "word " * max(0, 60 - 2 * row["group"])),
    "rewritten_tests": lambda row, chance: {"world": REWRITTEN} if chance.random() < 0.2 else {},
    "evaluation_gap": lambda row, chance: {"reward": float(chance.random() < (0.1 if row["source"] == "evaluate" else 0.9))},
}  # fmt: skip
ALSO = {
    "always_zero": {"constant_groups", "items_never_earn"},
    "failing_tools": {"failures_as_zeros"},
    "constant_groups": {"items_never_earn"},
    "repeated_records": {"constant_groups"},
    "claims_pay": {"reward_by_place"},
}
"""What such a run is, besides."""


def run_of(file: Path, change: Change = lambda *_: {}, seed: int = 0) -> list[Verdict]:
    chance = random.Random(seed)
    rows = [rollout(chance, number) for number in range(240)]
    file.write_text("".join(f"{Record(**{**row, **change(row, chance)}).line()}\n" for row in rows))
    return health_of([file])


@pytest.mark.parametrize("seed", range(6))
def test_a_healthy_run_is_clean(tmp_path, seed):
    """No check is unhealthy, and every check saw what it judges."""
    found = run_of(tmp_path / "r.jsonl", seed=seed)

    assert [str(one) for one in found if one.status == "unhealthy"] == []
    assert [one.name for one in found if one.status == "unobserved"] == ["claims_pay"]


@pytest.mark.parametrize("name", SICK)
def test_a_sick_run_is_named(tmp_path, name):
    """By its own check, with up to three rollouts to look at."""
    found = run_of(tmp_path / "r.jsonl", SICK[name])

    sick = {one.name for one in found if one.status == "unhealthy"}
    assert name in sick
    assert sick - {name} <= ALSO.get(name, set())
    verdict = next(one for one in found if one.name == name)
    assert 1 <= len(verdict.rollouts) <= 3
    assert all("r.jsonl:" in place for place in verdict.rollouts)


def test_every_check_has_a_sick_run():
    """A check that nothing can trigger is none."""
    assert {check.name for check in CHECKS} - {*SICK} == {"unreadable_lines", "rewards_no_numbers"}


def test_torn_lines_are_named(tmp_path, capsys):
    """The half line of a killed process is shown with its place, and the exit code says so."""
    file = tmp_path / "r.jsonl"
    line = Record(format=FORMAT, id="a", reward=1.0, tool_errors=[ToolFailure(turn=1, tool="t", error="e")]).line()
    file.write_text(f"{line}\n{line[:20]}")

    code = main(["health", str(file)])

    printed = capsys.readouterr().out
    assert (code, "unreadable_lines" in printed, f"{file}:2: this line" in printed) == (1, True, True)


def test_a_limit_can_be_set(tmp_path):
    """A run that is meant to be so is healthy."""
    run_of(tmp_path / "r.jsonl", SICK["constant_groups"])

    (verdict,) = [one for one in health_of([tmp_path / "r.jsonl"], {"constant_groups": 1.0}) if one.name == "constant_groups"]

    assert (verdict.status, verdict.limit) == ("healthy", 1.0)


def test_an_unknown_check_is_refused(tmp_path):
    """A misspelt limit would change nothing."""
    with pytest.raises(
        UsageError, match=r"there is no check constant_group.\n  expected  one that .*\n  nearest   constant_groups$"
    ):
        health_of([tmp_path], {"constant_group": 1.0})


def test_a_reward_that_is_no_number_is_named_and_harms_no_other_check(tmp_path):
    """One of many would be lost in the means, or make them nothing."""
    file = tmp_path / "r.jsonl"
    run_of(file)
    lines = file.read_text().splitlines()
    lines[3] = re.sub(r'"reward":[\d.]+', '"reward":NaN', lines[3])
    file.write_text("\n".join(lines) + "\n")

    verdicts = {one.name: one for one in health_of([file])}

    assert {name for name, one in verdicts.items() if one.status == "unhealthy"} == {"rewards_no_numbers"}
    assert "nan" not in str(verdicts["falling_reward"]).lower()


def test_a_run_falls_in_its_own_time(tmp_path):
    """Whichever file is named first."""
    for name, reward, day in (("new", 0.0, 2), ("old", 1.0, 1)):
        run_of(tmp_path / name, lambda row, chance, reward=reward, day=day: {
            "run": str(day), "source": "process", "time": f"2026-01-0{day}T00:00:00+00:00", "reward": reward if chance.random() < 0.9 else 0.5})  # fmt: skip

    (found,) = [one for one in health_of([tmp_path / "new", tmp_path / "old"]) if one.name == "falling_reward"]

    assert found.status == "unhealthy"


@pytest.mark.parametrize(
    ("results", "is_loop"),
    [
        ([f"{n} failed" for n in range(12, 0, -1)], False),
        (["3 failed in 0.12s", "3 failed in 0.13s"] * 6, True),
        ([f"{10 * n}%" for n in range(10)], False),
    ],
)
def test_a_call_whose_result_changes_is_no_loop(results, is_loop):
    """Tests are run between edits, and what takes long is asked about."""
    ask = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "terminal", "arguments": "{}"}}]}
    messages = [one for text in results for one in (ask, {"role": "tool", "tool_call_id": "c", "content": text})]

    assert observed_in(Record(format=FORMAT, id="a", messages=messages)).is_looping is is_loop


def test_items_that_only_a_number_tells_apart_are_others(tmp_path):
    """Their prompts say so; the same question under another id is the same."""

    def run(prompt: str) -> Verdict:
        rows = [Record(format=FORMAT, id=str(n), source=source, item={"id": n, "level": "easy"}, prompt=prompt.format(n), reward=1.0)
                for n, source in enumerate(["process", "evaluate"])]  # fmt: skip
        (tmp_path / "r.jsonl").write_text("".join(f"{row.line()}\n" for row in rows))
        return next(one for one in health_of([tmp_path / "r.jsonl"]) if one.name == "trained_on_evaluation")

    assert [run(prompt).status for prompt in ("Square {}.", "Square it.")] == ["healthy", "unhealthy"]


def test_a_directory_stands_for_its_rollouts(tmp_path):
    """As export writes them; one without says what was looked for."""
    (tmp_path / "runs").mkdir()
    run_of(tmp_path / "runs" / "a.rollouts.jsonl")
    (tmp_path / "empty").mkdir()

    assert all(one.status != "unhealthy" for one in health_of([tmp_path / "runs"]))
    with pytest.raises(UsageError, match=r"is a directory without rollouts(?s:.*)fix"):
        health_of([tmp_path / "empty"])


@pytest.mark.parametrize(
    ("result", "is_failed"),
    [
        ('{"success": false, "message": "no"}', True),
        ('{"status": "error", "detail": "x"}', True),
        ('{"error": "File not found: a", "similar_files": []}', True),
        ('{"output": "", "exit_code": 124, "error": null}', True),
        ('{"output": "", "exit_code": 1, "error": "grep: no match"}', False),
        ('{"status": "failed", "failed": 3}', False),
        ("Error rates by month: 3, 4", False),
        ("Error executing tool: connection refused", True),
        ('{"output": "1 failed", "exit_code": 1, "error": null}', False),
        ('{"output": "x", "exit_code": 0, "error": "a warning"}', False),
        ('{"output": "Error: none", "exit_code": 0, "error": null}', False),
        ("The error is in line 3.", False),
    ],
)
def test_a_call_that_failed_is_told_from_a_command_that_says_no(result, is_failed):
    """A red test is something about the work."""
    assert failed(result) is is_failed


HONEST: dict[str, Change] = {
    "an explanation": lambda row, _: said(
        {**row, "messages": [row["messages"][0], row["messages"][-1]]}, f"Here is how it works: {row['id']}"
    ),
    "a reward for the form": lambda row, chance: {"reward": chance.choice([0.005, 0.005, 0.005, 0.005, 1.0])},
    "items that were not stored": lambda row, _: {
        "item": None,
        "item_problem": "it is a class",
        "messages": [{"role": "user", "content": "Play."}, *row["messages"][1:]],
    },
    "a prompt with a picture": lambda row, _: {
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}, *row["messages"][1:]]
    },
    "grids": lambda row, _: said(row, f"{row['id']}\n" + "0 1 0 2 " * 40),
    "days from a tool": lambda row, chance: called(
        row, json.dumps({"slot": f"2024-0{chance.randint(1, 9)}-1{chance.randint(0, 9)} 10:00"}), 1
    ),
    "a sure token": lambda row, _: {"sequences": [Sequence(tokens=[1, 2, 3], masks=[-100, 2, 3], logprobs=[1.0, 1e-7, -0.2])]},
}


@pytest.mark.parametrize("name", HONEST)
def test_what_only_looks_sick_is_healthy(tmp_path, name):
    """Each was taken for a sickness once."""
    assert [str(one) for one in run_of(tmp_path / "r.jsonl", HONEST[name]) if one.status == "unhealthy"] == []


def test_a_pipe_is_read_to_its_end(tmp_path):
    """It cannot be opened twice."""
    run_of(tmp_path / "r.jsonl")
    os.mkfifo(pipe := tmp_path / "pipe.jsonl")
    with subprocess.Popen(["sh", "-c", 'cat "$1" > "$2"', "sh", tmp_path / "r.jsonl", pipe]):
        assert sum(line.record is not None for line in read_lines([pipe])) == 240


def test_items_that_earn_seldom_are_told_from_those_that_never_earn(tmp_path):
    """Of eight rollouts that each earn in one of 15, more than half earn nothing."""
    seldom = run_of(
        tmp_path / "r.jsonl",
        lambda row, chance: {"reward": float(chance.random() < 0.07), "item": {"question": str(row["group"])}},
    )

    assert next(one.status for one in seldom if one.name == "items_never_earn") == "healthy"


@pytest.mark.parametrize(
    ("answer", "is_sick"),
    [
        ("I'm sorry, I can't grade this.", True),
        ("Sorry, but no.", True),
        ("I cannot give more than 3 of 10.", False),
        ("good", False),
    ],
)
def test_a_judge_that_refuses_in_words_falls_back(tmp_path, answer, is_sick):
    """Where no grade is in them."""
    call = JudgeCall(method="chat_completion", request={}, answer={"choices": [{"message": {"content": answer}}]})
    found = run_of(tmp_path / "r.jsonl", lambda row, chance: {"judges": [call]} if chance.random() < 0.2 else {})

    assert next(one.status for one in found if one.name == "judge_falls_back") == ("unhealthy" if is_sick else "healthy")


def test_a_failure_that_earned_zero_is_one(tmp_path):
    """Whatever scored it."""
    found = run_of(
        tmp_path / "r.jsonl", lambda row, chance: {"reward": 0.0, "end": "environment_failed"} if chance.random() < 0.2 else {}
    )

    assert next(one.status for one in found if one.name == "failed_rollouts") == "unhealthy"


def test_a_limit_below_zero_is_refused(tmp_path):
    """No share is below zero, and none is above NaN, so that every run would be healthy."""
    for limit in (-1.0, float("nan")):
        with pytest.raises(UsageError, match="the limit of constant_groups is"):
            health_of([tmp_path], {"constant_groups": limit})


def test_a_directory_is_no_output_and_rollouts_are_no_environment(tmp_path, capsys):
    """Both are told before anything is computed."""
    run_of(tmp_path / "r.jsonl")

    assert main(["rescore", "env.py", str(tmp_path / "r.jsonl"), "--output", str(tmp_path)]) == 2
    assert "is a directory.\n  fix  name a file" in capsys.readouterr().err
    assert main(["rescore", str(tmp_path / "r.jsonl"), "env.py"]) == 2
    assert "r.jsonl stands where the environment belongs.\n  expected  path/to/env.py" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_what_is_read_is_not_replaced(tmp_path, capsys, option):
    """A slip such as ``--json *.jsonl`` would cost the rollouts."""
    run_of(tmp_path / "r.jsonl")
    before = (tmp_path / "r.jsonl").read_bytes()

    code = main(["health", option, str(tmp_path / "r.jsonl"), str(tmp_path / "r.jsonl")])

    assert (code, (tmp_path / "r.jsonl").read_bytes() == before) == (2, True)
    assert "is a file that is read: it would be replaced" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("r.jsonl", lambda data: b"\xef\xbb\xbf" + data, ""),
        ("r.jsonl.gz", gzip.compress, ""),
        ("r.jsonl", lambda data: data.replace(b'"process"', b'"\\ud83d"', 1), "this line is not JSON: "),
        ("r.jsonl", lambda data: data.replace(b"rollout/1", b"rollout/2", 1), "pip install --upgrade"),
        ("r.json", lambda data: b"[" + data.replace(b"\n", b",")[:-1] + b"]", "it is a list of JSON"),
    ],
)
def test_files_of_other_forms_are_read_or_told(tmp_path, name, change, problem):
    """A mark of the byte order and gzip are read; of what is not, the line says why."""
    run_of(tmp_path / "plain.jsonl")
    (tmp_path / name).write_bytes(change((tmp_path / "plain.jsonl").read_bytes()))

    lines = [line.problem for line in read_lines([tmp_path / name]) if line.record is None]

    assert [problem in lines[0]] == [True] if problem else lines == []


@pytest.mark.parametrize(
    ("prompt", "is_sick"),
    [
        ("Question: What is asked?", False),
        ("Question: None", True),
        ("Solve this.\nAnswer: nan\nBe brief.", True),
        ("Question: {question}", True),
        ("Question: {{ question }}", True),
        ("Write a template with {name} in it.", False),
        ("Return None: it is fine.", False),
        ("Write f.\n  Returns: None", False),
        ("Mend this file.\ntimeout: null", False),
    ],
)
def test_a_prompt_without_its_part_asks_nothing(tmp_path, prompt, is_sick):
    """A field of the item in braces, or a line whose value is missing."""
    found = run_of(
        tmp_path / "r.jsonl", lambda row, _: {"messages": [{"role": "user", "content": prompt}, *row["messages"][1:]]}
    )

    assert ("no_prompt" in {one.name for one in found if one.status == "unhealthy"}) is is_sick


@pytest.mark.parametrize(
    "text",
    [
        "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>terminal",
        '<|python_tag|>{"name": "terminal", "parameters": {"command": "ls"}}',
        '{"name": "terminal", "parameters": {"command": "ls"}}',
        '<|channel|>commentary to=functions.terminal <|message|>{"command": "ls"}',
        '<invoke name="terminal"><parameter name="command">ls</parameter></invoke>',
        'I look.\nAction: terminal\nAction Input: {"command": "ls"}',
    ],
)
def test_calls_in_other_formats_are_calls_as_text(tmp_path, text):
    """Those that the parsers of this package read, and others that models write."""
    found = run_of(tmp_path / "r.jsonl", lambda row, _: said(row, f"{text} {row['id']}"))

    assert "calls_as_text" in {one.name for one in found if one.status == "unhealthy"}


def test_a_judge_that_gives_one_score_says_one_thing(tmp_path):
    """Whatever its reasons are."""

    def judged(row: dict[str, Any], _: random.Random) -> dict[str, Any]:
        text = json.dumps({"reason": f"reason {row['id']}", "score": 0.7})
        return {
            "judges": [JudgeCall(method="chat_completion", request={}, answer={"choices": [{"message": {"content": text}}]})]
        }

    found = run_of(tmp_path / "r.jsonl", judged)

    assert "judge_says_one_thing" in {one.name for one in found if one.status == "unhealthy"}


def test_logprobs_that_are_all_zero_are_none(tmp_path):
    """No model is certain of every token."""
    columns = Sequence(tokens=[*range(12)], masks=[-100, *range(1, 12)], logprobs=[1.0] + [0.0] * 11)
    found = run_of(tmp_path / "r.jsonl", lambda *_: {"sequences": [columns]})

    assert "labels_without_logprobs" in {one.name for one in found if one.status == "unhealthy"}


def test_a_rollout_that_was_ended_with_its_run_is_no_failure(tmp_path):
    """Its error says so."""
    ended = {"reward": None, "end": "environment_failed", "error": "CancelledError: "}
    found = run_of(tmp_path / "r.jsonl", lambda row, _: ended if row["group"] > 24 else {})

    assert "failed_rollouts" not in {one.name for one in found if one.status == "unhealthy"}


def test_a_full_disk_fails_calls():
    """An exit code of 1 that the machine is the cause of."""
    assert failed(json.dumps({"output": "cp: error writing 'b': No space left on device", "exit_code": 1, "error": None}))
    assert not failed(json.dumps({"output": "1 failed", "exit_code": 1, "error": None}))


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ('{"reason": "x", "score": 0.7}', "0.7"),
        ('{"pass": true, "reason": "a"}', '{"pass": true, "reason": "a"}'),
        ("8/10, well done", "8"),
        ("7 out of 10", "7"),
        ("Score: 3. Step 2 is wrong.", "3"),
        ("Step 2 is wrong.", "Step 2 is wrong."),
    ],
)
def test_the_score_of_a_judges_answer_is_read_where_it_is_named(answer, score):
    """Not the scale, and no other number."""
    assert score_in(answer) == score


def test_items_that_differ_in_what_nobody_asks_are_no_mixed_group(tmp_path):
    """The prompt is the same."""
    found = run_of(tmp_path / "r.jsonl", lambda row, _: {"item": {**row["item"], "drawn": row["id"]}, "prompt": "do it"})

    assert "mixed_groups" not in {one.name for one in found if one.status == "unhealthy"}
