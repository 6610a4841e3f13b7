"""What differs between two versions: nothing between equal ones, and each change under its own name, the cause first."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hermes_env_shared.rollout_record import FORMAT, Record, Sequence
from pytest_hermes_env.cli import main
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.records.comparing import Difference, compared_lines, differences, side_of
from pytest_hermes_env.records.reading import Line
from pytest_hermes_env.records.record_facts import Rollout, facts_of_records


def rollout(number: int = 1, **fields: Any) -> Record:
    """A rollout whose results name a directory, times and ids of its run."""
    noise = {
        "output": f"/tmp/hermes-{number}abc-x/a.txt 2026-01-0{number} 10:0{number}:00 took 0.{number}3s 176560000{number}\n"
        f"-rw-r--r-- 1 root root 4 Jan  {number} 10:0{number} a.txt",
        "id": f"00000000-0000-4000-8000-00000000000{number}",
    }
    call = {
        "id": f"call_{number}aaaaaaa",
        "type": "function",
        "function": {"name": "terminal", "arguments": '{"command": "ls"}'},
    }
    default: dict[str, Any] = {
        "format": FORMAT,
        "id": f"id-{number}",
        "source": "process",
        "group": 1,
        "place": number,
        "item": "item",
        "end": "finished",
        "reward": 1.0,
        "tools": ["terminal", "write_file"],
        "messages": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": "do it"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "name": "terminal", "content": json.dumps(noise)},
            {"role": "assistant", "content": "done"},
        ],
        "sequences": [Sequence(tokens=[1, 2, 3], masks=[-100, 2, 3])],
    }
    return Record(**{**default, **fields})


def facts(records: list[Record]) -> list[Rollout]:
    """What may differ in rollouts of a file."""
    return facts_of_records([Line(file=Path("a.jsonl"), line=line, record=one) for line, one in enumerate(records, start=1)])


def differing(before: list[Record], after: list[Record], again: list[Record] | None = None) -> list[Difference]:
    """What differs between recordings."""
    return differences(facts(before), facts(after), facts(again) if again is not None else None)[0]


def with_message(place: int, **fields: Any) -> dict[str, Any]:
    messages = rollout().messages
    return {"messages": [*messages[:place], {**messages[place], **fields}, *messages[place + 1 :]]}


CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "a renamed tool": ("tools", {"tools": ["shell", "write_file"]}),
    "a reordered toolset": ("tool order", {"tools": ["write_file", "terminal"]}),
    "another system prompt": ("prompt", with_message(0, content="Be quick.")),
    "another prompt": ("prompt", with_message(1, content="do that")),
    "another template": ("chat template or tokens", {"sequences": [Sequence(tokens=[1, 9, 3], masks=[-100, 9, 3])]}),
    "another call": (
        "tool call",
        with_message(2, tool_calls=[{"id": "c", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]),
    ),
    "another result": ("tool result", with_message(3, content='{"output": "b.txt"}')),
    "another end": ("end", {"end": "turns_used_up"}),
    "another reward": ("reward", {"reward": 0.5}),
    "another metric": ("metric", {"metrics": {"tests": 3}}),
}


def test_rollouts_whose_rewards_change_keep_their_places():
    """Rollouts of one item are paired by what happened in them, whatever they earned."""
    results = [with_message(3, content=f'{{"output": "{place}"}}') for place in (1, 2, 3)]
    before = [rollout(reward=number / 4, **result) for number, result in enumerate(results)]
    after = [rollout(reward=1 - number / 4, **result) for number, result in enumerate(results)]

    assert [one.aspect for one in differing(before, after)] == ["reward"]


def test_equal_runs_do_not_differ():
    """Directories, times, durations and ids name the run, not a difference; nor does the order in which a group ended."""
    before = [rollout(1), rollout(2, reward=0.0)]
    after = [rollout(4, reward=0.0), rollout(3)]

    assert differing(before, after) == []


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_named_first(name):
    """By its aspect, with its place and both texts."""
    aspect, fields = CHANGES[name]

    found = differing([rollout()], [rollout(2, **fields)])

    assert (found[0].aspect, found[0].count >= 1, found[0].before != found[0].after) == (aspect, True, True)
    assert "process, item" in found[0].first


def test_a_missing_rollout_is_told():
    """A rollout of one side alone is a difference."""
    found = differing([rollout(), rollout(2)], [rollout()])

    assert "rollout" in [one.aspect for one in found]


def test_recordings_are_compared(tmp_path, capsys):
    """The exit code and the text of the command; equal files are the same."""
    one, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    one.write_text(f"{rollout().line()}\n")
    other.write_text(f"{rollout(reward=0.0).line()}\n")

    codes = main(["compare", str(one), str(one)]), main(["compare", str(one), str(other)])

    printed = capsys.readouterr().out
    assert codes == (0, 1)
    assert "are the same" in printed
    assert "**reward**, 1 place; first: process, item" in printed
    assert "- 1\n+ 0\n" in printed


def test_what_is_unstable_is_left_out():
    """A fact that differs between A and A is nobody's change, and the text says so."""
    before, again, after = (facts([rollout(reward=reward)]) for reward in (0.25, 0.75, 0.5))

    found, unstable = differences(before, after, again)

    assert (found, unstable) == ([], 1)
    assert next(compared_lines(found, "a", "b", unstable)) == (
        "`a` and `b` are the same (words in 1 places that differ from themselves are left out)"
    )


def test_a_word_that_is_nothing_is_refused(tmp_path):
    """It is no file, no Python, no revision."""
    with pytest.raises(UsageError, match="nonsense is no file of rollouts, environment, Python or git revision"):
        side_of("nonsense", "my_env.py")
    with pytest.raises(UsageError, match=r"name the environment: --env my_env\.py"):
        side_of("nonsense", "")


def test_a_revision_is_played_against_the_present_file(environment, tmp_path, capsys, monkeypatch):
    """The prompt that changed since then is named first."""
    target = environment("return float(ctx.read_file('a.txt').get('content') == 'work')")
    monkeypatch.chdir(tmp_path)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    file = tmp_path / target.rpartition("/")[2]
    file.write_text(file.read_text().replace("write {item", "please write {item"))

    code = main(["compare", "HEAD", target, "--env", target, "--mode", "chat", "--json", "-"])

    found = json.loads(capsys.readouterr().out)["differences"]
    assert (code, found[0]["aspect"]) == (1, "prompt")
    assert "please write" in found[0]["after"]


def test_cases_that_came_since_then_are_played_on_both(environment, tmp_path, capsys):
    """Both versions play the same cases; what was added to their file is no difference."""
    old = environment("return float(ctx.read_file('a.txt').get('content') == 'work')")
    new = tmp_path / "new_env.py"
    file = tmp_path / old.rpartition("/")[2]
    new.write_text(file.read_text())
    new.with_suffix(".contract.yaml").write_text("items:\n  - where: '*'\n    gold: [{say: I did it.}]\n")

    code = main(["compare", old, str(new), "--mode", "chat", "--json", "-"])

    assert json.loads(capsys.readouterr().out)["differences"] == []
    assert code == 0
