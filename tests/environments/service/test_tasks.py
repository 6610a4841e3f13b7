"""`GET /tasks`: the items of an environment with their prompts."""

from __future__ import annotations

from typing import Any

import pytest

from environments.service.waiting_line import Refused

pytestmark = pytest.mark.hermes_allow_leftovers


def test_training_tasks_are_distinct_and_stay_the_same(served):
    async def test(here: Any, _server: Any) -> Any:
        first = (await here.client.get("/tasks", params={"split": "train", "n": 2})).json()
        more = (await here.client.get("/tasks", params={"split": "train", "n": 50})).json()
        again = (await here.client.get("/tasks", params={"split": "train", "n": 2})).json()
        return first, more, again

    first, more, again = served(test, config={"system_prompt": "You write files."})

    assert first == {
        "environment": "Env",
        "split": "train",
        "tasks": [
            {"item": {"n": 1}, "prompt": "write file 1", "system_prompt": "You write files."},
            {"item": {"n": 2}, "prompt": "write file 2", "system_prompt": "You write files."},
        ],
    }
    assert again == first
    assert [task["item"]["n"] for task in more["tasks"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"split": "train"}, 422),
        ({"split": "test", "n": 1}, 422),
        ({"n": 0}, 422),
        ({"n": "-1"}, 422),
        ({"n": "x"}, 422),
        ({"n": 10**9}, 422),
    ],
)
def test_a_wrong_query_is_refused(served, query, status, error_of):
    async def test(here: Any, _server: Any) -> Any:
        return error_of(await here.client.get("/tasks", params=query))

    assert served(test) == (status, "bad_request")


class NoEval:
    held_out = ()


def test_a_split_without_items_is_an_error_and_no_empty_list(served, error_of):
    async def test(here: Any, _server: Any) -> Any:
        return error_of(await here.client.get("/tasks", params={"split": "eval"}))

    assert served(test, NoEval) == (404, "no_items")


class NoItemsAtAll(NoEval):
    train = ()


def test_an_environment_without_items_is_not_served(served):
    async def test(here: Any, _server: Any) -> None: ...

    with pytest.raises(Refused, match="NoItemsAtAll has no items"):
        served(test, NoItemsAtAll)


@pytest.mark.parametrize(
    "more",
    [{"at": ("a", "b")}, {"raw": [b"x"]}, {"score": float("nan")}, {2: "two"}, {"text": "\ud800"}, {"set": {1}}, {"j": 2j}],
)
def test_an_item_that_json_would_change_is_refused(served, more, error_of):
    cls = type("Odd", (), {"train": ({"n": 1, **more},)})

    async def test(here: Any, _server: Any) -> Any:
        return error_of(await here.client.get("/tasks", params={"split": "train", "n": 1}))

    assert served(test, cls) == (422, "bad_item")
