"""The page of one rollout's tokens: the conversation, then the tokens, trained ones coloured by their logprob.

``hermes-env view --tokens TOKENIZER`` writes it. The page has no script and loads nothing; every text is escaped.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from pytest_hermes_env.atomic_files import write_text
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.layer import rollout_file
from pytest_hermes_env.pages.token_view import token_view

BUCKETS = (0.9, 0.5, 0.2, 0.02, 0.0)
"""The least probability of each colour, from sure to unsure."""
PLACE = re.compile(r"g(\d+)r(\d+)")


def page_of(file: Path, place: str) -> Path:
    """Return the file of the page of one rollout."""
    return file.with_name(f"{file.stem}.{place}.html")


def write_token_page(file: Path, place: str, tokenizer: Any) -> Path:
    """Write the page of the rollout at ``place``, such as g3r2, beside ``file``, and return its path.

    Raises: there is no such rollout, or it has no tokens → UsageError.
    """
    found = PLACE.fullmatch(place)
    if found is None:
        raise UsageError(f"--rollout: must be a line and a rollout, such as g3r2, not {place!r}")
    line, row = map(int, found.groups())
    group = next((group for group in rollout_file().read_groups(file) if group.line == line), None)
    if group is None or not 1 <= row <= len(group.rollouts):
        raise UsageError(f"{file} has no rollout {place}.\n  seen      {group.problem if group else 'no such line'}")
    with file.open(encoding="utf-8", errors="replace") as lines:
        columns = json.loads(next(text for number, text in enumerate(lines, start=1) if number == line))
    if not columns.get("tokens"):
        raise UsageError(f"{place} of {file} has no tokens.\n  expected  a file of groups, as process writes it in token mode")
    page = page_of(file, place)
    write_text(
        str(page),
        _template().render(
            title=f"{file.name}, {place}",
            rollout=group.rollouts[row - 1],
            view=token_view(columns, tokenizer, row=row - 1),
            buckets=_bucket_names(),
            bucket=_bucket,
        ),
    )
    return page


def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - only where a page is asked for

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("token_page.html.jinja")


def _bucket(logprob: str) -> int:
    """Return the colour of a logprob."""
    probability = math.exp(min(float(logprob), 0.0))
    return next(number for number, least in enumerate(BUCKETS) if probability >= least)


def _bucket_names() -> list[str]:
    return [f"probability {least:.0%} or more" for least in BUCKETS[:-1]] + [f"less than {BUCKETS[-2]:.0%}"]
