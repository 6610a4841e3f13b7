"""Makes a small package that looks like hermes-agent 0.21 out of the installed 0.19: its names and signatures, as public sources show them.

What 0.21 has otherwise: ``todo`` is `todo_list` and ``process`` is `process_manage`; `dispatch` takes ``scope``; the tools that a model
seldom needs are behind ``tool_search``; modules are split into parts (``tools.terminal_tool_guards``).
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

DEFERRED = """
        if not skip_tool_search_assembly:
            filtered_tools = [one for one in filtered_tools if one["function"]["name"] not in {"todo_list", "process_manage"}]
"""
CHANGED: dict[str, list[tuple[str, str]]] = {
    "toolsets.py": [
        ('"process"', '"process_manage"'),
        ('"tools": ["todo"]', '"tools": ["todo_list"]'),
        ('"todo", ', '"todo_list", '),
    ],
    "model_tools.py": [
        ('_AGENT_LOOP_TOOLS = {"todo"', '_AGENT_LOOP_TOOLS = {"todo_list"'),
        ("        ts_cfg = _load_ts_config()\n", f"        ts_cfg = _load_ts_config(){DEFERRED}"),
    ],
    "tools/todo_tool.py": [('"name": "todo"', '"name": "todo_list"'), ('name="todo"', 'name="todo_list"')],
    "tools/process_registry.py": [
        ('"name": "process"', '"name": "process_manage"'),
        ('name="process"', 'name="process_manage"'),
    ],
    "tools/registry.py": [
        (
            "def dispatch(self, name: str, args: dict, **kwargs)",
            "def dispatch(self, name: str, args: dict, *, scope=None, **kwargs)",
        )
    ],
}
"""Texts of 0.19 and what stands in their place."""
SPLIT = {
    "terminal_tool": ("guards", ["_foreground_background_guidance", "_validate_workdir", "_interpret_exit_code"]),
    "file_tools": ("read_tracking", ["reset_file_dedup"]),
}
"""Modules of `tools`, the ending of their part, and names that are only there."""


def make(place: Path, *, without: str = "") -> Path:
    """Write the package into ``place``, a new directory, which goes on ``PYTHONPATH``; ``without`` names what is in no module of it."""
    distribution = importlib.metadata.distribution("hermes-agent")
    root = Path(str(distribution.locate_file("")))
    place.mkdir()
    _link_all(root, place, [name for name in _top_level(distribution, root) if name != "tools"])
    (place / "tools").mkdir()
    _link_all(root / "tools", place / "tools", [file.name for file in (root / "tools").iterdir()])
    for name, pairs in CHANGED.items():
        text = (root / name).read_text(encoding="utf-8")
        for old, new in pairs:
            assert old in text, (name, old)
            text = text.replace(old, new)
        _write(place / name, text)
    for module, (ending, names) in SPLIT.items():
        part = f"{module}_{ending}"
        _write(place / "tools" / f"{part}.py", (root / "tools" / f"{module}.py").read_text(encoding="utf-8"))
        kept = f"{{name: value for name, value in vars(_part).items() if name not in {[*names, '__name__', '__file__', '__spec__']}}}"
        _write(place / "tools" / f"{module}.py", f"from tools import {part} as _part\n\nglobals().update({kept})\n")
        if without in names:
            text = (place / "tools" / f"{part}.py").read_text(encoding="utf-8")
            _write(place / "tools" / f"{part}.py", text.replace(without, f"{without}_of_later"))
    metadata = place / "hermes_agent-0.21.3.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: hermes-agent\nVersion: 0.21.3\n")
    (metadata / "top_level.txt").write_text(str(distribution.read_text("top_level.txt")))
    return place


def _top_level(distribution: importlib.metadata.Distribution, root: Path) -> list[str]:
    names = str(distribution.read_text("top_level.txt")).split()
    return [name if (root / name).is_dir() else f"{name}.py" for name in names]


def _link_all(root: Path, place: Path, names: list[str]) -> None:
    for name in names:
        (place / name).symlink_to(root / name)


def _write(file: Path, text: str) -> None:
    file.unlink(missing_ok=True)
    file.write_text(text, encoding="utf-8")
