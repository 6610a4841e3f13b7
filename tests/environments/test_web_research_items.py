"""The questions of WebResearchEnv: data sets, samples, and the split."""

from __future__ import annotations

import http.server
import json
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments.rollout import data_rows
from environments.web_research_env.items import hold_out, load_questions, sample_questions

ROW = {"Prompt": "Which river flows through Vienna?", "Answer": "The Danube", "reasoning_types": "x"}
QUESTION = {"question": ROW["Prompt"], "answer": ROW["Answer"]}


def load(name: str | None, **settings: Any) -> list[Any]:
    return load_questions(name, **({"split": "test", "prompt_field": "Prompt", "answer_field": "Answer"} | settings))


def lines_file(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache of its own, so that no data set of this machine is taken for the hub's; offline."""
    import datasets
    from huggingface_hub import constants

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "cache"


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `datasets` was asked to load; it has one row."""
    import datasets

    asked: list[Any] = []

    def load_dataset(*args: Any, **kwargs: Any) -> Any:
        asked.append((args, kwargs))
        return datasets.Dataset.from_list([ROW])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return asked


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``online(endpoint)``: the hub is there, and nothing says offline."""
    from huggingface_hub import constants

    def use(endpoint: str) -> None:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)

    return use


@pytest.fixture
def nobody() -> str:
    """An address of this machine at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_hub_out_of_reach_gives_the_samples_and_a_warning(caplog):
    """So that everything can be tried without a network."""
    with caplog.at_level(logging.WARNING):
        questions = load("google/frames-benchmark")

    assert questions == list(sample_questions())
    assert [record.getMessage() for record in caplog.records] == [
        "dataset_name 'google/frames-benchmark' cannot be reached (Couldn't reach 'google/frames-benchmark' on the Hub "
        "(OfflineModeIsEnabled)): using the 24 samples that come with the environment. Set dataset_name to null to choose "
        "them, or to a local path."
    ]


def test_hub_that_does_not_answer_is_asked_once(online, nobody, loading):
    """`datasets` would try for 25 seconds."""
    online(nobody)

    with pytest.raises(ConnectionError, match=f"{nobody} does not answer"):
        data_rows.load_rows("google/frames-benchmark", "test")

    assert loading == []


def test_data_set_that_was_fetched_before_needs_no_hub(online, nobody, loading, cache):
    """`datasets` finds it in its cache."""
    online(nobody)
    (cache / "google___frames-benchmark").mkdir(parents=True)

    assert load("google/frames-benchmark") == [QUESTION]
    assert loading == [(("google/frames-benchmark", None), {"split": "test"})]


@pytest.fixture
def refusing() -> Iterator[str]:
    """A server that answers everything with an error."""

    class Refusing(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_hub_that_answers_with_an_error_is_left_to_datasets(online, loading, refusing):
    """It is in reach; what is wrong with the name, `datasets` knows better."""
    online(refusing)

    assert load("google/frames-benchmark") == [QUESTION]


def test_rows_become_questions(tmp_path, caplog):
    """Once each; rows without question or answer are left out, and counted."""
    rows = [ROW, ROW, {**ROW, "Prompt": " "}, {"Prompt": "How many?", "Answer": 20}, {**ROW, "Prompt": "q", "Answer": None}]
    texts = [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]
    path = lines_file(tmp_path / "rows.jsonl", *texts)

    with caplog.at_level(logging.WARNING, logger="environments"):
        questions = load(path)

    assert questions == [QUESTION, {"question": "How many?", "answer": "20"}]
    assert [record.getMessage() for record in caplog.records] == [
        f"3 of 5 rows of {path} have no question or no answer, or repeat a question; left out"
    ]


@pytest.mark.parametrize(
    ("settings", "what"),
    [({"prompt_field": "question"}, "'question' (prompt_field)"), ({"answer_field": "answer"}, "'answer' (answer_field)")],
)
def test_missing_column_is_an_error(tmp_path, settings, what):
    """The message names the setting and the columns."""
    path = lines_file(tmp_path / "rows.jsonl", ROW)

    with pytest.raises(ValueError, match="dataset_name") as raised:
        load(path, **settings)

    assert str(raised.value) == (
        f"dataset_name {path!r} has no column {what}. Its columns: ['Answer', 'Prompt', 'reasoning_types']"
    )


def test_data_set_without_questions_is_an_error(tmp_path):
    """Rather than an environment without items."""
    path = lines_file(tmp_path / "rows.jsonl", {**ROW, "Answer": ""})

    with pytest.raises(ValueError, match="dataset_name") as raised:
        load(path)

    assert str(raised.value) == f"dataset_name {path!r} has 1 rows, and none with both question and answer"


def test_samples_are_questions_that_differ():
    """None twice, none empty."""
    assert load(None) == list(sample_questions())
    assert len({sample["question"] for sample in sample_questions()}) == len(sample_questions()) == 24
    assert all(sample["question"].endswith("?") and sample["answer"] for sample in sample_questions())


def numbered(count: int) -> list[Any]:
    return [{"question": str(number), "answer": "x"} for number in range(count)]


@pytest.mark.parametrize(
    ("count", "size", "ratio", "held_out"),
    [(824, 20, 0.1, 82), (100, 20, 0.1, 20), (24, 20, 0.1, 12), (3, 20, 0.1, 1), (2, 1, 0.0, 1), (10, 1, 0.99, 5), (40, 3, 0.0, 3)],
)  # fmt: skip
def test_split_is_disjoint_complete_and_the_same_each_time(count, size, ratio, held_out):
    """eval_size or the share, whichever is more, and never over half."""
    questions = numbered(count)

    train, evaluation = hold_out(questions, eval_size=size, eval_split_ratio=ratio)

    assert len(evaluation) == held_out
    assert sorted(train + evaluation, key=lambda item: int(item["question"])) == questions == numbered(count)
    assert hold_out(questions, eval_size=size, eval_split_ratio=ratio) == (train, evaluation)


def test_split_is_shuffled():
    """Data sets are often sorted by difficulty."""
    _, evaluation = hold_out(numbered(100), eval_size=10, eval_split_ratio=0.0)

    assert [item["question"] for item in evaluation] not in [[str(n) for n in range(10)], [str(n) for n in range(90, 100)]]


@pytest.mark.parametrize("count", [0, 1])
def test_split_needs_two_questions(count):
    """One to train on, one to ask."""
    with pytest.raises(ValueError, match="cannot be split") as raised:
        hold_out(numbered(count), eval_size=1, eval_split_ratio=0.1)

    assert str(raised.value) == f"{count} questions cannot be split into training and evaluation: each requires at least one"
