"""What is sent to the trainer: a label in every row, one row for each rollout, the sampling parameters."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from environments.trainer.groups import add_sampling, groups_to_send, one_row_each, sampling_params
from environments.trainer.scoring import group_of
from pytest_hermes_env.inference import say
from tests.environments.plain_env import PlainEnv

ZERO = {"set_advantage_to_zero": True}


def row(labels: list[int], score: float, **more: Any) -> dict[str, Any]:
    """A row of a prompt of two tokens and these labels; -100 is not trained."""
    tokens = [1, 2, *(label if label != -100 else 9 for label in labels)]
    logprobs = [1.0, 1.0, *(-label / 10 if label != -100 else 1.0 for label in labels)]
    return {"tokens": tokens, "masks": [-100, -100, *labels], "inference_logprobs": logprobs, "scores": score, **more}


def test_row_without_a_label_is_sent_as_a_stand_in():
    """It is the shortest start of another row with a label, with the row's own score and an advantage of zero."""
    group = group_of([row([-100, 5, 6], 0.0), row([7, 8], 1.0), row([-100] * 9, 0.5, overrides=ZERO)])

    (sent,) = groups_to_send(group, 3, split_rollouts="sample")

    assert sent["tokens"] == [[1, 2, 9, 5, 6], [1, 2, 7, 8], [1, 2, 7]]
    assert sent["masks"] == [[-100, -100, -100, 5, 6], [-100, -100, 7, 8], [-100, -100, 7]]
    assert sent["inference_logprobs"] == [[1.0, 1.0, 1.0, -0.5, -0.6], [1.0, 1.0, -0.7, -0.8], [1.0, 1.0, -0.7]]
    assert sent["scores"] == [0.0, 1.0, 0.5]
    assert sent["overrides"] == [{}, {}, {**ZERO, "stand_in": True}]
    assert group["masks"][2] == [-100] * 11


def test_stand_in_in_a_group_without_overrides():
    """Groups of other environments get the column; all columns of tokens have one length."""
    group = {
        "tokens": [[1, 2, 3], [1, 2]],
        "masks": [[-100, 2, 3], [-100, -100]],
        "scores": [1.0, 0.0],
        "advantages": [[1.0, 1.0, 1.0], [0.5, 0.5]],
        "messages": [["a"], ["b"]],
        "ref_logprobs": [],
    }

    (sent,) = groups_to_send(group, 2, split_rollouts="sample")

    assert sent == {
        **group,
        "tokens": [[1, 2, 3], [1, 2]],
        "masks": [[-100, 2, 3], [-100, 2]],
        "advantages": [[1.0, 1.0, 1.0], [0.0, 0.0]],
        "overrides": [{}, {**ZERO, "stand_in": True}],
    }


def test_first_label_is_not_one():
    """A trainer predicts each token from the one before, so a row with only its first label has none."""
    group = {"tokens": [[1, 2], [1, 2]], "masks": [[1, -100], [1, 2]], "scores": [0.0, 1.0]}

    (sent,) = groups_to_send(group, 2, split_rollouts="sample")

    assert sent["overrides"] == [{**ZERO, "stand_in": True}, {}]
    assert sent["masks"] == [[1, 2], [1, 2]]


def test_group_with_labels_is_sent_as_it_is():
    """The same object: nothing is copied or lost."""
    group = group_of([row([5], 0.0), row([6], 1.0)])

    assert groups_to_send(group, 2, split_rollouts="sample")[0] is group


@pytest.mark.parametrize("split_rollouts", ["sample", "keep"])
def test_every_sent_row_has_a_label(split_rollouts):
    """Also the fillers of layers."""
    split = [row([label], 1.0, overrides={"rollout_id": "r", "sequence": n}) for n, label in enumerate((5, 6, 7))]
    group = group_of([{**split[0], "more_rows": split[1:]}, row([8], 0.0)])

    sent = groups_to_send(group, 2, split_rollouts=split_rollouts)

    assert len(sent) == (3 if split_rollouts == "keep" else 1)
    assert all(any(label != -100 for label in masks) for part in sent for masks in part["masks"])
    trained = [
        override.get("rollout_id", "other")
        for part in sent
        for override in part["overrides"]
        if not override.get("set_advantage_to_zero")
    ]
    assert Counter(trained) == ({"r": 3, "other": 1} if split_rollouts == "keep" else {"r": 1, "other": 1})


def test_each_sequence_is_drawn_equally_often():
    """One sequence stands for its rollout without preferring the first or the longest."""
    drawn: Counter[int] = Counter()
    for number in range(900):
        rows = [row([label] * label, 1.0, overrides={"rollout_id": f"r{number}"}) for label in (1, 2, 3)]
        drawn[one_row_each(group_of([{**rows[0], "more_rows": rows[1:]}]), 1)["masks"][0][-1]] += 1

    assert {label: round(count / 100) for label, count in drawn.items()} == {1: 3, 2: 3, 3: 3}


# ---------------------------------------------------------------------- sampling parameters


@pytest.mark.parametrize(
    ("extra_body", "params"),
    [
        (None, {"temperature": 0.7}),
        ({"top_p": 0.9, "provider": {"order": ["a"]}}, {"temperature": 0.7, "top_p": 0.9}),
        ({"top_k": 5, "min_p": None, "temperature": 0.2}, {"temperature": 0.2, "top_k": 5}),
    ],
)
def test_sampling_parameters_of_a_rollout(extra_body, params):
    """Those of the request that change the distribution; an extra body has the last word."""
    assert sampling_params(0.7, extra_body) == params


def test_rollouts_that_differ_in_temperature_say_so_in_each_row():
    """The trainer reads a row's overrides before the group's parameters."""
    items = [{**row([5], 0.0), "generation_params": {"temperature": t}} for t in (0.7, 1.0)]

    group = group_of(items)

    assert group["overrides"] == [{"temperature": 0.7}, {"temperature": 1.0}]
    assert ("generation_params" in group, group["group_overrides"]) == (False, {})


def test_stand_in_has_the_temperature_of_its_tokens():
    """Otherwise the ratio of its label would not be 1."""
    items = [
        {**row([5], 0.0), "generation_params": {"temperature": 0.7}},
        {**row([-100], 1.0), "generation_params": {"temperature": 1.0}},
    ]

    (sent,) = groups_to_send(group_of(items), 2, split_rollouts="sample")

    assert [override["temperature"] for override in sent["overrides"]] == [0.7, 0.7]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, {"generation_params": {"temperature": 0.7}, "group_overrides": {"temperature": 0.7}}),
        (
            {"group_overrides": {"group_size": 2}},
            {"generation_params": {"temperature": 0.7}, "group_overrides": {"temperature": 0.7, "group_size": 2}},
        ),
        ({"group_overrides": {"temperature": 1.0}}, {"group_overrides": {"temperature": 1.0}}),
        ({"generation_params": {"temperature": 0.2}}, {"generation_params": {"temperature": 0.2}, "group_overrides": {}}),
        (
            {"group_overrides": None, "generation_params": {"top_p": 0.2}},
            {"generation_params": {"top_p": 0.2}, "group_overrides": {}},
        ),
    ],
)
def test_group_of_an_environment_learns_its_temperature(given, told):
    """Unless it names one."""
    group = dict(given)

    add_sampling(group, {"temperature": 0.7})

    assert group == told


class Env(PlainEnv):
    """Every rollout has another reward."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        self.scored = getattr(self, "scored", 0) + 1
        return float(self.scored)


@pytest.mark.parametrize("server_type", ["vllm", "sglang"])
def test_temperature_and_top_p_reach_server_and_trainer(make_env, mock_server, server_type):
    """The same ones; Atropos' trainer computes logprobs again with them."""
    mock_server.add([say("done")])
    sent: list[Any] = []

    async def scenario() -> None:
        env = make_env(
            Env,
            server=mock_server,
            server_type=server_type,
            enabled_toolsets=["todo"],
            group_size=2,
            agent_temperature=0.9,
            extra_body={"top_p": 0.8, "temperature": 0.7},
        )
        env.max_token_len = 4096

        async def send(data: Any) -> None:
            sent.append(data)

        env._send_scored_data_to_api = send
        group, _ = await env.collect_trajectories("x")
        await env.handle_send_to_api(group)

    asyncio.run(scenario())

    request = mock_server.journal[0].request
    sampling = request["sampling_params"] if server_type == "sglang" else request
    assert (sampling["temperature"], sampling["top_p"]) == (0.7, 0.8)
    assert sent[0]["generation_params"] == sent[0]["group_overrides"] == {"temperature": 0.7, "top_p": 0.8}
