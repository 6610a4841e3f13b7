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

    allowed = {
        "a",
        "fieldset",
        "html",
        "input",
        "label",
        "legend",
        "p",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h3",
        "details",
        "summary",
        "article",
        "pre",
        "div",
        "b",
    }
    assert page.tags <= allowed
    assert page.attributes <= {"lang", "charset", "name", "content", "http-equiv", "class", "open", "href", "id", "type"}
    assert all(re.fullmatch(r"#g\d+r\d+", link) for link in re.findall(r'href="([^"]*)"', page_text))
    assert page.text.count(attack.encode("utf-8", "backslashreplace").decode()) >= 9


def test_the_page_has_all_groups_rollouts_and_tool_calls(tmp_path: Path) -> None:
    """Lines that cannot be shown are named, not left out."""
    call = {"function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    rollout = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    page = read(written(tmp_path, {"scores": [0.5, -1], "messages": [rollout]}, "{broken", {"tokens": []}, "[" * 5000))

    words = " ".join(page.text.partition("groups.jsonl\n")[2].split())
    assert words.endswith(
        'Group 1: 2 rollouts Rollout 1: reward 0.5 user Hi assistant calls terminal{"command": "ls"} '
        "Rollout 2: reward -1 text no messages were written "
        "Line 2: this line is not JSON Line 3: this line has no scores Line 4: this line is not JSON"
    )


def test_rollouts_are_found_by_end_reward_and_tool(tmp_path: Path) -> None:
    """Each box has the class of the rollouts that it hides, also for names that are no identifiers."""
    calls = [{"function": {"name": 'web"><b>', "arguments": "{}"}}]
    row = {
        "scores": [1.0, 0.0],
        "messages": [[{"role": "assistant", "tool_calls": calls}], [{"role": "assistant", "content": "no"}]],
        "overrides": [{"end": "finished"}, {"end": "cut_by_length"}],
    }

    page = written(tmp_path, row).read_text(encoding="utf-8")

    shown = re.findall(r'<article id="(\w+)" class="([^"]*)"', page)
    boxes = dict(re.findall(r'id="hide-(\w+)"> (?:ended: |used )?([^<]*)<', page))
    assert boxes == {
        "positive": "reward above 0",
        "zero": "reward 0",
        "negative": "reward below 0",
        "0": "cut_by_length",
        "1": "finished",
        "2": "web&#34;&gt;&lt;b&gt;",
    }
    assert shown == [("g1r1", "positive of-1 of-2"), ("g1r2", "zero of-0")]
    assert all(f"body:has(#hide-{name}:checked) article.{'of-' if name.isdecimal() else ''}{name} " in page for name in boxes)
