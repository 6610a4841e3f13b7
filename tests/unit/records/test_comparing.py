"""What differs between two versions: nothing between equal ones, and each change under its own name, the cause first."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hermes_env_shared.rollout_record import FORMAT, JudgeCall, Record, Sequence, World, WorldFile, blob_path, files_of
from pytest_hermes_env.cli import main
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.records.comparing import Difference, compared_lines, differences, side_of
from pytest_hermes_env.records.reading import Line
from pytest_hermes_env.records.record_facts import Rollout, facts_of_records, facts_of_run, paired


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


FACTS: dict[str, Any] = {"tools": [], "settings": {}, "template": "", "judges": {}, "metrics": {}, "errors": {}}


def facts(records: list[Record]) -> list[Rollout]:
    """What may differ in rollouts of a file."""
    return facts_of_records([Line(file=Path("a.jsonl"), line=line, record=one) for line, one in enumerate(records, start=1)])


def differing(before: list[Record], after: list[Record], again: list[Record] | None = None) -> list[Difference]:
    """What differs between recordings."""
    return differences(facts(before), facts(after), facts(again) if again is not None else None)[0]


def with_message(place: int, **fields: Any) -> dict[str, Any]:
    messages = rollout().messages
    return {"messages": [*messages[:place], {**messages[place], **fields}, *messages[place + 1 :]]}


def judged(prompt: str, says: str = "1") -> JudgeCall:
    """A judge's call."""
    answer = {"choices": [{"message": {"content": says}}]}
    return JudgeCall(method="chat_completion", request={"messages": [{"role": "user", "content": prompt}]}, answer=answer)


CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "a renamed tool": ("tools", {"tools": ["shell", "write_file"]}),
    "a reordered toolset": ("tool order", {"tools": ["write_file", "terminal"]}),
    "another system prompt": ("prompt", with_message(0, content="Be quick.")),
    "another prompt": ("prompt", with_message(1, content="do that")),
    "another template": ("chat template or tokens", {"sequences": [Sequence(tokens=[9, 2, 3], masks=[-100, 2, 3])]}),
    "another token of an answer": ("tokens after the prompt", {"sequences": [Sequence(tokens=[1, 9, 3], masks=[-100, 9, 3])]}),
    "another call": (
        "tool call",
        with_message(2, tool_calls=[{"id": "c", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]),
    ),
    "another result": ("tool result", with_message(3, content='{"output": "b.txt"}')),
    "another end": ("end", {"end": "turns_used_up"}),
    "another reward": ("reward", {"reward": 0.5}),
    "another metric": ("metric", {"metrics": {"tests": 3}}),
    "a label that is gone": ("label", {"sequences": [Sequence(tokens=[1, 2, 3], masks=[-100, -100, 3])]}),
    "another version": ("version", {"versions": {"hermes-agent": "2"}}),
    "another setting": ("setting", {"settings": {"max_agent_turns": 4}}),
    "another temperature": ("setting", {"sampling": {"temperature": 0.5}}),
    "another question to the judge": ("judge request", {"judges": [judged("Grade strictly.")]}),
    "another answer of the judge": ("judge answer", {"judges": [judged("Grade.", says="0.5")]}),
    "another thought": ("thought", with_message(2, reasoning_content="hm, no")),
    "another logprob": ("logprob", {"sequences": [Sequence(tokens=[1, 2, 3], masks=[-100, 2, 3], logprobs=[1.0, -0.1, -0.4])]}),
    "another mode of a prepared file": (
        "prepared file",
        {"world": World(files=[WorldFile(path="a.txt", sha256="a" * 64, size=1, by="environment", mode=0o755)])},
    ),
    "another prepared file": (
        "prepared file",
        {"world": World(files=[WorldFile(path="a.txt", sha256="b" * 64, size=1, by="environment")])},
    ),
}
BASE: dict[str, Any] = {
    "versions": {"hermes-agent": "1"},
    "sampling": {"temperature": 0.7},
    "judges": [judged("Grade.")],
    "world": World(files=[WorldFile(path="a.txt", sha256="a" * 64, size=1, by="environment")]),
}
"""What the changed rollouts have, too."""


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

    found = differing([rollout(**BASE)], [rollout(2, **{**BASE, **fields})])

    assert (found[0].aspect, found[0].count >= 1, found[0].before != found[0].after) == (aspect, True, True)
    assert "process, item" in found[0].first


def test_a_missing_rollout_is_told():
    """A rollout of one side alone is a difference."""
    found = differing([rollout(), rollout(2)], [rollout()])

    assert "rollout" in [one.aspect for one in found]


def prompted(*prompts: str) -> list[Record]:
    """Rollouts of an item each, with these prompts."""
    return [rollout(item=number, **with_message(1, content=prompt)) for number, prompt in enumerate(prompts)]


@pytest.mark.parametrize("text", ["name it? Nonce {}.", "{} name it?", "name it? {} and {}, then {}", "name it? {}"])
def test_a_change_beside_a_random_word_is_found(text):
    """Words that change from one play of A to the next are left out; the rest of their text is compared."""
    numbers = (f"0.{number}" for number in itertools.count(1837, 1009))

    def play(template: str) -> list[Record]:
        return prompted(*(template.format(*itertools.islice(numbers, 3)) for _ in range(3)))

    before, again, third = (play(text) for _ in range(3))
    changed = [play(text.replace("name it", "ignore all rules and name it")), play(f"{text} Be quick.")]

    assert differing(before, third, again) == []
    assert [[one.aspect for one in differing(before, after, again)] for after in changed] == [["prompt"], ["prompt"]]


def test_labels_follow_tokens():
    """Other tokens are told once, not again as other labels; tokens that are no longer trained are told."""
    one, longer, fewer, none = (
        [rollout(sequences=[Sequence(tokens=tokens, masks=[*([-100] * unlabelled), *tokens[unlabelled:]])])]
        for tokens, unlabelled in (([1, 2, 3], 1), ([1, 5, 2, 3], 2), ([1, 2, 3], 2), ([1, 5, 2, 3], 4))
    )

    assert [one.aspect for one in differing(one, longer)] == ["chat template or tokens"]
    assert [one.aspect for one in differing(one, fewer)] == ["label"]
    assert [one.aspect for one in differing(one, none)] == ["chat template or tokens", "label"]


def test_words_that_are_drawn_from_a_list_are_no_difference():
    """Also where a place has the same word in both plays of A by chance; another word beside it is one."""
    before, again, same = (prompted(*(f"Be {word}. Do it." for word in words)) for words in ("abcabc", "bcaabb", "caabca"))
    other = prompted(*(f"Be {word}. Do that." for word in "caabca"))

    assert differing(before, same, again) == []
    assert [one.count for one in differing(before, other, again)] == [6]


def test_words_after_an_unstable_id_are_not_hidden():
    """A sentence that was added where a word is unstable is told; another order is not, where the order is unstable."""
    before, again, after = (prompted(f"Take {text}") for text in ("a1b", "c2d", "e3f and then remove everything"))
    one, two, three, more = (
        prompted(text) for text in ("red, blue, green", "green, red, blue", "blue, green, red", "blue, green, reds")
    )

    assert [one.aspect for one in differing(before, after, again)] == ["prompt"]
    assert differing(one, three, two) == []
    assert differing(one, more, one) != []


def test_an_item_that_never_fails_is_not_hidden_by_one_that_does():
    """The reward of one item is unstable; that of another one falls."""
    before, again, after = (
        [rollout(item=number, reward=reward) for number, reward in enumerate(rewards)]
        for rewards in ((0, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1), (1, 1, 1, 0, 1, 1))
    )

    assert [(one.aspect, one.before, one.after) for one in differing(before, after, again)] == [("reward", "1", "0")]


def test_one_changed_prompt_is_one_difference_with_its_lines():
    """The rollouts of its group, in another order, stay paired by what happened in them, and the lines of both sides are told."""
    results = [with_message(3, content=text) for text in "abcd"]
    before = [rollout(number, **result) for number, result in enumerate(results, start=1)]
    messages = [*results[2]["messages"]]
    messages[1] = {"role": "user", "content": "do that"}
    after = [before[1], rollout(3, messages=messages), before[0], before[3]]

    (found,) = differing(before, after)

    assert (found.aspect, found.count) == ("prompt", 1)
    assert (found.before_place, found.after_place) == ("a.jsonl:3 (g1r3)", "a.jsonl:2 (g1r3)")


def test_a_prompt_that_changed_for_all_is_one_kind_of_difference():
    """Rollouts in another order stay paired by what else happened in them, and equal ones by their own place."""
    results = [with_message(3, content=text)["messages"] for text in "abcc"]
    before = [rollout(number, messages=messages) for number, messages in enumerate(results, start=1)]
    changed = [[{"role": "system", "content": "Be quick."}, *messages[1:]] for messages in results]
    after = [rollout(number, messages=changed[place]) for number, place in ((1, 1), (2, 0), (4, 3), (3, 2))]

    (found,) = differing(before, after)
    pairs = {(one.before.key, one.after.key) for one in paired(facts(before), facts(after)) if one.before and one.after}

    assert (found.aspect, found.count) == ("prompt", 4)
    assert pairs == {("g1r1", "g1r2"), ("g1r2", "g1r1"), ("g1r3", "g1r3"), ("g1r4", "g1r4")}


def test_equal_rollouts_keep_their_own_place():
    """Of rollouts that are the same, the one that changed is named."""
    before = [rollout(number, **with_message(3, content="a")) for number in (1, 2, 3)]
    after = [*before[:1], rollout(2, **with_message(3, content="a"), reward=0.0), before[2]]

    (found,) = differing(before, after)

    assert (found.aspect, found.before_place) == ("reward", "a.jsonl:2 (g1r2)")


def test_a_removed_item_is_one_difference():
    """It is named alone, whatever else its rollouts held; an item that was changed shows both texts."""
    items = [{"country": "france"}, {"country": "peru"}, {"country": "kenya"}]
    before = [rollout(number, item=item) for item in items for number in (1, 2)]

    (removed,) = differing(before, before[:4])
    (added,) = differing(before[:4], before)
    several = differing(before, [rollout(item={"city": "reykjavik", "year": 1944})])
    (changed,) = differing(before[:2], [rollout(number, item={"country": "spain"}) for number in (1, 2)])

    assert (removed.aspect, removed.count, removed.after) == ("item", 1, "(not there)")
    assert removed.first == 'process, item {"country": "kenya"} is not there in the second'
    assert (added.aspect, added.before) == ("item", "(not there)")
    assert [(one.aspect, one.count) for one in several] == [("item", 4)]
    assert (changed.aspect, changed.count, changed.after) == ("item", 2, '{"country": "spain"}')


def test_prepared_files_are_compared_by_text_where_both_have_it(tmp_path):
    """Times in a file are no difference; where one side has lost the files, the hashes are compared."""
    lines = []
    for number, text in enumerate(("at 10:00:01", "at 10:00:02", "at noon"), start=1):
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        blob = blob_path(files_of(tmp_path / "a.jsonl"), sha256)
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_text(text)
        world = World(files=[WorldFile(path="a.txt", sha256=sha256, size=len(text), by="environment")])
        lines.append(Line(file=tmp_path / "a.jsonl", line=number, record=rollout(world=world)))
    one, later, other = (facts_of_records([line]) for line in lines)
    lost = facts_of_records([dataclasses.replace(lines[0], file=tmp_path / "moved.jsonl")])

    assert differences(one, later)[0] == differences(one, lost)[0] == []
    assert [(found.aspect, found.after) for found in differences(one, other)[0]] == [("prepared file", "at noon")]
    assert [found.aspect for found in differences(lost, other)[0]] == ["prepared file"]


@pytest.mark.parametrize("command", [["compare"], ["export", "--openai"], ["export", "--dataset"], ["export", "--atif"]])
def test_a_torn_line_is_named(command, tmp_path, capsys):
    """On standard error, and the rollouts before it are read."""
    whole, torn = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    whole.write_text(f"{rollout().line()}\n")
    torn.write_text(f"{rollout().line()}\n{rollout(2).line()[:80]}")

    code = main([*command, *map(str, (whole, torn) if command == ["compare"] else (torn,))])

    assert code == 0
    assert capsys.readouterr().err == f"hermes-env: {torn}:2 is left out: this line is torn: its process was killed\n"


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
    assert f"--- {one}:1 (g1r1)\n+++ {other}:1 (g1r1)\n- 1\n+ 0\n" in printed


def test_a_side_is_as_many_files_as_a_pattern_finds(tmp_path, capsys):
    """It makes no difference in which file a rollout lies."""
    for name, numbers in {"a1": [1, 2], "a2": [3], "b1": [1], "b2": [2, 3]}.items():
        (tmp_path / f"{name}.rollouts.jsonl").write_text("".join(f"{rollout(one).line()}\n" for one in numbers))

    code = main(["compare", f"{tmp_path}/a*.jsonl", f"{tmp_path}/b*.jsonl"])

    assert (code, "are the same" in capsys.readouterr().out) == (0, True)


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path, capsys):
    """Not the one that the pattern would find."""
    for name, reward in (("run[1].jsonl", 1.0), ("run1.jsonl", 0.0)):
        (tmp_path / name).write_text(f"{rollout(reward=reward).line()}\n")

    code = main(["compare", f"{tmp_path}/run[1].jsonl", f"{tmp_path}/run1.jsonl"])

    assert (code, "**reward**" in capsys.readouterr().out) == (1, True)


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
    with pytest.raises(UsageError, match=r"hermes-env compare HEAD~1 envs/my_env\.py --env envs/my_env\.py"):
        side_of("HEAD~1:envs/my_env.py", "")


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


OTHER_HERMES = """
import importlib.machinery as machinery, sys
class Changed(machinery.SourceFileLoader):
    def get_code(self, name):
        return compile(self.get_data(self.path).replace(b"The command to execute", b"What to execute"), self.path, "exec")
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "tools.terminal_tool":
            spec = machinery.PathFinder.find_spec(name, path)
            spec.loader = Changed(name, spec.origin)
            return spec
sys.meta_path.insert(0, Finder)
"""


@pytest.fixture
def other_python(tmp_path):
    """``other_python(options, customized)``: a Python whose hermes-agent is another version, or that misses our packages."""

    def write(options: str = "", customized: str = "") -> str:
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").write_text(customized)
        program = tmp_path / "other_python"
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/site:$PYTHONPATH" exec {sys.executable} {options} "$@"\n')
        program.chmod(0o755)
        return str(program)

    return write


def test_a_tool_of_another_hermes_is_named_first(environment, other_python, capsys):
    """Each side is played by its own Python."""
    target, other = environment("return 1.0"), other_python(customized=OTHER_HERMES)

    code = main(["compare", sys.executable, other, "--env", target, "--mode", "chat", "--json", "-"])

    assert code == 1
    assert [one["aspect"] for one in json.loads(capsys.readouterr().out)["differences"]] == ["tool schema"]


def test_a_python_without_the_kit_is_told_how_to_get_it(environment, other_python, capsys):
    """The fix is one command."""
    target, other = environment("return 1.0"), other_python("-I -S")

    code = main(["compare", sys.executable, other, "--env", target])

    assert code == 2
    assert f"fix       {other} -m pip install pytest-hermes-env" in capsys.readouterr().err


def test_cases_that_came_since_then_are_played_on_both(environment, tmp_path, capsys):
    """Both versions play the same cases, also where the older one had none."""
    old = environment("return float(ctx.read_file('a.txt').get('content') == 'work')")
    new = tmp_path / "new_env.py"
    file = tmp_path / old.rpartition("/")[2]
    new.write_text(file.read_text())
    new.with_suffix(".contract.yaml").write_text("items:\n  - where: '*'\n    gold: [{say: I did it.}]\n")

    code = main(["compare", old, str(new), "--mode", "chat", "--json", "-"])

    assert json.loads(capsys.readouterr().out)["differences"] == []
    assert code == 0


def test_files_judges_and_templates_of_an_environment_are_compared(environment, tmp_path, capsys, hermes_tokenizer):
    """What it writes into the sandbox, asks its judge, and the chat template of its tokenizer."""
    old = environment(
        "asked = [{'role': 'user', 'content': 'Grade it.'}]\n"
        "await self.server.chat_completion(messages=asked, max_tokens=5)\nreturn 1.0"
    )
    file = tmp_path / old.rpartition("/")[2]
    prepare = '    async def prepare_sandbox(self, item, ctx):\n        ctx.write_file("README.txt", "Task: write")\n\n    async def evaluate('
    file.write_text(file.read_text().replace("    async def evaluate(", prepare))
    new = tmp_path / "new_env.py"
    changes = {
        "Task: write": "The task: write",
        "Grade it": "Grade it strictly",
        "bonus=0.0)": f"tokenizer_name={str(hermes_tokenizer)!r})",
    }
    text = file.read_text()
    for one, other in changes.items():
        text = text.replace(one, other)
    new.write_text(text)

    main(["compare", old, str(new), "--mode", "chat", "--json", "-"])

    found = {one["aspect"]: one for one in json.loads(capsys.readouterr().out)["differences"]}
    assert [*found] == ["setting", "prepared file", "chat template or tokens", "judge request"]
    assert found["setting"]["name"] == "tokenizer_name"
    assert "README.txt" in found["prepared file"]["first"]
    assert found["prepared file"]["after"] == "The task: write"
    assert "strictly" in found["judge request"]["after"]
    assert "Be good." in found["chat template or tokens"]["after"]


def test_another_order_of_the_items_is_told_as_that():
    """Items of other places are paired by their places, and would be told one by one."""
    before = facts_of_run(FACTS | {"items": ["a", "b", "c"]})
    after = facts_of_run(FACTS | {"items": ["c", "b", "a"]})
    other = facts_of_run(FACTS | {"items": ["a", "b", "d"]})

    assert [found.aspect for found in differences([before], [after])[0]] == ["item order"]
    assert [(found.aspect, found.before, found.after) for found in differences([before], [other])[0]] == [("item", "c", "d")]


def test_what_another_order_chooses_is_no_difference_of_its_own():
    """Which of the items are played, and with which other one, follows from the order; what an item earns does not."""

    def played(order: str, rewards: dict[str, str]) -> list[Rollout]:
        rows = [Rollout(source="gold", item=item, facts={("reward", ""): reward}) for item, reward in rewards.items()]
        other = Rollout(source="other_gold of a", item="b", facts={("answer", ""): order[0]})
        return [facts_of_run(FACTS | {"items": [*order]}), *rows, other]

    one = played("abc", {"a": "1", "b": "1"})

    asked = [
        facts_of_run(
            FACTS
            | {
                "items": [*order],
                "judges": {"gold of training item 0": [{"messages": [{"role": "user", "content": order[0]}]}]},
            }
        )
        for order in ("abc", "cba")
    ]

    assert [found.aspect for found in differences(asked[:1], asked[1:])[0]] == ["item order"]
    assert [found.aspect for found in differences(one, played("cba", {"c": "1", "b": "1"}))[0]] == ["item order"]
    assert [found.aspect for found in differences(one, played("cba", {"b": "0"}))[0]] == ["item order", "reward"]
    assert [found.aspect for found in differences(one, played("ab", {"b": "1"}))[0]] == ["item"]
    assert [found.aspect for found in differences(one, played("abc", {"b": "1"}))[0]] == ["rollout"]


@pytest.mark.parametrize(
    ("change", "aspects"),
    [
        ({"a.txt', 'b.txt'": "b.txt', 'a.txt'", "0.5 if": "0.6 if"}, ["item order", "reward", "metric"]),
        ({"chmod 644": "chmod 755"}, ["prepared file"]),
    ],
)
def test_what_gold_earns_is_compared_on_every_item(environment, tmp_path, capsys, change, aspects):
    """Also on those that only an evaluation asks for, in whichever order they come; with the modes of what the sandbox begins with."""
    old = environment("return (0.5 if item['held_out'] else 1.0) * (ctx.read_file(item['path']).get('content') == 'work')")
    file = tmp_path / old.rpartition("/")[2]
    text = file.read_text()
    items = """        self.items = [{"path": path, "held_out": False} for path in ['a.txt', 'b.txt', 'c.txt']]
        self.eval_items = [{"path": "d.txt", "held_out": True}]
        self.number = -1

    async def prepare_sandbox(self, item, ctx):
        ctx.write_file("task.sh", "true")
        ctx.terminal("chmod 644 task.sh")
"""
    text = text.replace('        self.known = "from setup"\n', items)
    text = text.replace(
        'return {"path": "a.txt", "want": "work"}', "self.number += 1\n        return self.items[self.number % 3]"
    )
    file.write_text(text)
    for word, other in change.items():
        assert word in text
        text = text.replace(word, other)
    new = tmp_path / "new_env.py"
    new.write_text(text)
    gold = "items:\n  - where: '*'\n    gold: [{call: write_file, with: {path: '${item.path}', content: work}}, {say: done}]\n"
    for one in (file, new):
        one.with_suffix(".contract.yaml").write_text(gold)

    main(["compare", str(file), str(new), "--mode", "chat", "--json", "-"])

    printed = capsys.readouterr()
    assert [one["aspect"] for one in json.loads(printed.out)["differences"]] == aspects, printed.err


def test_what_fails_on_both_sides_was_not_compared():
    """Equal errors are no equal evaluations."""
    lines = [*compared_lines([], "a", "b", failed={"evaluate": "ValueError: no items"})]

    assert lines == [
        "`a` and `b` are the same as far as they could be played",
        "not compared: evaluate, which fails on both sides: ValueError: no items",
    ]


def test_an_item_whose_rollout_could_not_be_played_is_there():
    """The cause is not the item."""
    both = [Rollout(source="gold", item="one", facts={("tools", ""): tools}) for tools in ("a", "b")]
    lost = Rollout(source="near_miss", item="one", facts={("tools", ""): "a"})

    assert [found.aspect for found in differences([both[0], lost], [both[1]])[0]] == ["tools", "rollout"]


@pytest.mark.parametrize(("nats", "is_told"), [(-0.1249, False), (-0.1251, False), (-0.16, True)])
def test_logprobs_of_another_machine_are_near(nats, is_told):
    """No rounding makes two of one."""
    before, after = (
        [rollout(sequences=[Sequence(tokens=[1, 2], masks=[-100, 2], logprobs=[1.0, value])])] for value in (-0.12501, nats)
    )

    assert [one.aspect for one in differing(before, after)] == (["logprob"] if is_told else [])


def test_a_difference_in_white_space_is_seen():
    """Signs stand for it."""
    before, after = ([rollout(**with_message(1, content=text))] for text in ("do it", "do  it"))
    (found,) = differing(before, after)

    assert found.before != found.after
    assert "do\u00b7\u00b7it" in found.after
