"""Model outputs in every format: whole, beside prose, thought, cut off, malformed. Seeded, so that they are the same everywhere."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from formats import Call, Format

PROSE = (
    "Let me look.",
    "I'll check that for you, one moment.\n",
    "Zuerst prüfe ich die Größe — dann den Rest 🙂.\n\n",
    "Here is what I found: 3 < 4 and a & b.",
    "First,\n- one\n- two\n",
    " ",
    "\n",
)
TEXTS = (
    "ls -la",
    "1.10",
    "007",
    "true",
    "null",
    "",
    " padded ",
    "line one\nline two\n",
    "\nleading break",
    "say \"hi\" and 'bye'",
    "C:\\temp\\new",
    "tab\there",
    "naïve café — 東京 🗼",
    '{"a": [1, 2]}',
    "[1, 2, 3]",
    "a } b { c ] d [",
    "if (x < 1 && y > 2) { return; }",
    "for i in range(3):\n    print(f'{i}')\n",
    "é\u2028\u200d\u00a0",
    "5e3",
    "print('</div>')",
    "\\u00e9 \\n",
    "echo $((1+2)); cat <<'EOF'\nx\nEOF",
)
NEVER_CALLS = (
    "The answer is 42.",
    "",
    "   \n",
    '{"answer": 42, "why": "arithmetic"}',
    '{"name": "Ada", "age": 36}',
    '{"name": "Ada", "parameters": {"age": 36}}',
    '[{"name": "Ada", "arguments": {}}]',
    '```json\n{"name": "Ada", "arguments": {"x": 1}}\n```',
    "{{ template }} and {braces}",
    "a <tag> and </tag>, <function> and </function>",
    "Use f(x) = {x | x > 0}.",
    "<tool_response>\n{}\n</tool_response>",
)
FORGED = (
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "</think>",
    "<think>",
    "</function>",
    "<|python_tag|>",
    "```",
    "</arg>",
)


def arguments_of(rng: random.Random, name: str, forbidden: tuple[str, ...]) -> dict[str, Any]:
    """Plausible arguments of one of the tools; now and then one is left out."""
    texts = [text for text in TEXTS if not any(mark in text for mark in forbidden)]
    choices: dict[str, dict[str, Callable[[], Any]]] = {
        "terminal": {
            "command": lambda: rng.choice(texts),
            "timeout": lambda: rng.randrange(600),
            "background": lambda: rng.random() < 0.5,
        },
        "write_file": {"path": lambda: f"/w/{rng.randrange(99)}.py", "content": lambda: rng.choice(texts) + rng.choice(texts)},
        "read_file": {
            "path": lambda: rng.choice(texts),
            "offset": lambda: rng.randrange(-3, 5000),
            "limit": lambda: rng.choice([None, 5]),
        },
        "release": {
            "version": lambda: rng.choice(["1.10", "2", "1e3", "v1", "0x10"]),
            "ratio": lambda: rng.choice([0.5, 2, 1e-7, -3.25]),
            "tags": lambda: rng.sample(texts, rng.randrange(3)),
            "options": lambda: {"draft": rng.random() < 0.5, "label": rng.choice(texts), "more": {"deep": [{"er": None}]}},
            "stage": lambda: rng.choice(["alpha", "beta"]),
            "note": lambda: rng.choice([None, "later"]),
        },
        "mcp.files-v2_list": {"root": lambda: rng.choice(["/", "~", "."]), "depth": lambda: rng.randrange(9)},
    }
    return {key: make() for key, make in choices.get(name, {}).items() if rng.random() < 0.85}


def some_call(rng: random.Random, form: Format) -> Call:
    name = rng.choice(
        ["terminal", "terminal", "write_file", "read_file", "release", "release", "get_time", "mcp.files-v2_list"]
    )
    return Call(name=name, arguments=arguments_of(rng, name, form.forbidden))


def some_calls(rng: random.Random, form: Format, most: int = 2) -> list[Call]:
    return [some_call(rng, form) for _ in range(rng.randrange(1, most + 1))]


def whole(rng: random.Random, form: Format) -> str:
    return form.render(some_calls(rng, form, 3))


def beside_prose(rng: random.Random, form: Format) -> str:
    before, between, after = (rng.choice([*PROSE, "", ""]) for _ in range(3))
    is_split = form.name not in ("mistral_array", "llama3_json", "llama4_json")
    text = form.render(some_calls(rng, form), between=form.separator + between if is_split else None)
    return before + text + after


def with_other_space(rng: random.Random, form: Format) -> str:
    """Spaces and line breaks beside the tags, where a model puts them."""
    text = form.render(some_calls(rng, form))
    places = [found.end() for found in re.finditer(r"[>\]}]", text)] + [found.start() for found in re.finditer(r"[<\[{]", text)]
    for place in sorted(rng.sample(places, min(len(places), rng.randrange(1, 3))), reverse=True):
        text = text[:place] + rng.choice([" ", "\n", "\n\n", "\t", "  "]) + text[place:]
    return text


def cut_off(rng: random.Random, form: Format) -> str:
    text = rng.choice(["", *PROSE]) + form.render(some_calls(rng, form))
    return text[: rng.randrange(1, len(text))]


def thought(rng: random.Random, form: Format) -> str:
    opening, closing = form.think
    musing = rng.choice(["Which tool? ", "I should look first.\n", "Hm.\n\n"])
    inner, outer = form.render([some_call(rng, form)]), form.render(some_calls(rng, form, 2))
    return rng.choice(
        [
            f"{opening}{musing}{closing}\n{outer}",
            f"{opening}{musing}{inner}{closing}\n{outer}",
            f"{opening}{musing}{inner}{closing}\nNo need.",
            f"{opening}{musing}{inner}",
            f"{musing}{closing}\n\n{outer}",
            f"{musing}{inner} or so.{closing}{outer}",
            f"{opening}{closing}{outer}",
            f"{outer}\n{opening}{musing}{closing}",
        ]
    )


def malformed(rng: random.Random, form: Format) -> str:
    text = form.render(some_calls(rng, form, 3))
    if rng.random() < 0.4:
        text = rng.choice(PROSE) + text
    for _ in range(rng.randrange(1, 3)):
        place = rng.randrange(len(text))
        text = (
            rng.choice(
                [
                    lambda t, p: t[:p] + t[p + 1 :],
                    lambda t, p: t[:p] + t[p + rng.randrange(1, 20) :],
                    lambda t, p: t[:p] + rng.choice('{}[]",:<>\\') + t[p:],
                    lambda t, p: t[:p] + rng.choice(FORGED) + t[p:],
                    lambda t, _: t.replace('"', "'"),
                    lambda t, _: t.replace("}", ",}", 1),
                    lambda t, _: t.replace("}", "}}", 1),
                    lambda t, p: t[:p] + t[max(0, p - 15) :],
                ]
            )(text, place)
            or "x"
        )
    return text


def forged(rng: random.Random, form: Format) -> str:
    """A tag inside a text argument."""
    marks = [mark for mark in (*FORGED, *form.vocabulary, *form.think) if mark not in form.forbidden]
    call = Call(
        name="write_file",
        arguments={"path": "/w/notes.md", "content": f"The tags {' and '.join(rng.sample(marks, 2))} mark it."},
    )
    calls = [call, *some_calls(rng, form, 1)]
    rng.shuffle(calls)
    return form.render(calls)


def odd(rng: random.Random, form: Format) -> str:
    """Well-formed, but unusual: an unknown tool, wrong types, no arguments at all."""
    text = form.render(
        [
            rng.choice(
                [
                    Call(name="no_such_tool", arguments={"x": 1}),
                    Call(name="terminal", arguments={}),
                    Call(name="terminal", arguments={"command": "ls", "timeout": "30", "background": "yes"}),
                    Call(name="terminal", arguments={"command": 5, "timeout": 2.5, "unknown": "1"}),
                    Call(name="release", arguments={"version": 1.5, "ratio": "0.50", "tags": "a,b", "note": "null"}),
                    Call(name="release", arguments={"options": '{"draft": "true"}', "stage": "1", "version": None}),
                ]
            ),
            *some_calls(rng, form, 1),
        ]
    )
    return re.sub(r', "(arguments|parameters)": \{\}', "", text) if rng.random() < 0.5 else text


def no_call(rng: random.Random, form: Format) -> str:
    text = rng.choice([*PROSE, *NEVER_CALLS])
    return rng.choice([text, text + rng.choice(NEVER_CALLS), f"{text} The mark {rng.choice(form.vocabulary)} begins a call."])


KINDS: dict[str, tuple[int, Callable[[random.Random, Format], str]]] = {
    "whole": (50, whole),
    "beside_prose": (50, beside_prose),
    "with_other_space": (25, with_other_space),
    "cut_off": (50, cut_off),
    "thought": (30, thought),
    "malformed": (55, malformed),
    "forged": (20, forged),
    "odd": (15, odd),
    "no_call": (20, no_call),
}
"""Kind -> (how many, how one is made)."""


def outputs(form: Format) -> Iterator[tuple[str, str]]:
    """(kind, text) of a format's outputs, always the same ones, none of them twice."""
    seen: set[str] = set()
    for kind, (count, make) in KINDS.items():
        rng = random.Random(f"{form.name} {kind}")
        missing = count
        while missing:
            text = make(rng, form)
            if text not in seen:
                seen.add(text)
                missing -= 1
                yield kind, text
