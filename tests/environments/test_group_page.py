"""The page that ``process`` writes: complete, and nothing of it runs."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from environments.rollout.file import write_page

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "```\n</code></pre><svg onload=alert(1)>\n```",
    '"><iframe src="https://evil.example"></iframe>',
    "{{ 7 * 7 }}{% for x in y %}",
    "</pre></article></details><h1>owned</h1>",
    "&lt;script&gt; \u202e \x1b[31m \ud83d",
]


class _Reader(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def read(path: Path) -> _Reader:
    """Return what a page contains."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def written(tmp_path: Path, *rows: object) -> Path:
    """Return the page of these lines."""
    file = tmp_path / "groups.jsonl"
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return write_page(file)


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_the_model_says_is_shown_and_not_run(attack: str, tmp_path: Path) -> None:
    """In a message, its reasoning, the name and arguments of a call, a result, a role, and a score."""
    calls = [{"id": attack, "type": "function", "function": {"name": attack, "arguments": json.dumps({"a": attack})}}]
    messages = [
        {"role": "user", "content": [{"type": "text", "text": attack}]},
        {"role": "assistant", "content": attack, "reasoning_content": attack, "tool_calls": calls},
        {"role": "tool", "content": attack},
        {"role": attack, "content": attack},
        attack,
    ]
    file = written(tmp_path, {"scores": [attack, 1.0], "messages": [messages, attack]})
    page, page_text = read(file), file.read_text(encoding="utf-8")

    allowed = "a article b body circle code dd details div dl dt fieldset form h1 h2 h4 head html input label legend li line main meta p pre"
    allowed += " button section span style summary svg table td text th title tr ul"
    assert page.tags <= set(allowed.split())
    known = "aria-hidden aria-label charset checked class content cx cy fill height href http-equiv id lang name open r role tabindex"
    known += " text-anchor type width x x1 x2 y y1 y2"
    assert page.attributes <= set(known.split())
    assert all(re.fullmatch(r"#(g\d+(r\d+)?|prompt-\d+)", link) for link in re.findall(r'href="([^"]*)"', page_text))
    assert page.text.count(attack.encode("utf-8", "backslashreplace").decode()) >= 9


def test_the_page_has_all_groups_rollouts_and_tool_calls(tmp_path: Path) -> None:
    """Lines that cannot be shown are named, not left out."""
    call = {"function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    rollout = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    page = read(written(tmp_path, {"scores": [0.5, -1], "messages": [rollout]}, "{broken", {"tokens": []}, "[" * 5000))

    words = " ".join(page.text.rpartition("show all")[2].split())
    assert words == (
        "Group 1 "
        "g1r1 reward 0.5 1 turn link to it user Hi assistant calls terminalcommandls "
        "g1r2 reward -1 0 turns no messages were written link to it text no messages were written "
        "Line 2: this line is not JSON Line 3: this line has no scores Line 4: this line is not JSON of 2 rollouts shown"
    )


def test_rollouts_are_found_by_reward_end_and_tool(tmp_path: Path) -> None:
    """Each box has the class of the rollouts that it shows, also for names that are no identifiers."""
    calls = [{"function": {"name": 'web"><b>', "arguments": "{}"}}]
    row = {
        "scores": [1.0, 0.0],
        "messages": [[{"role": "assistant", "tool_calls": calls}], [{"role": "assistant", "content": "no"}]],
        "overrides": [{"end": "finished"}, {"end": "cut_by_length"}],
    }

    page = written(tmp_path, row).read_text(encoding="utf-8")

    shown = re.findall(r'<details class="rollout ([^"]*)".*?<article id="(\w+)"', page, re.DOTALL)
    boxes = dict(re.findall(r'id="show-(\d)"> (.*?) <', page))
    assert boxes == {"3": "above 0", "2": "0", "0": "cut_by_length", "1": "finished", "4": "none", "5": "web&#34;&gt;&lt;b&gt;"}
    assert shown == [("of-3 of-1 of-5", "g1r1"), ("of-2 of-0 of-4", "g1r2")]
    assert all(f"body:has(#show-{number}:not(:checked)) .of-{number} " in page for number in boxes)


def test_what_rollouts_share_is_shown_once(tmp_path: Path) -> None:
    """The system prompt of the file, and the task of a group, in which the rollouts begin with what differs."""
    begin = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Count to three."}]
    row = {"scores": [1.0, 0.0], "messages": [[*begin, {"role": "assistant", "content": said}] for said in ("1 2 3", "no")]}

    page = read(written(tmp_path, row, row)).text

    assert (page.count("You are an agent."), page.count("Count to three."), page.count("the prompt of 4 rollouts")) == (1, 2, 4)


@pytest.mark.parametrize("score", [None, "high", True, float("nan"), float("inf"), 10**400, -1e300, 1e300])
def test_a_reward_that_cannot_be_drawn_is_shown_as_it_is(score: object, tmp_path: Path) -> None:
    page = read(written(tmp_path, {"scores": [score, 0.5], "messages": [[], []]})).text

    assert f"reward {score}" in page
    assert "nan%" not in page


def test_json_is_laid_out_and_folded(tmp_path: Path) -> None:
    """Lines of a result are lines of the page, and what is short comes first in its heading; what nests deeply stays as it was written."""
    result = json.dumps({"output": "one\ntwo", "exit_code": 1, "files": ["a.py"], "error": None})
    deep = "[" * 50 + "]" * 50
    messages = [
        {"role": "assistant", "content": "See:\n```python\nx = 1\n```\nDone."},
        *({"role": "tool", "content": one} for one in (result, deep)),
    ]

    page = written(tmp_path, {"scores": [1.0], "messages": [messages]}).read_text(encoding="utf-8")

    assert "exit_code 1, output one two</span></summary>" in page
    assert "<dt>output</dt><dd><pre>one\ntwo</pre>" in page
    assert "\\n" not in page.partition("<body>")[2]
    assert "<pre>```python\nx = 1\n```</pre>" in page
    assert deep in page


def test_pages_of_tokens_are_linked_where_they_are(tmp_path: Path) -> None:
    """Elsewhere the page says how to make one."""
    (tmp_path / "groups.g1r2.html").touch()

    page = written(tmp_path, {"scores": [0.0, 1.0], "messages": [[], []], "tokens": [[1, 2], [3]]}).read_text(encoding="utf-8")

    assert re.findall(r'href="(groups[^"]*)"', page) == ["groups.g1r2.html"]
    assert "hermes-env view --tokens TOKENIZER --rollout g1r1 groups.jsonl" in page


def test_records_of_a_group_are_shown_together(tmp_path):
    """Each is a line of its own; another run, or another group, begins anew."""
    file = tmp_path / "a.rollouts.jsonl"
    rows = [(run, group, reward) for run, group in (("x", 1), ("x", 2), ("y", 2)) for reward in (1.0, 0.0)]
    asked = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    records = [
        {"format": "hermes-rollout/1", "run": run, "group": group, "reward": reward, "messages": asked}
        for run, group, reward in rows
    ]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in records))

    page = write_page(file).read_text(encoding="utf-8")

    assert re.findall(r">(Group \d+)<", page) == ["Group 1", "Group 3", "Group 5"]
