"""Rollout records: what is written of each rollout, when, and what is left out by name."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from environments.rollout.recorder import _commands
from hermes_env_shared.rollout_record import Record, blob_path, decode_item, encode_item
from pytest_hermes_env.inference import call, say
from pytest_hermes_env.records.reading import read_lines
from tests.environments.plain_env import PlainEnv

WORK = "printf work > a.txt; chmod 700 a.txt; mkdir -p d; ln -s a.txt l; mkfifo pipe"


class Env(PlainEnv):
    """Prepares a file, and is paid for the agent's."""

    async def prepare_sandbox(self, item: Any, ctx: Any) -> None:
        ctx.write_file("given.txt", "given")

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        return float(ctx.read_file("a.txt").get("content", "") == "work")

    async def get_eval_items(self) -> Any:
        return ["one", "two"]

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        await self.evaluate_items()


def built(make_env: Any, tmp_path: Any, script: Any, **settings: Any) -> Any:
    paths = {"data_path_to_save_groups": str(tmp_path / "groups.jsonl"), "data_dir_to_save_evals": str(tmp_path / "evals")}
    return make_env(Env, script=script, enabled_toolsets=["terminal", "file"], **{**paths, "total_steps": 2, **settings})


async def process(env: Any, groups: int) -> None:
    env.process_mode, env.n_groups_to_process, env.group_size_to_process = True, groups, env.config.group_size
    await env.process_manager()


def records(path: Any) -> list[Record]:
    return [line.record for line in read_lines([path]) if line.record is not None]


@pytest.mark.usefixtures("local_sandbox")
def test_a_group_is_recorded_with_its_worlds(make_env, tmp_path):
    """Each rollout has its item, place, end, reward and the files of its sandbox: modes, ages, writers, and what was not kept."""
    env = built(make_env, tmp_path, [call("terminal", command=WORK), say("done")])

    asyncio.run(process(env, 1))
    found = records(tmp_path / "groups.rollouts.jsonl")

    assert [(one.item, one.group, one.place, one.end, one.reward, one.turns) for one in found] == [
        ("item", found[0].group, place, "finished", 1.0, 2) for place in (1, 2)
    ]
    world = found[0].world
    assert world is not None
    assert {(file.path, file.kind, file.by) for file in world.files} == {
        ("a.txt", "file", "agent"),
        ("d", "directory", "agent"),
        ("given.txt", "file", "environment"),
        ("l", "link", "agent"),
    }
    assert [(one.path, one.why) for one in world.unkept] == [("pipe", "it is not a regular file")]
    kept = next(file for file in world.files if file.path == "a.txt")
    assert (kept.mode, kept.age_s >= 0) == (0o700, True)
    assert blob_path(tmp_path / "groups.rollouts.files", kept.sha256).read_text() == "work"
    assert len([path for path in (tmp_path / "groups.rollouts.files").rglob("*") if path.is_file()]) == 2


@pytest.mark.usefixtures("local_sandbox")
def test_finished_groups_are_there_while_the_next_one_runs(make_env, tmp_path):
    """What a process that is killed has finished is in its file, as whole lines."""
    seen: list[int] = []

    class Slow(Env):
        async def get_next_item(self) -> Any:
            file = tmp_path / "groups.rollouts.jsonl"
            seen.append(len(records(file)) if file.exists() else 0)
            return "item"

    env = make_env(
        Slow, script=[say("done")], enabled_toolsets=["file"], data_path_to_save_groups=str(tmp_path / "groups.jsonl")
    )
    asyncio.run(process(env, 3))

    assert seen == [0, 2, 4]


def test_a_torn_line_is_read_around(tmp_path):
    """The half line of a killed process is a problem of its own, and a later process does not write into it."""
    from environments.rollout.recorder import append_lines

    file = tmp_path / "r.jsonl"
    whole = Record(format="hermes-rollout/1", id="a").line()
    file.write_text(f"{whole}\n{whole[:20]}")

    append_lines(file, f"{whole}\n")

    assert [line.record is not None for line in read_lines([file])] == [True, False, True]


@pytest.mark.usefixtures("local_sandbox")
def test_an_evaluation_is_recorded_item_by_item(make_env, tmp_path):
    """Its file is in the directory of evaluations; each item is a group of one."""
    env = built(make_env, tmp_path, [call("terminal", command=WORK), say("done")], data_path_to_save_groups=None)

    asyncio.run(env.evaluate())

    found = records(tmp_path / "evals" / "rollouts.jsonl")
    assert sorted((one.item, one.source, one.place, one.reward) for one in found) == [
        ("one", "evaluate", 1, 1.0),
        ("two", "evaluate", 1, 1.0),
    ]


@pytest.mark.hermes_allow_leftovers
@pytest.mark.usefixtures("local_sandbox")
def test_each_attempt_is_recorded(make_env, tmp_path):
    """A rollout that failed and was run again has two records with one place; the failed one has no reward."""
    failures = [RuntimeError("the verifier broke")]

    class Once(Env):
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            if failures:
                raise failures.pop()
            return 1.0

    env = make_env(
        Once,
        script=[say("done")],
        enabled_toolsets=["file"],
        group_size=1,
        data_path_to_save_groups=str(tmp_path / "groups.jsonl"),
    )
    asyncio.run(process(env, 1))

    found = records(tmp_path / "groups.rollouts.jsonl")
    assert [(one.place, one.attempt, one.end, one.reward) for one in found] == [
        (1, 1, "reward_failed", None),
        (1, 2, "finished", 1.0),
    ]
    assert found[0].error == "RuntimeError: the verifier broke"


@pytest.mark.usefixtures("local_sandbox")
def test_secrets_are_not_recorded(make_env, tmp_path, monkeypatch):
    """A key in a conversation is replaced, and a file that holds one is not kept."""
    secret = "sk-abcdefghijklmnop1234567890"
    monkeypatch.setenv("MY_API_KEY", "correct-horse-battery")
    env = built(
        make_env, tmp_path, [call("terminal", command=f"echo {secret} > key.txt"), say("the key is correct-horse-battery")]
    )

    asyncio.run(process(env, 1))

    text = "".join(path.read_text() for path in tmp_path.rglob("*rollouts*/**/*") if path.is_file())
    text += (tmp_path / "groups.rollouts.jsonl").read_text()
    found = records(tmp_path / "groups.rollouts.jsonl")[0]
    assert (secret in text, "correct-horse" in text, found.redacted > 0) == (False, False, True)
    assert [(one.path, one.why) for one in found.world.unkept] == [("key.txt", "it holds a secret")]


@pytest.mark.usefixtures("local_sandbox")
def test_nothing_is_kept_where_no_file_is_named(make_env, tmp_path):
    """Without a path, or with an empty one, no record and no directory appears."""
    env = built(make_env, tmp_path, [say("done")], data_path_to_save_rollouts="")

    asyncio.run(process(env, 1))

    assert [path for path in os.listdir(tmp_path) if "rollouts" in path] == []


@pytest.mark.parametrize("item", [None, "x", 1, ["a", ("b", 2.5)], {"a": ({"b": [None, True]},)}])
def test_plain_items_come_back(item):
    """Tuples stay tuples on the way through JSON."""
    assert decode_item(json.loads(json.dumps(encode_item(item)))) == item


def test_other_items_are_refused():
    """What JSON would change is not stored."""
    with pytest.raises(TypeError, match="it holds a set, which is not plain data"):
        encode_item({"a": {1}})


@pytest.mark.usefixtures("local_sandbox")
def test_a_judge_is_recorded(make_env, tmp_path):
    """What the reward asks through self.server is kept with its answer."""

    class Judged(Env):
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            answer = await self.server.chat_completion(messages=[{"role": "user", "content": "good?"}], n=1)
            return float(answer.choices[0].message.content)

    env = make_env(
        Judged,
        script=lambda conversation: say("done") if conversation.tools else say("0.75"),
        enabled_toolsets=["file"],
        data_path_to_save_groups=str(tmp_path / "groups.jsonl"),
    )
    asyncio.run(process(env, 1))

    (judge,) = records(tmp_path / "groups.rollouts.jsonl")[0].judges
    assert (judge.method, judge.request["messages"]) == ("chat_completion", [{"role": "user", "content": "good?"}])
    assert judge.answer["choices"][0]["message"]["content"] == "0.75"


@pytest.mark.usefixtures("local_sandbox")
def test_large_files_are_named_not_kept(make_env, tmp_path):
    """A file above the limit of its rollout is not stored, and its path is."""
    env = built(make_env, tmp_path, [call("terminal", command="head -c 100 /dev/zero > big"), say("done")], world_max_bytes=50)

    asyncio.run(process(env, 1))

    world = records(tmp_path / "groups.rollouts.jsonl")[0].world
    assert [one.path for one in world.files] == ["given.txt"]
    assert [(one.path, one.why) for one in world.unkept] == [
        ("big", "the files of this rollout are larger than world_max_bytes")
    ]


SESSION = "mkdir -p sub && cd sub && export MODE='fast \"lane\"' OTHER=1 && echo $HOME"


@pytest.mark.usefixtures("local_sandbox")
def test_the_session_of_the_agent_is_kept(make_env, tmp_path):
    """Where its next command begins, and what its commands exported; nothing that was there before."""
    env = built(make_env, tmp_path, [call("terminal", command=SESSION), say("done")])

    asyncio.run(process(env, 1))
    world = records(tmp_path / "groups.rollouts.jsonl")[0].world

    assert world is not None
    assert world.session_directory == f"{world.directory}/sub"
    assert world.variables == {"MODE": 'fast "lane"', "OTHER": "1"}
    assert world.unkept == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"command": "sleep 30; echo late > late.txt", "background": True}, "a process that the agent had started still ran"),
        ({"command": "export PATH=/opt/own/bin:$PATH"}, "the agent's shell exported another PATH"),
        ({"command": "true"}, ""),
    ],
)
@pytest.mark.usefixtures("local_sandbox")
def test_what_no_record_can_hold_is_named(make_env, tmp_path, given, why):
    """A process goes on; another PATH finds other programs."""
    env = built(make_env, tmp_path, [call("terminal", **given), say("done")])

    asyncio.run(process(env, 1))
    world = records(tmp_path / "groups.rollouts.jsonl")[0].world

    assert world is not None
    assert [one.why for one in world.unkept] == ([why] if why else [])
    assert world.session_directory == ""


@pytest.mark.parametrize(
    "calls", [None, "terminal", [None], [{"id": "c"}], [{"function": None}], [{"function": {"name": "terminal"}}]]
)
def test_messages_of_any_shape_are_recorded(calls):
    """A class's own loop may write what it likes."""
    assert isinstance(_commands([{"role": "assistant", "tool_calls": calls}, "no message"]), str)
