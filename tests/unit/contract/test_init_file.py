"""The first file of cases, and where cases are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_hermes_env.cli import main
from pytest_hermes_env.layer import find_class
from pytest_hermes_env.play.cases.yaml_file import cases_beside

SMALL = Path(__file__).parents[1] / "play" / "small_env.py"


def copied(tmp_path: Path, name: str) -> Path:
    """Return an environment's file of its own."""
    file = tmp_path / f"{name}.py"
    file.write_text(SMALL.read_text(encoding="utf-8"), encoding="utf-8")
    return file


def test_init_writes_the_items_and_does_not_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is found at once, its golds are open; a second run refuses, with --force it does not."""
    env = copied(tmp_path, "started_env")
    file = tmp_path / "started_env.contract.yaml"

    first, second, forced = main(["init", str(env)]), main(["init", str(env)]), main(["init", str(env), "--force"])
    said = capsys.readouterr()

    found = cases_beside(find_class(str(env))[0])
    assert found is not None
    assert (first, second, forced) == (0, 2, 0)
    assert said.out.splitlines()[:3] == [
        f"wrote {file}: 2 items of SmallEnv",
        "no gold was found: none of 16 templates earned on each item; fill it in",
        f"next: look at gold in {file}, then pytest --hermes-env {env}",
    ]
    assert said.err == f"hermes-env: error: {file} already exists and may contain your cases: --force overwrites it\n"
    assert [(entry.kind, entry.which, entry.label) for entry in found.items] == [
        ("item", {"word": "blue"}, "item 0"),
        ("item", {"word": "red"}, "item 1"),
    ]
    assert [(case.name, case.of is None) for case in found.items[0].cases] == [
        ("gold", True),
        ("near_miss", False),
        ("nothing", False),
    ]
    assert "  # item 0, prompt:\n  #   Print blue\n  - item:\n      word: blue\n    gold: TODO" in file.read_text()
    assert sorted(path.name for path in tmp_path.glob("*contract*")) == ["started_env.contract.yaml"]


def test_the_nearest_file_holds(tmp_path: Path) -> None:
    """One of the module before one of the folder; a file for another class is passed over."""
    env = copied(tmp_path, "nearest_env")
    (env_class,) = find_class(str(env))
    folder, module = tmp_path / "contract.yaml", tmp_path / "nearest_env.contract.yaml"
    none = cases_beside(env_class)
    folder.write_text("items: [{index: 0, gold: [{say: x}]}]")
    in_folder = cases_beside(env_class)
    module.write_text("class: Another\nitems: [{index: 1, gold: [{say: x}]}]")
    for_another = cases_beside(env_class)
    module.write_text("items: [{index: 1, gold: [{say: x}]}]")
    in_module = cases_beside(env_class)

    seen = [found and found.items[0].which for found in (none, in_folder, for_another, in_module)]
    assert seen == [None, 0, 0, 1]
