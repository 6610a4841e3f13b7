"""Two items are one task when they differ in their labels alone."""

from __future__ import annotations

import pytest

from pytest_hermes_env.contract.rules.he203_eval_is_held_out import is_same_task


@pytest.mark.parametrize(
    "label", ["id", "ID", "uid", "uuid", "task_id", "taskid", "qid", "index", "row_idx", "seed", "split", "slug"]
)
def test_a_label_is_no_difference(label):
    assert is_same_task({"text": "a", label: 1}, {"text": "a", label: 2})


@pytest.mark.parametrize("field", ["answer", "grid", "valid", "world", "name", "number", "key", "sha256", "note"])
def test_every_other_field_is_one(field):
    assert not is_same_task({"text": "a", field: 1}, {"text": "a", field: 2})


def test_fields_that_only_one_of_them_has_tell_nothing():
    assert is_same_task({"text": "a", "made_for": "evaluation"}, {"text": "a"})


@pytest.mark.parametrize(
    ("one", "other", "answer"), [(3, 3, True), (3, 4, False), ({"id": 1}, {"id": 2}, False), ({}, {"a": 1}, False)]
)
def test_items_without_other_fields_are_compared_whole(one, other, answer):
    assert is_same_task(one, other) is answer
