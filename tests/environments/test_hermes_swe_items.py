"""Where HermesSweEnv's items come from: sample tasks, data sets on disk, the hub that cannot be reached; and the split."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from environments.hermes_swe_env.coding_items import hold_out, load_coding_items, sample_tasks

pytestmark = pytest.mark.usefixtures("no_hub")

ROW = {
    "task_id": "Python/0",
    "prompt": "def double(n):\n    '''Twice n.'''\n",
    "declaration": "def double(n):\n",
    "entry_point": "double",
    "import": "from math import inf",
    "test_setup": "",
    "test": "assert double(4) == 8",
}
ITEM = {"prompt": ROW["prompt"], "test": "from math import inf\nassert double(4) == 8", "entry_point": "double"}


def lines_file(path: Path, *rows: dict[str, Any]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def load(name: str | None, **settings: Any) -> list[Any]:
    return load_coding_items(name, **({"split": "test", "prompt_field": "prompt"} | settings))


def test_sample_tasks_are_whole_and_different():
    """Each names a function of its own and tests it."""
    names = [item["entry_point"] for item in list(sample_tasks())]

    assert len(list(sample_tasks())) >= 20
    assert len(set(names)) == len({item["prompt"] for item in list(sample_tasks())}) == len(names)
    assert [item["entry_point"] for item in list(sample_tasks()) if f"def {item['entry_point']}(" not in item["prompt"]] == []
    assert [item["entry_point"] for item in list(sample_tasks()) if f"{item['entry_point']}(" not in item["test"]] == []


def test_hub_out_of_reach_means_the_sample_tasks_and_a_warning(caplog):
    """The warning names what was asked for, why it is not there, and what to do."""
    with caplog.at_level(logging.WARNING, logger="environments"):
        items = load("some-one/a-data-set")

    assert items == list(sample_tasks())
    assert [record.getMessage() for record in caplog.records if record.name.startswith("environments")] == [
        "dataset_name 'some-one/a-data-set' cannot be reached (Couldn't reach 'some-one/a-data-set' on the Hub "
        f"(OfflineModeIsEnabled)): using the {len(list(sample_tasks()))} samples that come with the environment. Set dataset_name to "
        "null to choose them, or to a local path."
    ]


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "parquet", "save_to_disk", "splits", "repository"])
def test_local_data_set_of_every_form_is_read(tmp_path, form):
    """A file, a directory of save_to_disk with or without splits, a directory like one of the hub."""
    import datasets

    rows = datasets.Dataset.from_list([ROW])
    path = tmp_path / "set"
    if form in {"jsonl", "json"}:
        path = Path(lines_file(tmp_path / f"rows.{form}", ROW))
    elif form in {"csv", "parquet"}:
        path = tmp_path / f"rows.{form}"
        getattr(rows, f"to_{form}")(str(path))
    elif form == "save_to_disk":
        rows.save_to_disk(str(path))
    elif form == "splits":
        datasets.DatasetDict({"train": datasets.Dataset.from_list([{**ROW, "prompt": "other"}]), "test": rows}).save_to_disk(
            str(path)
        )
    else:
        lines_file(path / "test.jsonl", ROW)

    assert load(str(path)) == [ITEM]


def configurations(path: Path, *names: str) -> str:
    """A data set with several configurations, as HumanEvalPack has one per language."""
    listed = "".join(f"- config_name: {name}\n  data_files:\n  - split: test\n    path: {name}.jsonl\n" for name in names)
    for name in names:
        lines_file(path / f"{name}.jsonl", {**ROW, "prompt": name})
    (path / "README.md").write_text(f"---\nconfigs:\n{listed}---\n")
    return str(path)


@pytest.mark.parametrize(("config_name", "chosen"), [(None, "python"), ("js", "js")])
def test_of_several_configurations_python_is_taken(tmp_path, config_name, chosen):
    """Unless another one is named."""
    name = configurations(tmp_path, "js", "python")

    assert [item["prompt"] for item in load(name, config_name=config_name)] == [f"{chosen}\n\nBegin with:\ndef double(n):\n"]


def test_data_set_that_is_a_script_is_taken_from_its_converted_copy(monkeypatch):
    """`datasets` runs no scripts any more; the hub keeps a copy in Parquet."""
    import datasets

    asked: list[Any] = []

    def load_dataset(*args: Any, **kwargs: Any) -> Any:
        asked.append((args, kwargs))
        if "revision" not in kwargs:
            raise RuntimeError("Dataset scripts are no longer supported, but found humanevalpack.py")
        return datasets.Dataset.from_list([ROW])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)

    assert load("bigcode/humanevalpack") == [ITEM]
    assert asked == [
        (("bigcode/humanevalpack", None), {"split": "test"}),
        (("bigcode/humanevalpack", "python"), {"split": "test", "revision": "refs/convert/parquet"}),
    ]


@pytest.mark.parametrize(
    ("row", "settings", "item"),
    [
        ({"prompt": "p", "test_code": "t"}, {}, {"prompt": "p", "test": "t", "entry_point": ""}),
        ({"text": "p", "test_list": ["a", "b"]}, {"prompt_field": "text"}, {"prompt": "p", "test": "a\nb", "entry_point": ""}),
        (
            {**ROW, "instruction": "Double n.", "import": None},
            {"prompt_field": "instruction"},
            {"prompt": "Double n.\n\nBegin with:\ndef double(n):\n", "test": ROW["test"], "entry_point": "double"},
        ),
    ],
    ids=["test_code", "list of tests", "declaration"],
)
def test_columns_of_other_data_sets_are_understood(tmp_path, row, settings, item):
    """Tests under their usual names, as a text or a list; a declaration that the prompt does not show."""
    assert load(lines_file(tmp_path / "rows.jsonl", row), **settings) == [item]


def test_rows_that_cannot_be_used_are_left_out(tmp_path, caplog):
    """No prompt, no tests, or the prompt of another row: the split must not have an item on both sides."""
    rows = [
        {"prompt": "a", "test": "t"},
        {"prompt": "a", "test": "u"},
        {"prompt": "", "test": "t"},
        {"prompt": "b", "test": " "},
    ]
    name = lines_file(tmp_path / "rows.jsonl", *rows)

    with caplog.at_level(logging.WARNING, logger="environments"):
        items = load(name)

    assert items == [{"prompt": "a", "test": "t", "entry_point": ""}]
    assert caplog.messages == [f"3 of 4 rows of {name} have no prompt or no test, or repeat a prompt; left out"]


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        (
            [{"prompt": "p", "answer": "42"}],
            {},
            "dataset_name '{name}' has no tests: none of test, test_code, tests, test_list is among its columns "
            "['answer', 'prompt']. HermesSweEnv computes rewards from tests.",
        ),
        (
            [ROW],
            {"prompt_field": "question"},
            "dataset_name '{name}' has no column 'question' (prompt_field). Its columns: "
            "['declaration', 'entry_point', 'import', 'prompt', 'task_id', 'test', 'test_setup']",
        ),
        (
            [{"prompt": "p", "test": ""}],
            {},
            "dataset_name '{name}' has 1 rows, and none with both prompt and test",
        ),
    ],
)
def test_data_set_that_cannot_be_used_is_an_error(tmp_path, rows, settings, message):
    """It says what is missing and what is there."""
    name = lines_file(tmp_path / "rows.jsonl", *rows)

    with pytest.raises(ValueError, match="dataset_name") as raised:
        load(name, **settings)

    assert str(raised.value) == message.format(name=name)


def test_other_files_and_splits_are_an_error(tmp_path):
    """The message names what could be read instead."""
    import datasets

    (tmp_path / "rows.xlsx").write_text("")
    datasets.DatasetDict({"train": datasets.Dataset.from_list([ROW])}).save_to_disk(str(tmp_path / "set"))

    with pytest.raises(ValueError, match=r"is none of \.json, \.jsonl, \.csv, \.parquet$"):
        load(str(tmp_path / "rows.xlsx"))
    with pytest.raises(ValueError, match=r"its splits are \['train'\]$"):
        load(str(tmp_path / "set"))


@pytest.mark.parametrize(("count", "eval_size", "asked"), [(0, None, 0), (1, None, 0), (5, 5, 5), (5, 9, 9)])
def test_split_needs_both_sides(count, eval_size, asked):
    """An evaluation of nothing, or of everything, is refused."""
    with pytest.raises(ValueError, match="cannot be split") as raised:
        hold_out([{"prompt": str(number)} for number in range(count)], eval_size)

    assert str(raised.value) == (
        f"{count} items cannot be split with {asked} of them held out for evaluation: both sides require at least one. "
        "Set eval_size, or use a larger dataset."
    )
