"""ATIF: every rollout there and back is equal, what is written keeps the format's laws, and what others wrote is read."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest

from hermes_env_shared.rollout_record import FORMAT, JudgeCall, Record, Sequence, ToolFailure, World, WorldFile
from pytest_hermes_env.cli import main
from pytest_hermes_env.records.atif import NotATIF, document_of, record_of
from pytest_hermes_env.records.exports import write_dataset, write_openai
from pytest_hermes_env.records.reading import read_records

TEXTS = ["", "done", 'naïve 🦀\n\t"quoted"', "<tool_call>{}</tool_call>", None, [{"type": "text", "text": "a"}], [{"type": "image_url", "image_url": {"url": "x"}}], []]  # fmt: skip
ARGUMENTS = ["{}", '{"a": 1}', '{"a":1}', '{"é": "\\u00e9"}', "not json", "[1]", "", '{"a": 1, "a": 2}', '{"n": 1e2}']


def message(chance: random.Random, role: str, ids: list[str]) -> dict[str, Any]:
    """A message that a rollout may hold, also an odd one."""
    made: dict[str, Any] = {"role": role, "content": chance.choice(TEXTS)}
    if role == "assistant":
        for _ in range(chance.randrange(3)):
            ids.append(f"call_{chance.randrange(10)}")
            function = {"name": chance.choice(["terminal", ""]), "arguments": chance.choice(ARGUMENTS)}
            made.setdefault("tool_calls", []).append({"id": ids[-1], "type": "function", "function": function})
        if chance.random() < 0.1:
            made["tool_calls"] = chance.choice([[], None, [{"function": "odd"}]])
        if chance.random() < 0.4:
            made["reasoning_content"] = chance.choice(["why", "", None])
    if role == "tool":
        made |= {"tool_call_id": chance.choice([*ids, "unknown", None]), "name": "terminal"}
    if chance.random() < 0.05:
        del made["content"]
    if chance.random() < 0.1:
        made["more"] = {"field": [1, None]}
    return made


def rollout(seed: int) -> Record:
    """A generated rollout."""
    chance, ids = random.Random(seed), ["call_0"]
    roles = ["system", "user", "assistant", "tool", "tool", "assistant", "developer", "text"]
    length = chance.randrange(20)
    columns = [Sequence(tokens=[chance.randrange(99) for _ in range(length)], masks=[chance.choice([-100, 5]) for _ in range(length)],
                        logprobs=chance.choice([None, [chance.random() for _ in range(length)]]))]  # fmt: skip
    return Record(
        format=FORMAT,
        id=chance.choice(["", f"id-{seed}"]),
        run=chance.choice(["", "run"]),
        source=chance.choice(["process", "evaluate"]),
        group=chance.choice([None, 3]),
        place=chance.randrange(1, 4),
        item=chance.choice([None, {"a": [1, {"b": None}]}, "x"]),
        messages=[message(chance, chance.choice(roles), ids) for _ in range(chance.randrange(12))],
        model=chance.choice(["", "m"]),
        reward=chance.choice([None, 0.0, 1.0, 0.1 + 0.2]),
        tools=chance.choice([None, ["terminal"]]),
        versions=chance.choice([{}, {"hermes-agent": "0.19.0"}]),
        sequences=chance.choice([None, columns, columns * 2]),
        judges=[JudgeCall(method="chat_completion", request={"a": 1}, answer=None)],
        tool_errors=[ToolFailure(turn=1, tool="t", error="e")],
        world=World(directory="/d", files=[WorldFile(path="a", sha256="0" * 64, age_s=chance.random())]),
    )


@pytest.mark.parametrize("part", range(10))
def test_rollouts_come_back_equal(part):
    """A thousand generated rollouts, through JSON."""
    for seed in range(100 * part, 100 * part + 100):
        record = rollout(seed)

        again = record_of(json.loads(json.dumps(document_of(record))))

        assert again == record, seed


def check_laws(document: dict[str, Any]) -> None:
    """Hold a trajectory to what readers of v1.7 refuse. Source: models of harbor 0.25.0."""
    root = {"schema_version", "session_id", "trajectory_id", "agent", "steps", "notes", "final_metrics", "extra"}
    assert document.keys() <= root
    assert {"name", "version"} <= document["agent"].keys() <= {"name", "version", "model_name", "tool_definitions", "extra"}
    assert document["steps"]
    for number, step in enumerate(document["steps"], start=1):
        own = {"reasoning_content", "tool_calls", "metrics"} if step["source"] == "agent" else set()
        assert step.keys() <= {"step_id", "source", "message", "observation", "extra", *own}
        assert (step["step_id"], step["source"] in {"system", "user", "agent"}) == (number, True)
        check_content(step["message"])
        ids = set()
        for call in step.get("tool_calls", ()):
            assert call.keys() <= {"tool_call_id", "function_name", "arguments", "extra"}
            assert (type(call["tool_call_id"]), type(call["function_name"]), type(call["arguments"])) == (str, str, dict)
            ids.add(call["tool_call_id"])
        for result in (step.get("observation") or {"results": []})["results"]:
            assert result.keys() <= {"source_call_id", "content", "extra"}
            assert result.get("source_call_id") in {None, *ids}
            check_content(result["content"])


def check_content(content: Any) -> None:
    assert isinstance(content, str) or all(part.keys() == {"type", "text"} for part in content)


def test_what_is_written_keeps_the_laws_of_the_format():
    """Unknown keys, wrong step ids, fields of agents elsewhere and dangling call ids are refused by its readers."""
    for seed in range(500):
        check_laws(document_of(rollout(seed)))


def test_tokens_and_logprobs_are_given_to_their_steps():
    """The tokens that were sampled in a step are its completion."""
    record = Record(
        format=FORMAT,
        messages=[
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "a"},
            {"role": "tool", "content": "r"},
            {"role": "assistant", "content": "b"},
        ],
        sequences=[Sequence(tokens=[1, 2, 3, 4, 5], masks=[-100, 2, 3, -100, 5], logprobs=[1.0, -0.1, -0.2, 1.0, -0.3])],
    )

    metrics = [step["metrics"] for step in document_of(record)["steps"] if step["source"] == "agent"]

    assert metrics == [
        {"completion_token_ids": [2, 3], "logprobs": [-0.1, -0.2]},
        {"completion_token_ids": [5], "logprobs": [-0.3]},
    ]


FOREIGN = {
    "schema_version": "ATIF-v1.2",
    "session_id": "s",
    "agent": {"name": "hermes", "version": "0.19.0", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "do it"},
        {"step_id": 2, "source": "agent", "message": "", "tool_calls": [{"tool_call_id": "c", "function_name": "terminal", "arguments": {"command": "ls"}}],
         "observation": {"results": [{"source_call_id": "c", "content": "a.txt"}]},
         "metrics": {"prompt_token_ids": [1], "completion_token_ids": [2, 3], "logprobs": [-0.1, -0.2]}},
        {"step_id": 3, "source": "agent", "message": "done", "reasoning_content": "easy"},
    ],
    "final_metrics": {"total_steps": 3},
}  # fmt: skip


def test_a_trial_of_harbor_is_read_with_its_reward(tmp_path):
    """The trajectory is a rollout; the reward lies next to it, and the file of JSON wins."""
    trial = tmp_path / "trial"
    (trial / "agent").mkdir(parents=True)
    (trial / "verifier").mkdir()
    (trial / "agent" / "trajectory.json").write_text(json.dumps(FOREIGN))
    (trial / "verifier" / "reward.txt").write_text("0.25\n")

    by_text = read_records([trial / "agent" / "trajectory.json"])[0].record
    (trial / "verifier" / "reward.json").write_text('{"reward": 0.5, "tests": 3}')
    by_json = read_records([trial / "agent" / "trajectory.json"])[0].record

    assert (by_text.reward, by_json.reward, by_json.metrics) == (0.25, 0.5, {"reward": 0.5, "tests": 3})
    assert (by_json.prompt, by_json.turns, by_json.model) == ("do it", 2, "m")
    assert [one["role"] for one in by_json.messages] == ["user", "assistant", "tool", "assistant"]
    assert by_json.messages[1]["tool_calls"][0]["function"] == {"name": "terminal", "arguments": '{"command": "ls"}'}
    assert (by_json.messages[2]["tool_call_id"], by_json.messages[3]["reasoning_content"]) == ("c", "easy")
    assert by_json.sequences == [Sequence(tokens=[1, 2, 3], masks=[-100, 2, 3], logprobs=[1.0, -0.1, -0.2])]


@pytest.mark.parametrize("value", ["NaN", "", "[]", '{"reward": null}'])
def test_a_reward_that_is_no_number_is_none(tmp_path, value):
    """A missing or broken reward is not zero."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "verifier").mkdir()
    (tmp_path / "agent" / "trajectory.json").write_text(json.dumps(FOREIGN))
    (tmp_path / "verifier" / "reward.json").write_text(value)

    assert read_records([tmp_path / "agent" / "trajectory.json"])[0].record.reward is None


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"schema_version": "ATIF-v2.0", "steps": [{}]}, "its schema_version is 'ATIF-v2.0'; ATIF-v1.0 to v1.8 are read"),
        ({"steps": []}, "a trajectory requires steps, each with the source system, user or agent"),
        ({"steps": [{"source": "robot"}]}, "a trajectory requires steps, each with the source system, user or agent"),
    ],
)
def test_what_is_no_trajectory_is_named(document, why):
    """Nothing is guessed from another version, or from a document of another kind."""
    with pytest.raises(NotATIF) as refused:
        record_of(document)

    assert str(refused.value) == why


def test_the_command_writes_trajectories_that_are_read_back(tmp_path, capsys):
    """A file for each rollout, in a directory next to the records."""
    file = tmp_path / "r.jsonl"
    records = [rollout(seed).model_copy(update={"group": 1, "place": seed + 1, "attempt": 1}) for seed in range(3)]
    file.write_text("".join(f"{record.line()}\n" for record in records))

    code = main(["export", "--atif", str(file)])

    written = sorted((tmp_path / "r.atif").glob("*.json"))
    assert (code, [path.name for path in written]) == (0, ["g1r1.json", "g1r2.json", "g1r3.json"])
    assert [line.record for line in read_records(written)] == records
    assert "wrote" in capsys.readouterr().out


def test_messages_and_a_data_set_are_written(tmp_path):
    """A line each, with reward and group; every row of the data set has the same columns and types, and the card counts."""
    file = tmp_path / "r.jsonl"
    file.write_text("".join(f"{rollout(seed).line()}\n" for seed in range(50)))

    messages = [json.loads(line) for line in write_openai(file).read_text().splitlines()]
    directory = write_dataset(file)

    rows = [json.loads(line) for line in (directory / "rollouts.jsonl").read_text().splitlines()]
    assert [row["messages"] for row in messages] == [rollout(seed).messages for seed in range(50)]
    assert {(*row,) for row in rows} == {(*rows[0],)}
    assert {(*one,) for row in rows for one in row["messages"]} == {
        ("role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name")
    }
    assert {type(one["tool_calls"]) for row in rows for one in row["messages"]} <= {str, type(None)}
    whole = [(rollout(seed).messages, row["messages"]) for seed, row in enumerate(rows)]
    contents = [(one.get("content"), kept["content"]) for given, held in whole for one, kept in zip(given, held, strict=True)]
    assert {kept is None for given, kept in contents if given is None} == {True}
    assert {kept for given, kept in contents if given == TEXTS[6]} == {json.dumps(TEXTS[6])}
    assert {kept for given, kept in contents if given == TEXTS[5]} == {"a"}
    assert "50 agent rollouts" in (directory / "README.md").read_text()
    assert all(row["reward"] is None or math.isfinite(row["reward"]) for row in rows)


def test_numbers_that_json_does_not_have_become_null(tmp_path):
    """In rewards and items: pandas and jq read no NaN."""
    file = tmp_path / "r.jsonl"
    record = rollout(1).model_copy(update={"reward": math.nan, "item": {"bounds": [math.inf, 1.5]}})
    file.write_text(f"{record.line()}\n")

    text = write_openai(file).read_text()

    row = json.loads(text, parse_constant=pytest.fail)
    assert (row["reward"], row["item"]) == (None, {"bounds": [None, 1.5]})
