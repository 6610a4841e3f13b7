"""What the tool-call parsers cost: on ordinary text, and on text that was written to be dear."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.registry import Figure, Pair, benchmark, stopwatch
from environments.tool_call_parsers import ToolCallParser, get_parser

DATA = Path(__file__).parents[1] / "tests" / "data" / "vllm_parsers"
SHORT, LONG = 1_000, 1_000_000
SHORTEST_MEASUREMENT_S = 0.02
PROSE = "I will look at the files first, then run the tests again and see which of them fail.\n"
CODE = 'def area(width: float, height: float) -> float:\n    """Return the area."""\n    return width * height\n\n' * 3


def per_character(n: int, parser: ToolCallParser, text: str, tools: list[dict[str, Any]]) -> float:
    """Return the least processor time of a few measurements, each long enough for the clock."""
    found = []
    for _ in range(n):
        runs, spent = 0, 0.0
        while spent < SHORTEST_MEASUREMENT_S:
            with stopwatch() as one:
                parser.parse(text, tools)
            runs, spent = runs + 1, spent + one.cpu
        found.append(spent / runs / len(text))
    return min(found)


def ordinary(formats: dict[str, Any], form: Any) -> Callable[[int], str]:
    """Return texts of turns: prose, then a command and a file to write; as long as asked for."""
    calls = [
        formats["Call"](name="terminal", arguments={"command": "pytest -q tests", "timeout": 120}),
        formats["Call"](name="write_file", arguments={"path": "/workspace/area.py", "content": CODE}),
    ]
    turn = PROSE + form.render(calls) + "\n"
    return lambda size: (turn * (size // len(turn) + 1))[:size]


@benchmark(
    Figure(
        "parse ordinary replies, slowest parser",
        "ns CPU per character",
        "A reply of 10,000 characters takes a millisecond or two in the slowest format.",
        "quickest parser",
    )
)
def ordinary_replies(n: int) -> Iterator[Pair]:
    """Parse replies of 100 KB in each format."""
    formats = runpy.run_path(str(DATA / "formats.py"))
    costs = [
        per_character(n, get_parser(form.ours[0]), ordinary(formats, form)(100_000), formats["TOOLS"])
        for form in formats["FORMATS"]
    ]
    yield max(costs) * 1e9, min(costs) * 1e9


@benchmark(
    Figure(
        "parse hostile replies of 1 MB, worst growth",
        "ns CPU per character",
        "A model cannot stall your trainer with odd text: the cost of a character hardly grows with the text.",
        "the same text, 1 KB of it",
    )
)
def hostile_replies(_: int) -> Iterator[Pair]:
    """Parse each hostile text once, and return the one whose cost grows most."""
    tools = runpy.run_path(str(DATA / "formats.py"))["TOOLS"]
    hostile, found = runpy.run_path(str(DATA / "hostile.py")), []
    for name, title, piece in hostile["all_pieces"]():
        parser = get_parser(name)
        long, short = (
            per_character(1, parser, hostile["hostile_text"](name, title, piece, size), tools) for size in (LONG, SHORT)
        )
        found.append((long * 1e9, short * 1e9))
    yield max(found, key=lambda pair: pair[0] / pair[1])
