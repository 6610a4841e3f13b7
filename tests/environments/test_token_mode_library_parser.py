"""Replies read by other libraries: `renderers`, and the response template of a tokenizer."""
# ruff: noqa: RUF001 - DeepSeek's tokens are written with these characters

from __future__ import annotations

import json
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from transformers import AutoTokenizer

from environments.tokens.chat_template import ChatTemplate
from environments.tokens.library_parsers import LibraryProblem, library_parser
from environments.tokens.model_reply import ModelReply, ReplyReader, check_parser
from environments.tokens.token_mode import TokenMode
from environments.tool_call_parsers import get_parser
from pytest_hermes_env.inference.tokens import build_tokenizer
from tests.environments.test_token_mode_prompts import Rollout

DATA = Path(__file__).parents[1] / "data" / "vllm_parsers"
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"properties": {"at": {"type": "string"}}}}}]
CHATML = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
DEEPSEEK = [
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>",
]  # fmt: skip
KIMI = [
    "<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>", "<|im_end|>", "[BOS]", "[EOS]",
    "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>",
    "<|tool_call_argument_begin|>",
]  # fmt: skip
HARMONY = [
    "<|start|>", "<|end|>", "<|return|>", "<|call|>", "<|channel|>", "<|message|>", "<|constrain|>",
]  # fmt: skip
MARKS = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
HARMONY_TEMPLATE = (
    "{{ tools | tojson }}{% for m in messages %}"
    "{% if m.role == 'tool' %}<|start|>functions.look to=assistant<|channel|>commentary<|message|>{{ m.content }}<|end|>"
    "{% elif m.role == 'assistant' %}"
    "{% if '<|channel|>' in (m.content or '') %}{{ raise_exception('channel tags in the content') }}{% endif %}"
    "{% for c in m.tool_calls or [] %}<|start|>assistant to=functions.{{ c.function.name }}<|channel|>commentary json<|message|>"
    "{{ c.function.arguments | tojson }}<|call|>{% else %}<|start|>assistant<|channel|>final<|message|>{{ m.content }}"
    "{{ '<|return|>' if loop.last else '<|end|>' }}{% endfor %}"
    "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
CALL = '<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"at": "it"}<|call|>'


@pytest.fixture
def tokenizer_with(tmp_path):
    """Returns a small tokenizer with special tokens and others."""

    def make(special: list[str], marks: list[str] = ()) -> Any:
        tokenizer = AutoTokenizer.from_pretrained(build_tokenizer(tmp_path / "tokenizer"))
        tokenizer.add_special_tokens({"additional_special_tokens": list(special)})
        tokenizer.add_tokens(list(marks))
        return tokenizer

    return make


@pytest.fixture
def gpt_oss(monkeypatch, tokenizer_with) -> ReplyReader:
    """A reader of gpt-oss; only the download of its vocabulary is replaced, which reading replies does not use."""
    import renderers.gpt_oss

    monkeypatch.setattr(renderers.gpt_oss, "load_harmony_encoding", lambda _: None)
    return ReplyReader(ChatTemplate(tokenizer_with(HARMONY)), "renderers:gpt-oss")


def read(reader: ReplyReader, text: str, tools: Any = TOOLS, prompt: str = "<|start|>assistant") -> ModelReply:
    """Read a text by its tokens."""
    encode = reader._template.tokenizer.encode
    return reader.read(text, end="", tools=tools, prompt_tokens=encode(prompt), tokens=encode(text))


def parts(reply: ModelReply) -> tuple[str, list[tuple[str, Any]], str | None]:
    """The reply without ids."""
    calls = [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in reply.calls]
    return reply.content, calls, reply.reasoning


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"<|channel|>analysis<|message|>I look.<|end|><|start|>assistant{CALL}", ("", [("look", {"at": "it"})], "I look.")),
        ("<|channel|>final<|message|>Done.<|return|>", ("Done.", [], None)),
    ],
    ids=["call", "answer"],
)
def test_gpt_oss(gpt_oss, text, expected):
    """Its channels become reasoning, calls and content, although our parsers do not read them."""
    assert parts(read(gpt_oss, text)) == expected


def test_call_is_text_where_no_tool_is_offered(gpt_oss):
    """As with our parsers, nothing of it is lost."""
    content, calls, _ = parts(read(gpt_oss, CALL, tools=None))

    assert (calls, '{"at": "it"}' in content) == ([], True)


@pytest.mark.parametrize(
    ("ours", "renderer", "special", "marks"),
    [
        ("hermes", "qwen3", CHATML, MARKS),
        ("kimi_k2", "kimi-k2", KIMI, MARKS),
        ("deepseek_v3", "deepseek-v3", DEEPSEEK, MARKS),
    ],
)
def test_our_parsers_agree_with_renderers(tokenizer_with, ours, renderer, special, marks):
    """Whole calls, of any arguments, have the same names and values."""
    tokenizer = tokenizer_with(special, marks)
    parse = library_parser(f"renderers:{renderer}", tokenizer)
    head, *cases = [json.loads(line) for line in (DATA / f"{ours}.jsonl").read_bytes().splitlines()]
    tools = run_path(str(DATA / "formats.py"))["TOOLS"]
    texts = [case["text"] for case in cases if case["kind"] == "whole"]

    theirs = [parse([], tokenizer.encode(text, add_special_tokens=False), tools)[1] for text in texts]
    own = [get_parser(ours).parse(text, tools)[1] or [] for text in texts]

    assert len(texts) > 20, head
    assert [[_value(call) for call in calls] for calls in theirs] == [[_value(call) for call in calls] for calls in own]


def _value(call: Any) -> tuple[str, Any]:
    return call.function.name, json.loads(call.function.arguments)


def test_malformed_call_is_text(tokenizer_with):
    """Its well-formed neighbour is a call."""
    reader = ReplyReader(ChatTemplate(tokenizer_with(CHATML, MARKS)), "renderers:qwen3")
    good = '<tool_call>\n{"name": "look", "arguments": {"at": "it"}}\n</tool_call>'

    content, calls, _ = parts(read(reader, f"<tool_call>\n{{no\n</tool_call>\n{good}", prompt=""))

    assert (calls, "{no" in content) == ([("look", {"at": "it"})], True)


def test_failing_library_leaves_the_text(gpt_oss, caplog):
    """And the log says so."""

    def fail(*_: Any) -> None:
        raise RuntimeError("no")

    gpt_oss._library = fail

    assert parts(read(gpt_oss, "just text")) == ("just text", [], None)
    assert [one.getMessage() for one in caplog.records] == [
        "The parser 'renderers:gpt-oss' failed; the reply is taken as text: 'just text'"
    ]


def test_response_template_of_the_tokenizer(tokenizer_with):
    """It is found in the tokenizer, and sees the prompt."""
    tokenizer = tokenizer_with(CHATML, MARKS)
    tokenizer.response_template = {
        "start_anchor": "<|im_start|>assistant\n",
        "defaults": {"role": "assistant"},
        "fields": {
            "thinking": {"open": "<think>", "close": "</think>"},
            "tool_calls": {
                "open": "<tool_call>",
                "close": "</tool_call>",
                "content": "json",
                "repeats": True,
                "transform": {"type": "function", "function": "{content}"},
            },
            "content": {"close": "<|im_end|>"},
        },
    }
    reader = ReplyReader(ChatTemplate(tokenizer), "transformers")
    text = 'hm</think>I look.<tool_call>{"name": "look", "arguments": {"at": "it"}}</tool_call><|im_end|>'

    assert parts(read(reader, text, prompt="<|im_start|>assistant\n<think>")) == ("I look.", [("look", {"at": "it"})], "hm")


def test_missing_extra(monkeypatch):
    """One line has the command that installs it."""
    monkeypatch.setitem(sys.modules, "renderers", None)

    with pytest.raises(LibraryProblem) as error:
        check_parser("renderers:qwen3", "tokenizer")

    assert str(error.value) == (
        'tool_call_parser="renderers:qwen3" needs the package renderers, which cannot be imported (import of renderers halted; None in '
        "sys.modules). pip install 'pytest-hermes-env[renderers]'"
    )


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("renderers:nope", "cannot make it for this tokenizer: No renderer config registered for name='nope'"),
        ("renderers:default", "does not know this model, and its default reads no calls"),
        ("transformers", "needs a tokenizer with a response_template; .* brings none"),
    ],
)
def test_unusable_parser_is_an_error_at_start(tokenizer_with, name, match):
    """Otherwise every call would be trained as a final answer."""
    with pytest.raises(LibraryProblem, match=match):
        check_parser(name, tokenizer_with(CHATML, MARKS))


def test_gpt_oss_stays_one_sequence(gpt_oss):
    """Two turns through a rollout server, with a template that writes turns as gpt-oss' does: what was sampled is what trains."""
    tokenizer = gpt_oss._template.tokenizer
    tokenizer.chat_template = HARMONY_TEMPLATE
    look = f"<|channel|>analysis<|message|>I look.<|end|><|start|>assistant{CALL}"
    rollout = Rollout(
        [look, "<|channel|>final<|message|>Done.<|return|>"], mode=TokenMode("renderers:gpt-oss"), tokenizer=tokenizer
    )

    ChatTemplate(tokenizer).check(reads_tokens=True)
    messages = rollout.talk([{"role": "user", "content": "look around"}], 2)

    assert [one["content"] for one in messages if one["role"] == "assistant"] == ["", "Done."]
    assert [one["reasoning_content"] for one in messages if "reasoning_content" in one] == ["I look."]
    assert rollout.trained == [rollout.sampler.sampled]
