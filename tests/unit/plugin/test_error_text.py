"""Errors on a terminal of 100 columns."""

from __future__ import annotations

import io

from _pytest._io import TerminalWriter

from pytest_hermes_env.plugin.error_text import WIDTH, ErrorText, wrapped

PROMPT = "word " * 16
MISS = (
    "a request is not in the cassette.\n"
    f"  where     {'; '.join(f'rollout {number}, turn 1' for number in range(1, 8))}\n"
    f'  differs   the prompt: recorded "{PROMPT}one", now "{PROMPT}two"\n'
    f"  fix       pytest --hermes-record=rewrite tests/{'x' * WIDTH}.py::test_it"
)


def test_a_long_difference_has_each_side_on_lines_of_its_own():
    beginnings = [line.split()[0] for line in wrapped(MISS).split("\n")]

    assert [word for word in beginnings if word in {"differs", "recorded", "now"}] == ["differs", "recorded", "now"]


def test_every_line_but_a_command_fits():
    lines = wrapped(MISS).split("\n")

    assert [line.strip()[:3] for line in lines if len(line) > WIDTH] == ["fix"]
    assert " ".join(" ".join(lines).split()) == " ".join(MISS.replace('one", now', 'one" now').split())


def test_short_lines_stay_as_they_are():
    text = "a tool call is not in the cassette.\n  differs   the tool: recorded ls, now pwd"

    assert wrapped(text) == text


def test_both_sides_have_colours_where_the_terminal_has_them():
    shown = {}
    for has_markup in (True, False):
        file = io.StringIO()
        writer = TerminalWriter(file)
        writer.hasmarkup = has_markup
        ErrorText(MISS).toterminal(writer)
        shown[has_markup] = file.getvalue()

    assert "\033[31m            recorded" in shown[True]
    assert "\033[32m            now" in shown[True]
    assert shown[False] == wrapped(MISS) + "\n"
