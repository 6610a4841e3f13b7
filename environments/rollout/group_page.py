"""The HTML page that ``process`` writes next to its JSON lines: each group with its rollouts, messages and tool calls.

``hermes-env view`` writes it for any file that `rollout_file` reads. Boxes hide rollouts by end, reward and tool. What a model says is
data. Every text is escaped, the page has no script, and its policy loads nothing; atroposlib's own page renders the model's markup, and
leaves tool calls out.
"""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from environments.rollout.file import read_groups

TEMPLATE = "group_page.html.jinja"


def write_page(file: Path) -> Path:
    """Write the page of a file of rollouts next to it, in one step, and return its path. Raises: OSError."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    groups = list(read_groups(file))
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    ends = sorted({rollout.end for rollout in rollouts if rollout.end})
    tools = sorted({tool for rollout in rollouts for tool in rollout.tools})
    numbers = {name: number for number, name in enumerate([*ends, *tools])}  # classes of the page: names may hold anything
    parts = environment.get_template(TEMPLATE).generate(
        title=file.name, groups=groups, count=len(rollouts), ends=ends, tools=tools, numbers=numbers
    )
    page = file.with_suffix(".html")
    unfinished = page.with_name(f".{page.name}.tmp")
    try:
        with unfinished.open("w", encoding="utf-8", errors="backslashreplace") as out:  # a lone surrogate cannot be encoded
            out.writelines(parts)
        unfinished.replace(page)
    finally:
        unfinished.unlink(missing_ok=True)
    return page
