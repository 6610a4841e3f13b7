"""Token mode against real servers of atroposlib: what was sampled is what trains."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_hermes_env.inference import call, fail, sampled, say, think, turn
from pytest_hermes_env.inference.templates import TEMPLATES
from tests.environments.plain_env import PlainEnv

SERVERS = ["vllm", "sglang"]

THREE_TURNS = [
    turn(think("hm,\n ä?"), say("I look."), call("todo"), call("todo", merge=True)),
    turn(think("more"), call("todo"), call("todo", todos=[{"id": "1", "content": 'a "b"\n🙂', "status": "pending"}])),
    turn(think("now"), say("It is done.")),
]


class Env(PlainEnv):
    """Items are texts; the reward is 1.0. The only tool is one that the agent loop serves itself."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        self.results = [*getattr(self, "results", []), result]
        return 1.0


def collect(make_env: Any, script: Any, env_class: type = Env, **fields: Any) -> Any:
    """Run one group; returns (environment, group)."""

    async def scenario() -> Any:
        env = make_env(
            env_class, script=script, **{"server_type": "vllm", "enabled_toolsets": ["todo"], "group_size": 1, **fields}
        )
        group, _ = await env.collect_trajectories("x")
        return env, group

    return asyncio.run(scenario())


def given(responses: Sequence[Any]) -> list[tuple[int, float]]:
    """What a mock server sampled, over all its answers: (id, logprob)."""
    pairs: list[tuple[int, float]] = []
    for response in responses:
        if isinstance(response, Mapping) and "logprobs" in response:
            pairs += [(int(token), logprob) for place in response["logprobs"][0] for token, logprob in place[0].items()]
        else:
            pairs += [(entry[1], entry[0]) for entry in response["meta_info"]["output_token_logprobs"]]
    return pairs


def trained(group: Any, row: int = 0) -> list[tuple[int, float]]:
    """What trains in a row of a group: (label, logprob)."""
    return [
        (label, logprob)
        for label, logprob in zip(group["masks"][row], group["inference_logprobs"][row], strict=True)
        if label != -100
    ]


@pytest.mark.parametrize("server_type", SERVERS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_every_sampled_token_trains_with_its_logprob(make_env, mock_server, server_type, template):
    """Three turns, parallel calls and think blocks: one sequence, whose labels are the sampled ids, under every template."""
    mock_server.add(THREE_TURNS)

    _, group = collect(make_env, None, server=mock_server, server_type=server_type, template=template)

    (tokens,), (masks,), (logprobs,) = group["tokens"], group["masks"], group["inference_logprobs"]
    assert trained(group) == given([exchange.response for exchange in mock_server.journal])
    assert [label for label in masks if label != -100] == [
        token for token, label in zip(tokens, masks, strict=True) if label != -100
    ]
    assert {logprob for logprob, label in zip(logprobs, masks, strict=True) if label == -100} == {1.0}
    assert group["scores"] == [1.0]


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_request_begins_with_all_that_came_before(make_env, mock_server, template):
    """The prompt of a turn is the last prompt, the sampled ids and what is new; the sequence is the last prompt and reply."""
    mock_server.add(THREE_TURNS)

    _, group = collect(make_env, None, server=mock_server, template=template)

    prompts = [exchange.request["prompt"]["prompt_token_ids"] for exchange in mock_server.journal]
    sampled_ids = [[token for token, _ in given([exchange.response])] for exchange in mock_server.journal]
    for before, ids, after in zip(prompts, sampled_ids, prompts[1:], strict=False):
        assert after[: len(before) + len(ids)] == before + ids
    assert group["tokens"] == [prompts[-1] + sampled_ids[-1]]


@pytest.mark.parametrize("template", TEMPLATES)
def test_model_is_shown_tools_and_results_as_its_template_has_them(make_env, mock_server, template):
    """The tool is offered, results are there once each, and no token that ends a turn is there twice in a row."""
    mock_server.add(THREE_TURNS)

    env, group = collect(make_env, None, server=mock_server, template=template)

    text = env.tokenizer.decode(group["tokens"][0])
    end = TEMPLATES[template].end
    assert '"name": "todo"' in text
    assert text.count("total") == 4  # each result of `todo` has its summary
    assert end + end not in text.replace("\n", "")


@pytest.mark.parametrize("template", [name for name, one in TEMPLATES.items() if one.begin is not None])
def test_text_begins_once(make_env, template):
    """Template and tokenizer both write the token that begins a text."""
    env, group = collect(make_env, THREE_TURNS, template=template)

    assert env.tokenizer.decode(group["tokens"][0]).count(TEMPLATES[template].begin) == 1


@pytest.mark.parametrize("server_type", SERVERS)
def test_message_is_that_of_a_chat_server(make_env, server_type):
    """Content without special tokens, calls with ids, reasoning apart."""
    env, group = collect(make_env, THREE_TURNS, server_type=server_type)

    replies = [message for message in group["messages"][0] if message["role"] == "assistant"]
    assert [(reply["content"], reply["reasoning_content"]) for reply in replies] == [
        ("I look.", "hm,\n ä?"),
        ("", "more"),
        ("It is done.", "now"),
    ]
    assert [[one["function"] for one in reply.get("tool_calls", [])] for reply in replies] == [
        [{"name": "todo", "arguments": "{}"}, {"name": "todo", "arguments": '{"merge": true}'}],
        [
            {"name": "todo", "arguments": "{}"},
            {"name": "todo", "arguments": '{"todos": [{"id": "1", "content": "a \\"b\\"\\n🙂", "status": "pending"}]}'},
        ],
        [],
    ]
    assert env.results[0].reasoning_per_turn == ["hm,\n ä?", "more", "now"]


@pytest.mark.parametrize(
    "how",
    [
        sampled(end=False),
        sampled(drift=2),
        sampled(broken_utf8=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("template", TEMPLATES)
def test_strange_samples_stay_as_they_are(make_env, mock_server, template, how):
    """No end-of-turn token, ids that their text encodes differently, half a character: all of it trains, in one sequence."""
    mock_server.add([turn(call("todo")), turn(say("I am looking around."), call("todo", merge=True), how), say("It is done.")])

    _, group = collect(make_env, None, server=mock_server, template=template)

    assert trained(group) == given([exchange.response for exchange in mock_server.journal])


def test_reply_that_was_cut_off_is_no_call(make_env, mock_server):
    """At max_tokens the call is not complete, and what was sampled does not train unless the configuration says so."""
    mock_server.add([turn(say("I look."), call("todo", todos=[{"id": "1", "content": "x" * 99}]), sampled(max_tokens=9))])

    env, group = collect(make_env, None, server=mock_server, template="mistral", truncated_turns="train")
    _, masked = collect(make_env, None, server=mock_server, template="mistral")

    assert (env.results[0].turns_used, env.results[0].finished_naturally) == (1, False)
    assert trained(group) == given([mock_server.journal[0].response])
    assert (len(trained(group)), trained(masked)) == (9, [])


def test_silent_model_trains_nothing(make_env, mock_server):
    """When the first request fails, the item is the prompt, all masked, with filler logprobs and reward 0.0."""
    mock_server.add([fail(500)])

    env, group = collect(make_env, None, server=mock_server)

    (prompt,) = {tuple(exchange.request["prompt"]["prompt_token_ids"]) for exchange in mock_server.journal}
    assert not hasattr(env, "results")
    assert (group["tokens"], group["scores"]) == ([list(prompt)], [0.0])
    assert (set(group["masks"][0]), set(group["inference_logprobs"][0])) == ({-100}, {1.0})


def test_replies_before_a_failure_do_not_train(make_env, mock_server):
    """A rollout whose server goes down in the second turn earned no score, and its reward is never computed."""
    mock_server.add([turn(call("todo")), fail(500)])

    env, group = collect(make_env, None, server=mock_server)

    assert not hasattr(env, "results")
    assert (trained(group), group["overrides"]) == (
        [],
        [{"end": "model_failed", "set_advantage_to_zero": True, "left_out": True}],
    )


def test_environment_may_run_the_loop_on_a_rollout_server(make_env):
    """``rollout_server`` is a managed server in token mode, and the server itself in chat mode."""

    async def scenario() -> Any:
        kinds = {}
        for server_type in ("openai", "vllm"):
            env = make_env(Env, script=[say("hi")], server_type=server_type)
            async with env.rollout_server() as server:
                answer = await server.chat_completion(messages=[{"role": "user", "content": "hello"}], n=1)
                kinds[server_type] = (server is env.server, answer.choices[0].message.content)
        return kinds

    assert asyncio.run(scenario()) == {"openai": (True, "hi"), "vllm": (False, "hi")}


def test_managed_server_of_old_environments_reads_tool_calls(make_env):
    """Environments that open a managed server themselves get our parsers too, without vLLM."""

    async def scenario() -> Any:
        env = make_env(Env, script=[turn(call("todo")), say("done")], server_type="vllm", enabled_toolsets=["todo"])
        schemas, _ = env._resolve_tools_for_group()
        async with env.server.managed_server(tokenizer=env.tokenizer) as managed:
            answer = await managed.chat_completion(messages=[{"role": "user", "content": "hello"}], tools=schemas, n=1)
            await managed.chat_completion(
                messages=[
                    {"role": "user", "content": "hello"},
                    {"role": "assistant", "content": "", "tool_calls": answer.choices[0].message.tool_calls},
                    {"role": "tool", "tool_call_id": answer.choices[0].message.tool_calls[0]["id"], "content": "ok"},
                ],
                tools=schemas,
                n=1,
            )
            return answer.choices[0], len(managed.get_state()["nodes"])

    choice, nodes = asyncio.run(scenario())

    assert choice.message.tool_calls[0]["function"] == {"name": "todo", "arguments": "{}"}
    assert (choice.finish_reason, nodes) == ("tool_calls", 1)


def test_managers_of_atroposlib_serve_rollouts_too(make_env):
    """Tests replace ``env.server``; what a plain manager gives understands tool calls all the same."""
    from atroposlib.envs.server_handling.server_manager import ServerManager

    async def scenario() -> Any:
        env = make_env(Env, script=[turn(call("todo")), say("done")], server_type="vllm", enabled_toolsets=["todo"])
        plain = ServerManager.__new__(ServerManager)
        vars(plain).update({name: value for name, value in vars(env.server).items() if name != "_mode"})
        env.server = plain
        group, _ = await env.collect_trajectories("x")
        return group

    group = asyncio.run(scenario())

    assert [message["role"] for message in group["messages"][0]] == ["user", "assistant", "tool", "assistant"]


def test_server_without_managed_servers_falls_back_to_chat_mode(make_env, caplog):
    """NotImplementedError means placeholder tokens, which is said once."""

    class Unmanaged(Env):
        def refuse(self, **_keywords: Any) -> Any:
            raise NotImplementedError("no managed servers here")

    async def scenario() -> Any:
        env = make_env(Unmanaged, script=[say("hi")], server_type="vllm", enabled_toolsets=["todo"])
        env.server.managed_server = env.refuse
        group, _ = await env.collect_trajectories("x")
        return group

    group = asyncio.run(scenario())

    assert group["overrides"] == [{"placeholder_tokens": True, "end": "finished"}] * 2
    assert [record.getMessage() for record in caplog.records if "chat mode" in record.getMessage()] == [
        "Rollouts run in chat mode, whose tokens are placeholders and not for training: no managed servers here (logged once)"
    ]


def test_split_rollout_is_kept_whole(make_env, mock_server, caplog):
    """A template that strips think blocks splits a rollout: every sequence is a row with the rollout's id and reward."""
    mock_server.add(THREE_TURNS)

    _, group = collect(make_env, None, server=mock_server, template="deepseek", history_rendering="template")

    everything = [pair for row in range(2) for pair in trained(group, row)]
    ids = {override["rollout_id"] for override in group["overrides"]}
    assert everything == given([exchange.response for exchange in mock_server.journal])
    assert len(ids) == 1
    assert group["overrides"] == [
        {"rollout_id": next(iter(ids)), "sequence": row, "sequences": 2, "end": "finished"} for row in range(2)
    ]
    assert (group["scores"], group["group_overrides"]) == ([1.0] * 2, {"group_size": 2, "temperature": 1.0})
