"""What the tool-call parsers cost: megabytes per second on ordinary text, and how the cost of a character grows with the text.

Prints figures and ratios of processor time; run it with little else on the machine: ``python benchmarks/parsers.py``. A growth
near 1 means that a character of a megabyte costs what a character of a kilobyte does, also in text that was written to be dear.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from environments.tool_call_parsers import ToolCallParser, get_parser

DATA = Path(__file__).parents[1] / "tests" / "data" / "vllm_parsers"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SHORTEST_MEASUREMENT_S = 0.02
REPEATS = 3

PROSE = "I will look at the files first, then run the tests again and see which of them fail.\n"
CODE = 'def area(width: float, height: float) -> float:\n    """Return the area."""\n    return width * height\n\n' * 3


def seconds_per_character(parser: ToolCallParser, text: str, tools: list[dict[str, Any]]) -> float:
    """Return the best processor time of a few, each long enough for the clock."""
    best = float("inf")
    for _ in range(REPEATS):
        runs, spent = 0, 0.0
        started = time.process_time()
        while spent < SHORTEST_MEASUREMENT_S:
            parser.parse(text, tools)
            runs += 1
            spent = time.process_time() - started
        best = min(best, spent / runs / len(text))
    return best


def growth(parser: ToolCallParser, text_of: Callable[[int], str], tools: list[dict[str, Any]]) -> list[float]:
    """Return seconds per character for every size."""
    return [seconds_per_character(parser, text_of(size), tools) for size in SIZES]


def ordinary(formats: dict[str, Any], form: Any) -> Callable[[int], str]:
    """Return texts of turns: prose, then a command and a file to write; as long as asked for."""
    call = formats["Call"]
    calls = [
        call(name="terminal", arguments={"command": "pytest -q tests", "timeout": 120}),
        call(name="write_file", arguments={"path": "/workspace/area.py", "content": CODE}),
    ]
    turn = PROSE + form.render(calls) + "\n"
    return lambda size: (turn * (size // len(turn) + 1))[:size]


def line(name: str, costs: list[float]) -> str:
    """Return one line: MB/s at the largest size, nanoseconds per character at each, and the growth."""
    nanoseconds = "".join(f"{cost * 1e9:8.1f}" for cost in costs)
    return f"{name:42}{1e-6 / costs[-1]:8.1f}{nanoseconds}{costs[-1] / costs[0]:8.2f}"


def main() -> None:
    """Print ordinary texts per format, then hostile ones, dearest growth first."""
    formats = runpy.run_path(str(DATA / "formats.py"))
    hostile = runpy.run_path(str(DATA / "hostile.py"))
    head = f"{'':42}{'MB/s':>8}{''.join(f'{size // 1000:>5} KB' for size in SIZES)}{'growth':>8}"
    print(f"ordinary text, nanoseconds per character\n{head}")
    for form in formats["FORMATS"]:
        costs = growth(get_parser(form.ours[0]), ordinary(formats, form), formats["TOOLS"])
        print(line(form.name, costs))
    print(f"\nhostile text, nanoseconds per character\n{head}")
    found = []
    for name, title, piece in hostile["all_pieces"]():

        def text_of(size: int, case: tuple[str, str, str] = (name, title, piece)) -> str:
            return str(hostile["hostile_text"](*case, size))

        found.append((f"{name}: {title}", growth(get_parser(name), text_of, formats["TOOLS"])))
    for title, costs in sorted(found, key=lambda entry: entry[1][-1] / entry[1][0], reverse=True):
        print(line(title, costs))
    largest = max(costs[-1] for _, costs in found)
    print(f"\ndearest character of a megabyte: {largest * 1e9:.0f} ns, {largest * 1e6:.1f} s for all of it")


if __name__ == "__main__":
    main()
