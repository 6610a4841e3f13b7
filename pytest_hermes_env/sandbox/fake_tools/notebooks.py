"""Jupyter notebooks as ``read_file`` shows them.

Source: hermes-agent 0.19, tools/read_extract.py. Word and Excel files, which hermes reads there, too, are refused as binary here.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["render_notebook"]


def render_notebook(data: bytes) -> str | None:
    """Return a notebook's cells as text, or None where the bytes are no notebook with cells."""
    try:
        notebook = json.loads(data.decode(errors="replace"))
    except ValueError:
        return None
    counts = {"markdown": 0, "code": 0, "raw": 0}
    rendered: list[str] = []
    for cell in _cells(notebook):
        kind = cell.get("cell_type") if isinstance(cell, dict) else None
        if kind in counts:
            counts[kind] += 1
            number = "" if kind == "raw" else f" {counts[kind]}"
            rendered += [f"# ── {kind.capitalize()} cell{number} ──", _source(cell.get("source", "")).rstrip("\n"), ""]
    return "\n".join(rendered).rstrip("\n") + "\n" if rendered else None


def _cells(notebook: object) -> list[Any]:
    if not isinstance(notebook, dict):
        return []
    cells = notebook.get("cells")
    if isinstance(cells, list):
        return cells
    return [cell for sheet in notebook.get("worksheets", []) if isinstance(sheet, dict) for cell in sheet.get("cells", [])]


def _source(source: object) -> str:
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str))
    return source if isinstance(source, str) else ""
