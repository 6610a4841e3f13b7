"""The conversation in the text of a prompt."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from pytest_hermes_env.inference import TEMPLATES, build_tokenizer
from pytest_hermes_env.inference.token_mode import read_transcript, without_thoughts

TOOL = {
    "type": "function",
    "function": {"name": "ls", "description": "List <files>.", "parameters": {"type": "object", "properties": {"path": {}}}},
}
BARE = {"type": "function", "function": {"name": "pwd"}}
TOOLS = {"ls": {"type": "object", "properties": {"path": {}}}, "pwd": {}}
SYSTEM = {"role": "system", "content": "Be brief.\n\n{Really}."}
USER = {"role": "user", "content": 'Look at {"name": "x", "parameters": {}}.\nNow.'}
RESULTS = [{"role": "tool", "tool_call_id": "call00000", "name": "ls", "content": text} for text in ('{"a": 1}\n\nb', "")]


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tokenizers of all templates."""
    directory = tmp_path_factory.mktemp("tokenizers")
    return {name: AutoTokenizer.from_pretrained(build_tokenizer(directory / name, template=name)) for name in TEMPLATES}


def read(tokenizer: Any, name: str, messages: list[dict[str, Any]], *, tools: Any = None, prompt: bool = True) -> Any:
    """Return what is read out of the rendered messages."""
    text = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=prompt)
    return read_transcript(text, TEMPLATES[name])


def told(messages: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return role and content of each message."""
    return tuple({"role": message["role"], "content": message["content"]} for message in messages)


@pytest.mark.parametrize("name", TEMPLATES)
def test_messages_and_tools_are_read_back(every: dict[str, Any], name: str) -> None:
    """All that was rendered is found again: JSON in messages, empty results, and answers as they were sampled."""
    own_thought = {"glm": "\n<think></think>\n", "glm47": "</think>"}.get(name, "")
    answer = {"role": "assistant", "content": f"{own_thought}Yes.\n{{}}"}
    messages = [SYSTEM, USER, answer, *RESULTS, answer, {"role": "user", "content": "More."}]
    seen = read(every[name], name, messages, tools=[TOOL, BARE])

    assert seen == (told(messages), TOOLS)


@pytest.mark.parametrize("name", [name for name in TEMPLATES if name != "mistral"])  # which refuses an empty answer
def test_an_empty_answer_counts_and_one_that_has_not_begun_does_not(every: dict[str, Any], name: str) -> None:
    """The turn is counted by answers: the mark that opens the next one is none, an answer of no text is one."""
    messages = [USER, {"role": "assistant", "content": ""}, USER]
    seen = read(every[name], name, messages)

    assert [message["role"] for message in seen[0]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("opened", ["<think>\n", "<think>\n\n</think>\n\n", "</think>"])
def test_a_think_block_that_the_template_opens_is_no_answer_yet(opened: str) -> None:
    """Templates of reasoning models write the beginning of the answer themselves."""
    seen = read_transcript(f"<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n{opened}", TEMPLATES["qwen3"])

    assert seen[0] == ({"role": "user", "content": "hi"},)


def test_the_end_of_a_turn_may_be_there_twice_or_not_at_all() -> None:
    """Clients that double the token, or that go on after an answer without one, are in the same conversation."""
    text = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\none<|im_end|><|im_end|>\n<|im_start|>assistant\ntwo"
    seen = read_transcript(text, TEMPLATES["chatml"])

    assert [message["content"] for message in seen[0]] == ["hi", "one", "two"]


@given(
    text=st.lists(
        st.sampled_from(["{", "}", '"', "a", "<|im_start|>user\n", "<|im_end|>", "<tool_response>\n", "# Tools"])
    ).map("".join)
)
def test_no_text_is_too_odd(text: str) -> None:
    """Reading never fails: what is no conversation is still text."""
    for template in TEMPLATES.values():
        seen = read_transcript(text, template)

        assert all(isinstance(message["content"], str) for message in seen[0])


def test_results_that_are_not_as_the_template_writes_them_are_read_as_they_are() -> None:
    """A result of Mistral without an id, of Llama that is not a JSON string, of Kimi without its heading, are kept whole."""
    mistral = read_transcript("[TOOL_RESULTS]plain[/TOOL_RESULTS]", TEMPLATES["mistral"])[0]
    header = "<|start_header_id|>ipython<|end_header_id|>\n\n"
    llama = [read_transcript(f"{header}{body}<|eot_id|>", TEMPLATES["llama3"])[0] for body in ("{", "[1]")]
    kimi = read_transcript("<|im_system|>ls<|im_middle|>plain<|im_end|>", TEMPLATES["kimi"])[0]
    chatml = read_transcript("<|im_start|>tool\nplain<|im_end|>\n", TEMPLATES["chatml"])[0]

    assert [*llama, mistral, kimi, chatml] == [({"role": "tool", "content": text},) for text in ("{", "[1]", *["plain"] * 3)]


def test_question_after_llamas_tools_may_look_like_a_tool(every: dict[str, Any]) -> None:
    """Only the schemas at the beginning of the message are tools."""
    user = {"role": "user", "content": 'Is {"name": "x", "parameters": {}} a tool?'}

    assert read(every["llama3"], "llama3", [user], tools=[BARE]) == (told([user]), {"pwd": {}})


def test_answers_are_compared_without_thoughts() -> None:
    """What templates strip, keep or half write does not tell two answers apart."""
    texts = [
        "[THINK]hm[/THINK]Yes.",
        "<longcat_think>hm</longcat_think>Yes.",
        "<think>\nhm\n</think>\n\nYes. ",
        "\n<think></think>\nYes.",
        "<think>Yes.",
        "Yes.",
    ]

    assert {without_thoughts(text) for text in texts} == {"Yes."}
