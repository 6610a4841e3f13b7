"""What token mode cannot work with is a clear error, as early as it can be known."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from transformers import AutoTokenizer

from environments.tokens.chat_template import ChatTemplate, TemplateProblem
from environments.tokens.exact_tokens import TokenModeError
from pytest_hermes_env.inference import build_tokenizer, call, empty_choices, fail, garbage, sampled, say, turn
from tests.environments.captured_metrics import capturing_wandb
from tests.environments.plain_env import PlainEnv

LOGPROBS_ADVICE = (
    " Token mode needs the id and the logprob of every sampled token: from vLLM as token_ids and token_logprobs, or [{id: logprob}] for "
    "each token, from SGLang as meta_info.output_token_logprobs."
)


class Env(PlainEnv):
    """Items are texts; the reward is 1.0."""


def build(make_env: Any, **fields: Any) -> Any:
    async def inside_a_loop() -> Any:
        return make_env(Env, **{"server_type": "vllm", "enabled_toolsets": ["todo"], "group_size": 1, **fields})

    return asyncio.run(inside_a_loop())


# ---------------------------------------------------------------------- at construction


def test_tokenizer_without_a_chat_template(make_env):
    """Nothing could be rendered; said at once."""
    with pytest.raises(ValueError, match="has no chat template") as error:
        build(make_env, template="no_template", tool_call_parser="hermes")

    name = str(error.value).split("'")[1]
    assert str(error.value) == (
        f"The tokenizer {name!r} has no chat template, and token mode renders conversations with it. Set tokenizer_name to the "
        'tokenizer of the instruct model that is served, or use server_type "openai" (chat mode).'
    )


def test_template_that_fails_on_tools(make_env):
    """The template's own words are in the message."""
    with pytest.raises(ValueError, match="fails on the messages") as error:
        build(make_env, template="no_tools", tool_call_parser="hermes")

    name = str(error.value).split("'")[1]
    assert str(error.value) == (
        f"The chat template of the tokenizer {name!r} fails on the messages user: TemplateError: This template knows no tools. "
        "Token mode needs a template for tool calls and tool results. Set tokenizer_name to one that has it, or use "
        'server_type "openai" (chat mode).'
    )


@pytest.mark.parametrize(
    ("family", "written"),
    [
        ("gpt-oss", "<|start|>assistant to=functions.{{ name }}<|channel|>commentary json<|message|>{{ arguments }}<|call|>"),
        (
            "Muse",
            '<atem:function_calls>\n<atem:invoke name="{{ name }}">\n{{ arguments }}</atem:invoke>\n</atem:function_calls>',
        ),
    ],
)
def test_template_whose_calls_no_parser_reads(tmp_path, family, written):
    """They would be final answers."""
    tokenizer = AutoTokenizer.from_pretrained(build_tokenizer(tmp_path))
    call = written.replace("{{ name }}", "{{ call.function.name }}").replace("{{ arguments }}", "{{ call.function.arguments }}")
    tokenizer.chat_template = (
        "{{ tools | tojson }}{% for message in messages %}{{ message.content }}{% for call in message.tool_calls or [] %}"
        f"{call}{{% endfor %}}{{% endfor %}}"
    )

    with pytest.raises(TemplateProblem) as error:
        ChatTemplate(tokenizer).check()

    way = 'tool_call_parser "renderers:gpt-oss", or ' if family == "gpt-oss" else ""
    assert str(error.value) == (
        f"The chat template of the tokenizer {str(tmp_path)!r} writes tool calls as {family} does, which no parser of ours reads: "
        f'every call would be trained as a final answer. Use {way}server_type "openai" (chat mode) and a server that parses them.'
    )


def test_chat_mode_needs_no_chat_template(make_env):
    """The server renders there."""
    env = build(make_env, server_type="openai", template="no_template")

    assert env._use_managed_server() is False


NO_VLLM = (
    "vLLM's ToolParserManager cannot be imported (vllm.tool_parsers: No module named 'vllm'; "
    "vllm.entrypoints.openai.tool_parsers: No module named 'vllm')"
)


def test_parser_of_vllm_where_there_is_none(make_env):
    """What to do is said; a parser of that name is ours, too."""
    with pytest.raises(ValueError, match="vLLM") as error:
        build(make_env, tool_call_parser="vllm:hermes")

    assert str(error.value) == (
        f"tool_call_parser='vllm:hermes' selects vLLM's own parser. {NO_VLLM}. Install vllm, or set tool_call_parser=\"hermes\""
    )


def test_chat_mode_does_not_ask_for_vllm(make_env):
    """The parser is not used there."""
    env = build(make_env, server_type="openai", tool_call_parser="vllm:hermes")

    assert env.server.tool_parser == "vllm:hermes"


# ---------------------------------------------------------------------- in a rollout


def failure_of(make_env: Any, mock_server: Any, step: Any, **fields: Any) -> tuple[str, int]:
    """Run a group whose second turn is ``step``; returns the error's text, and how often wandb heard of it."""
    mock_server.add([turn(call("todo")), step])

    async def scenario() -> tuple[str, int]:
        env = make_env(
            Env, server=mock_server, **{"server_type": "vllm", "enabled_toolsets": ["todo"], "group_size": 1, **fields}
        )
        with pytest.raises(TokenModeError) as error:
            await env.collect_trajectories("x")
        with capturing_wandb(env) as logged:
            await env.wandb_log()
        return str(error.value), logged[0]["train/token_mode_errors"]

    return asyncio.run(scenario())


def server_name(mock_server: Any, server_type: str = "vllm") -> str:
    kind = {"vllm": "ExactVLLMServer", "sglang": "ExactSGLangServer"}[server_type]
    return f"The inference server {mock_server.base_url} ({kind})"


@pytest.mark.parametrize("server_type", ["vllm", "sglang"])
@pytest.mark.parametrize(("logprobs", "count"), [("missing", 0), ("short", 1)])
def test_server_that_gives_too_few_logprobs(make_env, mock_server, server_type, logprobs, count):
    """atroposlib would lose the token, or call its logprob 1.0; here the rollout fails, and is counted."""
    message, counted = failure_of(make_env, mock_server, turn(say("d"), sampled(logprobs=logprobs)), server_type=server_type)

    assert counted == 1
    assert message == (
        f"{server_name(mock_server, server_type)} returned {count} logprobs for 2 sampled tokens; there must be one for each token, and "
        f"at least one token.{LOGPROBS_ADVICE}"
    )


@pytest.mark.parametrize("server_type", ["vllm", "sglang"])
def test_server_that_gives_logprobs_without_numbers(make_env, mock_server, server_type):
    """None is not a logprob."""
    message, _ = failure_of(make_env, mock_server, turn(say("d"), sampled(logprobs="null")), server_type=server_type)

    assert message == (
        f"{server_name(mock_server, server_type)} returned None as the logprob of sampled token 0; expected a number of at most 0."
        f"{LOGPROBS_ADVICE}"
    )


@pytest.mark.parametrize("server_type", ["vllm", "sglang"])
def test_answer_without_a_completion(make_env, mock_server, server_type):
    """An empty list of completions is an answer that says nothing."""
    message, _ = failure_of(make_env, mock_server, empty_choices(), server_type=server_type)

    assert message == f"{server_name(mock_server, server_type)} answered without a completion.{LOGPROBS_ADVICE}"


def test_server_without_generate(make_env, mock_server):
    """A chat server is the usual mistake."""
    message, _ = failure_of(make_env, mock_server, fail(404))

    assert message == (
        f"{server_name(mock_server)} has no /generate for the model 'mock-model' (404 scripted failure). Token mode needs `vllm serve`, "
        "SGLang's server or Atropos' vllm_api_server. Use server_type \"openai\" (chat mode) for one that returns no token ids."
    )


def test_answer_in_another_shape(make_env, mock_server):
    """What cannot be read is reported with the reason."""
    message, _ = failure_of(make_env, mock_server, garbage('{"text": "hi"}'))

    assert message == (
        f"{server_name(mock_server)} answered in a format that cannot be read: KeyError: 'finish_reasons'.{LOGPROBS_ADVICE}"
    )


def test_answer_that_is_no_json_is_shown(make_env, mock_server):
    """A page of a proxy says more than where JSON would begin."""
    message, _ = failure_of(make_env, mock_server, garbage("<html>Sign in</html>"))

    assert "JSONDecodeError: Expecting value: line 1 column 1 (char 0). It begins '<html>Sign in</html>'." in message


# ---------------------------------------------------------------------- at the trainer's limit


def test_group_that_is_too_long_for_the_trainer(make_env, caplog):
    """Lengths, limit and remedy are named; atroposlib drops the group, and every one like it."""

    async def scenario() -> Any:
        env = make_env(Env, server_type="vllm", max_agent_turns=3, max_token_length=50)
        env.max_token_len = 4
        rows = [[1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5]]
        group = {"tokens": rows, "masks": rows, "scores": [0.0, 1.0, 0.5], "group_overrides": {"group_size": 3}}
        await env.handle_send_to_api(group, do_send_to_api=False)
        return env._counts

    counts = asyncio.run(scenario())

    assert counts == {"train/groups_too_long": 1}
    assert (
        "A group is dropped: its sequences of [4, 5] tokens are not shorter than the trainer's max_token_len of 4, and every group "
        "like it will be dropped too. Raise the trainer's max_token_len, or lower max_agent_turns (3), max_token_length per turn "
        "(50) or the sizes of tool results (turn_budget_chars 200000)"
    ) in [record.getMessage() for record in caplog.records]
