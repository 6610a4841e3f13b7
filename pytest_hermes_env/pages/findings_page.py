"""The page of what `rescore`, `health` and `compare` found; its rollouts lead to the pages of rollouts that are there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hermes_env_shared.pages import page_template
from pytest_hermes_env.atomic_files import write_text
from pytest_hermes_env.records.found import Found

_PLACE = re.compile(r"(?P<file>.*?):(?P<line>\d+)(?: \((?P<key>.*?)\))?(?::.*)?", re.DOTALL)
Table = tuple[str, Sequence[str], Iterable[Sequence[Any]]]
"""A heading, names of columns, and rows; a cell is a text, a number, or a text with its link."""


def write_findings(
    page: str, *, title: str, verdict: str, facts: Mapping[str, Any], found: Iterable[Found], tables: Iterable[Table] = ()
) -> None:
    """Write the page in one step. Raises: OSError."""
    template = page_template(Path(__file__).with_name("findings.html.jinja"))
    findings = [linked(one, os.path.dirname(page)) for one in found]
    write_text(page, template.render(title=title, verdict=verdict, facts=facts, findings=findings, tables=tables))


def linked(one: Found, directory: str) -> dict[str, Any]:
    """Return what a template shows of a finding, with the links of its places from a page in ``directory``."""
    return {**asdict(one), "links": [(place, link_of(place, directory)) for place in one.places]}


def link_of(place: str, directory: str) -> str:
    """Return the link to a rollout on the page of its file; empty where that page is not there."""
    named = _PLACE.fullmatch(place)
    page = Path(named["file"]).with_suffix(".html") if named else None
    if named is None or page is None or not page.exists():
        return ""
    with open(named["file"], "rb") as rollouts:
        is_record = rollouts.read(20).startswith(b'{"format"')
    key = named["key"] if not is_record and named["key"] else f"g{named['line']}r1"
    return f"{quote(os.path.relpath(page, directory or '.'))}#{quote(key)}"
