"""How prompts continue what was sampled, on a server without HTTP and on templates of many manners."""

# ruff: noqa: RUF001 - some templates write their tokens with characters that look like others
from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from atroposlib.envs.server_handling.managed_server import ManagedServer
from atroposlib.envs.server_handling.server_baseline import APIServer, APIServerConfig
from atroposlib.envs.server_handling.trl_vllm_server import TrlVllmServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall
from transformers import AutoTokenizer

from environments.tokens.chat_template import ChatTemplate, TemplateProblem
from environments.tokens.exact_tokens import TokenModeError
from environments.tokens.sampled_turns import LONG_TEXT
from environments.tokens.token_mode import RolloutServer, TokenMode
from environments.tool_call_parsers import PARSER_REGISTRY, ToolCallParser
from pytest_hermes_env.inference import TEMPLATES, call, say, think, turn
from pytest_hermes_env.inference.sampled_turn import load_sampler
from pytest_hermes_env.play.builder import shared_tokenizer
from tests.environments.plain_env import PlainEnv

TOOLS = [
    {
        "type": "function",
        "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
    }
]
USER = {"role": "user", "content": "look around"}


class Sampler(APIServer):
    """Gives replies one after the other: texts, or ids; keeps the prompts."""

    def __init__(self, tokenizer: Any, replies: Sequence[Any]) -> None:
        super().__init__(APIServerConfig(base_url="http://127.0.0.1:9/v1", model_name="m", health_check=False))
        self.tokenizer = tokenizer
        self.replies = list(replies)
        self.finish_reasons: list[Any] = []
        self.prompts: list[list[int]] = []
        self.requests: list[dict[str, Any]] = []
        self.sampled: list[tuple[int, float]] = []

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> Any:
        prompt = kwargs.pop("input_ids")
        self.prompts.append(prompt)
        self.requests.append(kwargs)
        outputs, logprobs = [], []
        for _ in range(kwargs.get("n", 1)):
            reply = self.replies.pop(0)
            if isinstance(reply, Exception):
                raise reply
            ids = self.tokenizer.encode(reply, add_special_tokens=False) if isinstance(reply, str) else list(reply)
            outputs.append(ids)
            logprobs.append([-0.001 * (place + 1) for place in range(len(ids))])
            self.sampled += zip(ids, logprobs[-1], strict=True)
        return prompt, outputs, logprobs, [self.finish_reasons.pop(0) if self.finish_reasons else "stop" for _ in outputs]

    async def check_server_status_task(self, chat_completion: bool = True) -> None: ...

    async def _chat_completion_wrapper(self, **kwargs: Any) -> Any: ...

    async def _completion_wrapper(self, **kwargs: Any) -> Any: ...


class Rollout:
    """A rollout server on a `Sampler`, spoken to by hand."""

    def __init__(
        self,
        replies: Sequence[Any],
        *,
        template: str = "chatml",
        jinja: str | None = None,
        parser: str | None = None,
        mode: TokenMode | None = None,
        tokenizer: Any = None,
        **settings: Any,
    ) -> None:
        self.tokenizer = tokenizer or AutoTokenizer.from_pretrained(shared_tokenizer(template))
        if jinja is not None:
            self.tokenizer.chat_template = jinja
        self.sampler = Sampler(self.tokenizer, replies)
        self.mode = mode or TokenMode(parser or TEMPLATES[template].family, **settings)
        managed = ManagedServer(
            self.sampler, self.tokenizer, tool_parser=parser, preserve_think_blocks=self.mode.preserve_think_blocks
        )
        self.server: RolloutServer = self.mode.adopt(managed)

    def ask(self, messages: Sequence[dict[str, Any]], **request: Any) -> dict[str, Any]:
        """Ask once and return the message as the agent loop keeps it."""
        answer = asyncio.run(self.server.chat_completion(messages=list(messages), **{"n": 1, **request}))
        return as_kept(answer.choices[0].message)

    def talk(self, messages: list[dict[str, Any]], turns: int, tools: Any = TOOLS) -> list[dict[str, Any]]:
        """Ask ``turns`` times; each call is answered, and a reply without calls by the user."""
        for number in range(turns):
            reply = self.ask(messages, tools=tools)
            messages.append(reply)
            calls = reply.get("tool_calls", ())
            messages += [{"role": "tool", "tool_call_id": one["id"], "content": f"result {number}"} for one in calls]
            if not calls:
                messages.append({"role": "user", "content": f"go on {number}"})
        return messages

    @property
    def nodes(self) -> list[Any]:
        return self.server.get_state()["nodes"]

    @property
    def texts(self) -> list[str]:
        return [node.full_text for node in self.nodes]

    @property
    def spoken(self) -> list[str]:
        """Per node: the text of what trains."""
        return [self.tokenizer.decode([label for label, _ in pairs]) for pairs in self.trained]

    @property
    def trained(self) -> list[list[tuple[int, float]]]:
        """Per node: (label, logprob) of what trains."""
        return [
            [pair for pair in zip(node.masked_tokens, node.logprobs, strict=True) if pair[0] != -100] for node in self.nodes
        ]


def as_kept(message: Any) -> dict[str, Any]:
    kept = {"role": "assistant", "content": message.content or ""}
    if message.tool_calls:
        kept["tool_calls"] = message.tool_calls
    if getattr(message, "reasoning_content", None):
        kept["reasoning_content"] = message.reasoning_content
    return kept


def hermes(*places: str) -> str:
    return "\n".join(f'<tool_call>\n{{"name": "look", "arguments": {{"at": "{place}"}}}}\n</tool_call>' for place in places)


# ---------------------------------------------------------------------- the end of a turn


def test_end_of_a_turn_is_not_doubled_without_tools():
    """atroposlib decodes without special tokens there, and then renders the end of the turn once more."""
    rollout = Rollout(["one<|im_end|>", "two<|im_end|>"])

    rollout.talk([USER], 2, tools=None)

    assert rollout.texts == [
        "<|im_start|>user\nlook around<|im_end|>\n<|im_start|>assistant\none<|im_end|>\n"
        "<|im_start|>user\ngo on 0<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>"
    ]
    assert rollout.tokenizer.decode(rollout.nodes[0].tokens) == rollout.texts[0]
    assert rollout.trained == [rollout.sampler.sampled]


def test_end_that_was_not_sampled_is_put_there_and_does_not_train():
    """A reply that stopped without its token is closed by the template."""
    rollout = Rollout(["one", "two"])

    rollout.talk([USER], 2, tools=None)

    assert "assistant\none<|im_end|>\n<|im_start|>user" in rollout.texts[0]
    assert rollout.trained == [rollout.sampler.sampled]


def test_end_that_the_template_does_not_put_there_stays():
    """What was sampled is kept, even where the template has no end of a turn."""
    jinja = "{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}"
    rollout = Rollout(["one<|im_end|>", "two<|im_end|>"], jinja=jinja)

    rollout.talk([USER], 2, tools=None)

    assert rollout.texts == ["[user] look around [assistant] one<|im_end|> [user] go on 0 [assistant] two<|im_end|>"]
    assert rollout.trained == [rollout.sampler.sampled]


def test_end_that_is_no_special_token_is_not_doubled():
    """A tokenizer may know the template's end of a turn as text only."""
    jinja = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }} ###END\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    rollout = Rollout(["one ###END", "two ###END"], jinja=jinja)

    messages = rollout.talk([USER], 2, tools=None)

    assert rollout.texts == ["user: look around ###END\nassistant: one ###END\nuser: go on 0 ###END\nassistant: two ###END"]
    assert [message["content"] for message in messages if message["role"] == "assistant"] == ["one ", "two "]


def test_end_of_the_whole_conversation_is_no_end_of_a_turn():
    """Some templates close a conversation whose last message is the model's; a turn that goes on has nothing of it."""
    jinja = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}{{ c | tojson }}{% endfor %}"
        "<|im_end|>\n{% endfor %}{{ '<|im_start|>assistant\n' if add_generation_prompt else '<|endoftext|>' }}"
    )
    rollout = Rollout([hermes("a") + "<|im_end|>", "two<|im_end|>"], jinja=jinja)

    rollout.talk([USER], 2)

    assert f"{hermes('a')}<|im_end|>\n<|im_start|>tool\nresult 0<|im_end|>\n<|im_start|>assistant\ntwo" in rollout.texts[0]
    assert rollout.trained == [rollout.sampler.sampled]


# ---------------------------------------------------------------------- templates that look at the calls


ALTERNATING = """\
{%- for m in messages if m.role in ['user', 'assistant'] and not m.tool_calls -%}
  {%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}{{- raise_exception('roles must alternate') -}}{%- endif -%}
{%- endfor -%}
{%- for m in messages -%}
  {%- if m.role == 'user' -%}{{- '[INST]' ~ m.content ~ '[/INST]' -}}
  {%- elif m.role == 'tool' -%}{{- '[TOOL_RESULTS]' ~ m.content ~ '[/TOOL_RESULTS]' -}}
  {%- elif m.tool_calls -%}
    {{- '[TOOL_CALLS][' -}}
    {%- for c in m.tool_calls -%}
      {%- if c.id | length != 9 -%}{{- raise_exception('ids have nine characters') -}}{%- endif -%}
      {{- '{"name": "' ~ c.function.name ~ '", "arguments": ' ~ (c.function.arguments | tojson) ~ '}' -}}
      {%- if not loop.last -%}{{- ', ' -}}{%- endif -%}
    {%- endfor -%}
    {{- ']</s>' -}}
  {%- else -%}{{- m.content ~ '</s>' -}}{%- endif -%}
{%- endfor -%}
"""


def test_template_that_counts_calls_as_no_turn_sees_the_calls():
    """Two rounds of calls are an error in such a template when they are given as text."""
    calls = '[TOOL_CALLS][{"name": "look", "arguments": {"at":"a"}},{"name": "look", "arguments": {"at":"b"}}]</s>'
    rollout = Rollout([calls, calls, "done</s>"], template="mistral", jinja=ALTERNATING)

    rollout.talk([USER], 3)

    results = "[TOOL_RESULTS]result {0}[/TOOL_RESULTS]" * 2
    assert rollout.texts == [f"[INST]look around[/INST]{calls}{results.format(0)}{calls}{results.format(1)}done</s>"]
    assert rollout.trained == [rollout.sampler.sampled]


def test_user_who_goes_on_after_calls_splits_no_rollout_of_such_a_template():
    """The replies between the user's messages are rendered after their calls, in one sequence."""
    calls = '[TOOL_CALLS][{"name": "look", "arguments": {"at": "a"}, "id": "abcdefghi"}]</s>'
    rollout = Rollout([calls, "one</s>", calls, calls, "two</s>", "three</s>"], template="mistral", jinja=ALTERNATING)

    rollout.talk([USER], 6)

    results = [f"[TOOL_RESULTS]result {number}[/TOOL_RESULTS]" for number in range(6)]
    first = f"[INST]look around[/INST]{calls}{results[0]}one</s>[INST]go on 1[/INST]"
    assert rollout.texts == [f"{first}{calls}{results[2]}{calls}{results[3]}two</s>[INST]go on 4[/INST]three</s>"]
    assert rollout.trained == [rollout.sampler.sampled]


def test_template_that_takes_one_call_per_turn_sees_text_of_parallel_calls():
    """What it would refuse as calls it renders as the text that was sampled."""
    jinja = (
        "{% for m in messages %}{% if m.tool_calls and m.tool_calls | length > 1 %}{{ raise_exception('one at a time') }}{% endif %}"
        "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    rollout = Rollout([hermes("a", "b") + "<|im_end|>"] * 2 + ["done"], jinja=jinja)

    rollout.talk([USER], 3)

    assert rollout.trained == [rollout.sampler.sampled]


@pytest.mark.parametrize("template", TEMPLATES)
def test_usual_templates_pass_the_check(template, caplog):
    """Those of the model families show tools and results."""
    ChatTemplate(AutoTokenizer.from_pretrained(shared_tokenizer(template))).check()

    assert caplog.messages == []


@pytest.mark.parametrize("jinja", [ALTERNATING], ids=["alternating"])
def test_template_that_does_not_show_the_tools_is_reported(jinja, caplog):
    """The author may describe them in the system prompt; results must be shown."""
    tokenizer = AutoTokenizer.from_pretrained(shared_tokenizer("mistral"))
    tokenizer.chat_template = jinja

    ChatTemplate(tokenizer).check()

    assert [record.getMessage() for record in caplog.records] == [
        f"The chat template of the tokenizer {tokenizer.name_or_path!r} does not show the tools to the model; describe them in "
        "system_prompt"
    ]


def test_template_that_leaves_out_tool_messages_is_an_error():
    """The model would never see the results of its tools."""
    tokenizer = AutoTokenizer.from_pretrained(shared_tokenizer())
    tokenizer.chat_template = "{{ tools }}{% for m in messages if m.role != 'tool' %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"

    with pytest.raises(TemplateProblem) as error:
        ChatTemplate(tokenizer).check()

    assert str(error.value) == (
        f"The chat template of the tokenizer {tokenizer.name_or_path!r} leaves out tool messages: the model would never see the "
        'results of its tools. Set tokenizer_name to one whose template has tools, or use server_type "openai" (chat mode).'
    )


def test_template_that_fails_in_the_middle_of_a_rollout_fails_the_rollout():
    """Not a server that is down for a moment: the error is kept for the environment."""
    jinja = (
        "{% for m in messages %}{% if m.content == 'result 0' %}{{ raise_exception('no such result') }}{% endif %}"
        "{{ m.role }}: {{ m.content }}<|im_end|>\n{% endfor %}"
    )
    rollout = Rollout([hermes("a"), "done"], jinja=jinja)

    with pytest.raises(TokenModeError, match="TemplateError: no such result") as error:
        rollout.talk([USER], 2)

    assert rollout.server.failure is error.value


def test_options_of_the_template_are_passed_on():
    """As vLLM does: ``chat_template_kwargs`` in extra_body are the template's, the rest is the request's."""
    jinja = "{{ 'thinking ' if enable_thinking else 'brief ' }}{% for m in messages %}{{ m.content }}{% endfor %}"
    rollout = Rollout(["one", "two"], jinja=jinja)

    rollout.ask([USER], extra_body={"chat_template_kwargs": {"enable_thinking": True}, "top_p": 0.5})
    rollout.ask([USER])

    assert [rollout.tokenizer.decode(prompt) for prompt in rollout.sampler.prompts] == [
        "thinking look around",
        "brief look around",
    ]
    assert [request.get("top_p") for request in rollout.sampler.requests] == [0.5, None]


# ---------------------------------------------------------------------- think blocks


OPENS_THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)


def test_block_that_the_prompt_opened_is_reasoning():
    """Such a reply has no opening tag; calls in its thoughts are not made."""
    rollout = Rollout(
        [f"I could {hermes('x')}\n</think>\n\nNo: {hermes('a')}<|im_end|>", "so\n</think>\n\ndone<|im_end|>"],
        jinja=OPENS_THINKING,
    )

    messages = rollout.talk([USER], 2)

    first, last = (message for message in messages if message["role"] == "assistant")
    assert (first["content"].strip(), first["reasoning_content"]) == ("No:", f"I could {hermes('x')}")
    assert [one["function"]["arguments"] for one in first["tool_calls"]] == ['{"at": "a"}']
    assert (last["content"], last["reasoning_content"]) == ("done", "so")
    assert rollout.trained == [rollout.sampler.sampled]


def test_block_that_was_not_closed_is_all_reasoning():
    """The reply was cut off while the model was thinking."""
    rollout = Rollout([f"<think>I could {hermes('x')}"])

    assert rollout.ask([USER], tools=TOOLS) == {
        "role": "assistant",
        "content": "",
        "reasoning_content": f"I could {hermes('x')}",
    }


def test_tags_in_the_middle_of_a_reply_are_text():
    """An argument may hold them."""
    rollout = Rollout([hermes("<think>a</think>")])

    reply = rollout.ask([USER], tools=TOOLS)

    assert reply["tool_calls"][0]["function"]["arguments"] == '{"at": "<think>a</think>"}'
    assert "reasoning_content" not in reply


# ---------------------------------------------------------------------- tool calls


def test_calls_in_the_hermes_format_are_understood_from_every_model():
    """The agent loop would run them, under ids that nobody remembers."""
    rollout = Rollout([hermes("a") + "</s>", "done</s>"], template="mistral")

    messages = rollout.talk([USER], 2)

    assert [one["function"]["name"] for one in messages[1]["tool_calls"]] == ["look"]
    assert rollout.trained == [rollout.sampler.sampled]


def test_parser_may_need_the_token_that_ends_a_text(monkeypatch):
    """Where the last tag of a format is a special token, nothing tells it from the end of a turn."""

    class Tagged(ToolCallParser):
        def parse(self, text: str) -> Any:
            name = text.removeprefix("CALL ").removesuffix("<|im_end|>")
            is_call = text.startswith("CALL ") and text.endswith("<|im_end|>")
            return (
                (None, [ChatCompletionMessageToolCall(id="1", type="function", function={"name": name, "arguments": "{}"})])
                if (is_call)
                else (text, None)
            )

    monkeypatch.setitem(PARSER_REGISTRY, "tagged", Tagged)
    rollout = Rollout(["CALL look<|im_end|>"], parser="tagged")

    assert [one["function"]["name"] for one in rollout.ask([USER], tools=TOOLS)["tool_calls"]] == ["look"]


def test_nothing_is_a_call_where_no_tool_is_offered():
    """Without tools, and with ``tool_choice`` none."""
    rollout = Rollout([hermes("a"), hermes("a")])

    replies = [rollout.ask([USER]), rollout.ask([USER], tools=TOOLS, tool_choice="none")]

    assert replies == [{"role": "assistant", "content": hermes("a")}] * 2


def test_finish_reason_is_that_of_a_chat_server():
    """Calls, an answer, a reply that was cut off."""
    rollout = Rollout([hermes("a"), "done", "don"])
    rollout.sampler.finish_reasons = ["stop", "stop", {"type": "length", "length": 1}]

    reasons = [asyncio.run(rollout.server.chat_completion(messages=[USER], tools=TOOLS, n=1)) for _ in range(3)]

    assert [answer.choices[0].finish_reason for answer in reasons] == ["tool_calls", "stop", "length"]


def test_content_has_no_special_tokens():
    """They are no text; think tags say something, also where the tokenizer calls them special."""
    rollout = Rollout(["one<|im_start|> two</think> three<|im_end|>"])
    rollout.tokenizer.add_special_tokens({"extra_special_tokens": ["<|im_start|>", "</think>"]})

    reply = rollout.ask([USER], tools=TOOLS)

    assert reply == {"role": "assistant", "content": "one two</think> three"}
    assert "</think>" in rollout.tokenizer.all_special_tokens


# ---------------------------------------------------------------------- where a rollout splits


def split(
    replies: Sequence[str], first: list[dict[str, Any]], then: Any, caplog: Any, tools: Any = TOOLS, **settings: Any
) -> tuple[Rollout, str]:
    """Ask twice, the second time for ``then(messages)``; returns the rollout and the warning."""
    rollout = Rollout(replies, **settings)
    messages = rollout.talk(first, 1)
    with caplog.at_level(logging.WARNING, logger="environments.tokens.token_mode"):
        rollout.ask(then(messages), tools=tools)
    (warning,) = [record.getMessage() for record in caplog.records]
    return rollout, warning


def test_changed_message_begins_a_sequence(caplog):
    """What the author changes is shown to the model as it is now."""

    def shortened(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [messages[0], {"role": "assistant", "content": "I looked."}, {"role": "user", "content": "go on"}]

    rollout, warning = split(["I look, and I look.<|im_end|>", "two<|im_end|>"], [USER], shortened, caplog)

    assert rollout.spoken == ["I look, and I look.<|im_end|>", "two<|im_end|>"]
    assert rollout.texts[1].endswith(
        "assistant\nI looked.<|im_end|>\n<|im_start|>user\ngo on<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>"
    )
    place = rollout.texts[1].index("I looked.") + len("I look")
    assert warning == (
        "A rollout became several sequences: message 1 has changed since the model answered. The prompts differ first at "
        f"character {place}: so far 'd<|im_end|>\\n<|im_start|>assistant\\nI look, and I look.<|im_end|>', now "
        "'d<|im_end|>\\n<|im_start|>assistant\\nI looked.<|im_end|>\\n<|im_start|>user\\ngo on<|im'. Only append to a "
        "conversation. The setting split_rollouts decides what happens to such a rollout. (logged once)"
    )


def test_changed_tools_begin_a_sequence(caplog):
    """A sequence that goes on would not show them to the model."""
    rollout, warning = split(["one<|im_end|>", "two<|im_end|>"], [USER], lambda messages: messages, caplog, tools=None)

    assert len(rollout.nodes) == 2
    assert warning.startswith(
        "A rollout became several sequences: the offered tools have changed. The prompts differ first at "
    )
    assert " Offer the same tools in every turn. The setting split_rollouts" in warning


def test_going_back_begins_a_sequence(caplog):
    """A second reply to the same question is one of its own; nothing trains twice."""
    rollout, warning = split(["one<|im_end|>", "two<|im_end|>"], [USER], lambda messages: messages[:1], caplog)

    assert rollout.spoken == ["one<|im_end|>", "two<|im_end|>"]
    assert warning.startswith(
        "A rollout became several sequences: the conversation went back to an earlier turn. The prompts differ"
    )
    assert " Each continuation becomes a separate sequence. The setting split_rollouts" in warning


def test_template_that_hides_where_a_reply_ends_is_named(caplog):
    """It repeats the reply, so that nothing shows what follows it; and it renders it differently from what was sampled."""
    jinja = "{% for m in messages %}{{ m.role }}: {{ m.content | upper }} ({{ m.content }})\n{% endfor %}"

    rollout, warning = split(["one<|im_end|>", "two<|im_end|>"], [USER], lambda messages: messages, caplog, jinja=jinja)

    assert len(rollout.nodes) == 2
    assert warning.startswith(
        f"A rollout became several sequences: the chat template of {rollout.tokenizer.name_or_path!r} does not mark where a reply "
        "ends. The prompts differ first at character"
    )


def test_replies_that_look_alike_are_known_by_their_place():
    """Two replies with the same content and other thoughts, rendered by the template once more."""
    rollout = Rollout(
        ["<think>a</think>ok<|im_end|>", "<think>b</think>ok<|im_end|>", "done<|im_end|>"], history_rendering="template"
    )

    rollout.talk([USER], 3)

    assert rollout.spoken == ["<think>a</think>ok<|im_end|><think>b</think>ok<|im_end|>done<|im_end|>"]


def test_reply_behind_a_changed_message_is_shown_as_it_was_sampled():
    """What the author changed is another message; the sampled text of this one is still known."""
    rollout = Rollout(["<think>a</think>" + hermes("x") + "<|im_end|>", "done<|im_end|>"])
    messages = rollout.talk([USER], 1)

    rollout.ask([{"role": "user", "content": "something else"}, *messages[1:]], tools=TOOLS)

    assert "something else<|im_end|>\n<|im_start|>assistant\n<think>a</think>" + hermes("x") + "<|im_end|>" in rollout.texts[1]


def test_several_replies_to_one_prompt_are_several_sequences():
    """Each trains its own tokens once."""
    rollout = Rollout(["one<|im_end|>", "two<|im_end|>"])

    answer = asyncio.run(rollout.server.chat_completion(messages=[USER], n=2))

    assert [choice.message.content for choice in answer.choices] == ["one", "two"]
    assert rollout.spoken == ["one<|im_end|>", "two<|im_end|>"]


def test_replies_that_the_author_wrote_are_part_of_the_prompt():
    """Examples before the first question do not train."""
    example = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": "x"}'}}],
    }
    rollout = Rollout([hermes("a") + "<|im_end|>", "done<|im_end|>"])

    rollout.talk([USER, example, {"role": "tool", "tool_call_id": "1", "content": "nothing"}, USER], 2)

    assert hermes("x") in rollout.texts[0]
    assert rollout.trained == [rollout.sampler.sampled]


# ---------------------------------------------------------------------- any conversation at all


texts = st.text(st.characters(codec="utf-8", exclude_characters="<>[]|{}｜"), max_size=12)
replies = st.builds(
    lambda thought, text, places, has_end: (
        turn(
            *([think(thought)] if thought else []),
            *([say(text)] if text else []),
            *[call("look", at=place) for place in places],
        )
        if thought or text or places
        else turn(say("nothing")),
        has_end,
    ),
    texts,
    texts,
    st.lists(texts, max_size=3),
    st.booleans(),
)


@pytest.mark.parametrize("template", TEMPLATES)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(replies, min_size=1, max_size=4))
def test_any_conversation_is_one_sequence_of_what_was_sampled(template, conversation):
    """Thoughts, prose and calls with any text in them, with the end of the turn or without."""
    voice = load_sampler(template=template)
    sampled, calls = [], 0
    for reply, has_end in conversation:
        sample = voice.sample(reply, earlier_calls=calls)
        sampled.append(sample.ids if has_end else sample.ids[:-1])
        calls += len(reply.steps)
    rollout = Rollout(sampled, template=template)

    rollout.talk([USER], len(conversation))

    assert rollout.trained == [rollout.sampler.sampled]
    assert rollout.nodes[0].tokens == rollout.sampler.prompts[-1] + list(sampled[-1])


# ---------------------------------------------------------------------- around it


def test_error_of_a_server_is_shown_instead_of_the_retries():
    """tenacity's own error says neither what nor where."""
    rollout = Rollout([ConnectionRefusedError("nobody there")] * 3)
    retrying = APIServer._tokens_and_logprobs_comp.retry_with(wait=lambda _: 0)
    rollout.sampler._tokens_and_logprobs_comp = retrying.__get__(rollout.sampler)

    with pytest.raises(ConnectionRefusedError, match="nobody there"):
        rollout.ask([USER])

    assert rollout.server.failure is None


@pytest.mark.parametrize("logprobs", [[-0.1], [-0.1, 1.0], [-0.1, None], [-0.1, float("nan")], [-0.1, True]])
def test_logprobs_that_are_none_fail_before_they_are_filled_up(logprobs):
    """A server of one's own can give two lists of different lengths, or filler."""

    class Careless(Sampler):
        async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> Any:
            return kwargs["input_ids"], [[5, 6]], [logprobs], ["stop"]

    rollout = Rollout([])
    rollout.server.server = Careless(rollout.tokenizer, [])

    with pytest.raises(TokenModeError):
        rollout.ask([USER])

    assert rollout.nodes == []


def test_trl_gives_no_tokens():
    """Its server has chat completions only, which is what the environment falls back to."""
    server = TrlVllmServer.__new__(TrlVllmServer)
    managed = ManagedServer(server, AutoTokenizer.from_pretrained(shared_tokenizer()))

    with pytest.raises(NotImplementedError, match="trl's vLLM server returns no tokens and logprobs"):
        TokenMode("hermes").adopt(managed)


@pytest.mark.parametrize("template", ["chatml", "qwen3", "mistral"])
def test_text_parts_of_a_message_reach_the_model(template):
    """Many templates render nothing for content that is not a text."""
    parts = [{"type": "text", "text": "look"}, {"type": "text", "text": "around"}]
    rollout = Rollout(["done"], template=template)

    rollout.ask([{"role": "user", "content": parts}])

    assert "look\naround" in rollout.tokenizer.decode(rollout.sampler.prompts[0])


# ---------------------------------------------------------------------- long prompts


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """(whether the event loop's thread encoded it, length) of each text that became a prompt."""
    seen: list[tuple[bool, int]] = []
    real = ManagedServer._compute_input_ids

    def compute(self: Any, input_text: str, extending_node: Any) -> list[int]:
        seen.append((threading.current_thread() is threading.main_thread(), len(input_text)))
        return real(self, input_text, extending_node)

    monkeypatch.setattr(ManagedServer, "_compute_input_ids", compute)
    return seen


def test_long_prompt_is_encoded_beside_the_event_loop(encoded):
    """A short one is not worth a thread; the ids are the same, and the loop runs meanwhile."""
    rollout = Rollout(["one", "two", "three"])
    long = {"role": "user", "content": "word " * (LONG_TEXT // 4)}

    rollout.talk([USER], 1, tools=None)
    rollout.talk([long], 2, tools=None)

    assert [is_main for is_main, _ in encoded] == [True, False, True]  # the third prompt adds little to the second
    assert rollout.sampler.prompts[1] == rollout.tokenizer.encode(rollout.texts[1].partition("two")[0])


def test_prompt_that_no_context_holds_is_an_error(encoded):
    """It would occupy the tokenizer for minutes; the error names the settings."""
    rollout = Rollout(["one"])

    with pytest.raises(TokenModeError, match=r"5,000,0\d\d new characters; at most 4,000,000 are encoded.*turn_budget_chars"):
        rollout.ask([{"role": "user", "content": "x" * 5_000_000}])

    assert encoded == []


def test_a_group_encodes_its_prompt_once(make_env, monkeypatch):
    """All of its rollouts begin with the same text, and have the same ids."""
    encoded: list[str] = []

    async def scenario() -> Any:
        env = make_env(PlainEnv, script=[say("done")], server_type="vllm", enabled_toolsets=["todo"], group_size=4)
        encode = env.tokenizer.encode

        def counting(text: str, *args: Any, **kwargs: Any) -> Any:
            encoded.append(text)
            return encode(text, *args, **kwargs)

        monkeypatch.setattr(env.tokenizer, "encode", counting)
        return (await env.collect_trajectories("x"))[0]

    group = asyncio.run(scenario())

    assert len(encoded) == 1
    assert [tokens == group["tokens"][0] for tokens in group["tokens"]] == [True] * 4


def test_rollouts_with_the_same_beginning_render_it_once_and_others_their_own():
    """The same messages with other tools, or other options of the template, are another prompt."""
    mode = TokenMode("hermes")
    first = Rollout(["one", "two", "three"], template="qwen3", mode=mode)
    second = Rollout(["four"], template="qwen3", mode=mode, tokenizer=first.tokenizer)
    rendered: list[str] = []
    render = ChatTemplate.render

    def counting(self: Any, *args: Any, **kwargs: Any) -> str:
        rendered.append(render(self, *args, **kwargs))
        return rendered[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChatTemplate, "render", counting)
        for rollout, request in (
            (first, {"tools": TOOLS}),
            (second, {"tools": TOOLS}),
            (first, {"tools": None}),
            (first, {"tools": TOOLS, "extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}),
        ):
            rollout.ask([USER], **request)

    decode = first.tokenizer.decode
    with_tools, without, brief = map(decode, first.sampler.prompts)
    assert (decode(second.sampler.prompts[0]), rendered.count(with_tools)) == (with_tools, 1)
    assert len({with_tools, without, brief}) == 3
