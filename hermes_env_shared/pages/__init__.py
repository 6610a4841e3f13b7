"""Pages for a browser: one layout, one style sheet and one form of messages, for the contract, rollouts and tokens.

A page is one file without scripts that loads nothing. What an environment or a model says is data: templates escape it.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

DEEPEST = 8
"""Levels of JSON that are laid out; what nests more deeply is shown as it was written."""
BRIEF = 120
_FENCED = re.compile(r"(^ {0,3}(```+|~~~+)[^\n`]*\n.*?(?:^ {0,3}\2[`~]*[ \t]*$|\Z))", re.MULTILINE | re.DOTALL)


def page_template(file: Path) -> Template:
    """Return the template in ``file``, which extends `page.html.jinja`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - only where a page is asked for

    loader = FileSystemLoader([file.parent, Path(__file__).parent])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {function.__name__: function for function in (breakable, with_code, blocks, laid_out, brief, mean)}
    return environment.get_template(file.name)


def mean(numbers: Iterable[float | None]) -> float | None:
    """Return the mean of the numbers that are known; None without any."""
    known = [number for number in numbers if number is not None]
    return statistics.fmean(known) if known else None


def axis_of(numbers: Iterable[float]) -> tuple[list[tuple[str, float]], Callable[[float], float]]:
    """Return an axis of rewards: its marks with their places, in percent of its length, and what gives the place of a number."""
    low, *_, high = sorted([0.0, 1.0, *numbers])

    def place(number: float) -> float:
        return round(100 * (number - low) / (high - low), 1)

    return [(f"{mark:.3g}", place(mark)) for mark in sorted({low, 0.0, 1.0, high})], place


def with_code(text: str) -> Markup:
    """Return a text escaped, with what stands between backticks as code."""
    from markupsafe import Markup, escape  # noqa: PLC0415

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - it is escaped


def breakable(name: str) -> Markup:
    """Return a name escaped, with places where a narrow screen may break it: behind its words."""
    from markupsafe import Markup, escape  # noqa: PLC0415

    return Markup(re.sub(r"([a-z0-9](?=[A-Z])|[-_:./])", r"\1<wbr>", str(escape(name))))  # noqa: S704 - it is escaped


def blocks(text: str) -> list[tuple[bool, str]]:
    """Return a text in parts, each with whether it is a fenced block of code."""
    parts = _FENCED.split(text)  # text, block, fence, text, ...
    found = [
        part for prose, code in zip(parts[::3], [*parts[1::3], ""], strict=True) for part in ((False, prose), (True, code))
    ]
    return [(is_code, part) for is_code, part in found if part.strip()]


def laid_out(text: str) -> Any:
    """Return the object or list that a JSON text holds, or else the text."""
    try:
        value = json.loads(text) if text.lstrip().startswith(("{", "[")) else text
    except (ValueError, RecursionError):
        return text
    return value if _is_shallow(value, DEEPEST) else text


def _is_shallow(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(one, levels - 1) for one in inner)


def brief(value: Any) -> str:
    """Return a value in one short line; of an object, what is short comes first."""
    if isinstance(value, dict):
        pairs = [
            (name, one if isinstance(one, str) else json.dumps(one))
            for name, one in value.items()
            if one is not None and not isinstance(one, dict | list)
        ]
        value = ", ".join(f"{name} {one}" for name, one in sorted(pairs, key=lambda pair: len(pair[1])))
    line = " ".join(str(value)[: 10 * BRIEF].split())
    return line if len(line) <= BRIEF else f"{line[: BRIEF - 1]}…"
