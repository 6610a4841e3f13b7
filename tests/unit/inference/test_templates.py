"""The chat templates, as transformers renders them."""

# ruff: noqa: RUF001 -- DeepSeek writes its tokens with these characters
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jinja2 import TemplateError
from transformers import AutoTokenizer

from pytest_hermes_env.inference import TEMPLATES, Turn, TurnLike, build_tokenizer, call, say, think, turn
from pytest_hermes_env.inference.sampled_turn import load_sampler
from pytest_hermes_env.inference.steps import as_turn
from pytest_hermes_env.inference.templates import FAULTY_TEMPLATES, template_of_family
from pytest_hermes_env.inference.tool_call_formats import CALL_FORMATS
from pytest_hermes_env.inference.wire import assistant_message

TOOL = {
    "type": "function",
    "function": {"name": "ls", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
}
SCHEMA = json.dumps(TOOL)
START = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."}]
CALLING = turn(say("Yes."), call("ls", path="/"), call("ls", path="/é"))
CALLED = {
    "role": "assistant",
    "content": "Yes.",
    "tool_calls": [
        {"id": "functions.ls:0", "type": "function", "function": {"name": "ls", "arguments": {"path": "/"}}},
        {"id": "functions.ls:1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "/é"}'}},
    ],
}
RESULTS = [
    {"role": "tool", "tool_call_id": "functions.ls:0", "name": "ls", "content": "a"},
    {"role": "tool", "tool_call_id": "functions.ls:1", "name": "ls", "content": "b"},
]
ANSWER = {"role": "assistant", "content": "Done."}
WHOLE = [*START, CALLED, *RESULTS, ANSWER]

RENDERED = {
    "qwen3": f"""\
<|im_start|>system
Be brief.

# Tools

You may call one or more functions. Their signatures:
<tools>
{SCHEMA}
</tools>

For each call, return a JSON object with name and arguments:
<tool_call>
{{"name": <name>, "arguments": <arguments>}}
</tool_call><|im_end|>
<|im_start|>user
Look.<|im_end|>
<|im_start|>assistant
Yes.
<tool_call>
{{"name": "ls", "arguments": {{"path": "/"}}}}
</tool_call>
<tool_call>
{{"name": "ls", "arguments": {{"path": "/é"}}}}
</tool_call><|im_end|>
<|im_start|>user
<tool_response>
a
</tool_response>
<tool_response>
b
</tool_response><|im_end|>
<|im_start|>assistant
<think>

</think>

Done.<|im_end|>
""",
    "mistral": f"<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][AVAILABLE_TOOLS][{SCHEMA}][/AVAILABLE_TOOLS][INST]Look.[/INST]Yes."
    '[TOOL_CALLS][{"name": "ls", "arguments": {"path": "/"}, "id": "functions.ls:0"}, '
    '{"name": "ls", "arguments": {"path": "/é"}, "id": "functions.ls:1"}]</s>'
    '[TOOL_RESULTS]{"content": "a", "call_id": "functions.ls:0"}[/TOOL_RESULTS]'
    '[TOOL_RESULTS]{"content": "b", "call_id": "functions.ls:1"}[/TOOL_RESULTS]Done.</s>',
    "llama3": f"""\
<|begin_of_text|><|start_header_id|>system<|end_header_id|>

Be brief.

Environment: ipython

You may call these functions:

{json.dumps(TOOL, indent=4)}

To call one, answer with {{"name": <name>, "parameters": <parameters>}} and nothing else.<|eot_id|>\
<|start_header_id|>user<|end_header_id|>

Look.<|eot_id|><|start_header_id|>assistant<|end_header_id|>

Yes.<|python_tag|>{{"name": "ls", "parameters": {{"path": "/"}}}}; {{"name": "ls", "parameters": {{"path": "/é"}}}}<|eot_id|>\
<|start_header_id|>ipython<|end_header_id|>

a<|eot_id|><|start_header_id|>ipython<|end_header_id|>

b<|eot_id|><|start_header_id|>assistant<|end_header_id|>

Done.<|eot_id|>""",
    "deepseek": f"""\
<｜begin▁of▁sentence｜>Be brief.

## Tools

You have these functions:
{SCHEMA}

To call one, name it and give its arguments as a JSON code block between the marks of a tool call.<｜User｜>Look.<｜Assistant｜>Yes.\
<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ls
```json
{{"path": "/"}}
```<｜tool▁call▁end｜>
<｜tool▁call▁begin｜>function<｜tool▁sep｜>ls
```json
{{"path": "/é"}}
```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>\
<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>a<｜tool▁output▁end｜>
<｜tool▁output▁begin｜>b<｜tool▁output▁end｜><｜tool▁outputs▁end｜>Done.<｜end▁of▁sentence｜>""",
    "glm": f"""\
[gMASK]<sop><|system|>
# Tools

You may call these functions:
<tools>
{SCHEMA}
</tools>

For each call, give the name, then each argument as a key and a value:
<tool_call>{{name}}
<arg_key>{{key}}</arg_key>
<arg_value>{{value}}</arg_value>
</tool_call><|system|>
Be brief.<|user|>
Look.<|assistant|>
<think></think>
Yes.
<tool_call>ls
<arg_key>path</arg_key>
<arg_value>/</arg_value>
</tool_call>
<tool_call>ls
{{"path": "/é"}}
</tool_call><|observation|>
<tool_response>
a
</tool_response>
<tool_response>
b
</tool_response><|assistant|>
<think></think>
Done.""",
    "kimi": f"<|im_system|>tool_declare<|im_middle|>[{SCHEMA}]<|im_end|><|im_system|>system<|im_middle|>Be brief.<|im_end|>"
    "<|im_user|>user<|im_middle|>Look.<|im_end|><|im_assistant|>assistant<|im_middle|>Yes.<|tool_calls_section_begin|>"
    '<|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{"path": "/"}<|tool_call_end|>'
    '<|tool_call_begin|>functions.ls:1<|tool_call_argument_begin|>{"path": "/é"}<|tool_call_end|>'
    "<|tool_calls_section_end|><|im_end|><|im_system|>ls<|im_middle|>## Return of functions.ls:0\na<|im_end|>"
    "<|im_system|>ls<|im_middle|>## Return of functions.ls:1\nb<|im_end|><|im_assistant|>assistant<|im_middle|>Done.<|im_end|>",
}


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tokenizers of all templates, the faulty ones too."""
    directory = tmp_path_factory.mktemp("tokenizers")
    names = (*TEMPLATES, *FAULTY_TEMPLATES)
    return {name: AutoTokenizer.from_pretrained(build_tokenizer(directory / name, template=name)) for name in names}


def render(tokenizer: Any, messages: list[dict[str, Any]], *, tools: object = None, prompt: bool = False) -> str:
    """Return the text of the messages."""
    return str(tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=prompt))


def message(said: Turn) -> dict[str, Any]:
    """Return the turn as an environment keeps it, with arguments as an object, which every template can write."""
    made: dict[str, Any] = {**assistant_message(said, "key")}
    for one in made.get("tool_calls", ()):
        one["function"]["arguments"] = json.loads(one["function"]["arguments"])
    return made


@pytest.mark.parametrize("name", RENDERED)
def test_a_whole_conversation_is_rendered(every: dict[str, Any], name: str) -> None:
    """System message, tools, calls, results and answer, as the family writes them. (ChatML: see test_tokens.)"""
    assert render(every[name], WHOLE, tools=[TOOL]) == RENDERED[name]


@pytest.mark.parametrize("name", TEMPLATES)
def test_tools_and_system_message_may_be_absent(every: dict[str, Any], name: str) -> None:
    """One user message is enough, and the tools do not show when there are none."""
    text = render(every[name], [{"role": "user", "content": [{"type": "text", "text": "Lo"}, {"text": "ok."}]}], prompt=True)

    assert (text.count("Look."), "unction" in text) == (1, False)


SAID: dict[str, TurnLike] = {
    "an answer": "Done.",
    "a call": call("ls", path="/é"),
    "two calls": [call("ls", path="/"), call("ls")],
    "an answer and calls": CALLING,
}


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("name", [name for name in TEMPLATES if name != "mistral"])
def test_what_a_model_samples_is_what_its_template_writes(every: dict[str, Any], name: str, said: str) -> None:
    """The prompt, the sampled text and the end token begin the text of the conversation that goes on.

    Mistral's calls carry ids that the environment gives in chat mode, so there only the rest is alike.
    """
    template, made = TEMPLATES[name], as_turn(SAID[said])
    end = template.end_of_calls if made.every(type(call("x"))) else template.end
    prompt = render(every[name], START, tools=[TOOL], prompt=True)
    following = RESULTS if end == template.end_of_calls and made.every(type(call("x"))) else [{"role": "user", "content": "x"}]
    history = render(every[name], [*START, message(made), *following], tools=[TOOL])

    assert history.startswith(prompt + load_sampler(template=name).text_of(made) + end)


KEEPS_THOUGHTS = {"chatml": (True, True), "qwen3": (True, False), "deepseek": (False, False), "glm": (True, False)}


@pytest.mark.parametrize("name", KEEPS_THOUGHTS)
def test_templates_keep_or_strip_thoughts(every: dict[str, Any], name: str) -> None:
    """A think block of an earlier answer stays, or goes as soon as a user speaks again, or goes always."""
    thinking = {"role": "assistant", "content": load_sampler(template=name).text_of(turn(think("hm"), say("Yes.")))}
    recent = render(every[name], [*START, thinking, *RESULTS], prompt=True)
    older = render(every[name], [*START, thinking, {"role": "user", "content": "More."}], prompt=True)

    assert ("hm" in recent, "hm" in older) == KEEPS_THOUGHTS[name]


def test_the_table_says_how_thoughts_fare() -> None:
    """What the table says is what the test above sees; the others keep what they are given."""
    words = {"kept": (True, True), "stripped before the last user message": (True, False), "stripped always": (False, False)}
    told = {name: words[template.thinking] for name, template in TEMPLATES.items()}

    assert told == {"mistral": (True, True), "llama3": (True, True), "kimi": (True, True), **KEEPS_THOUGHTS}


@pytest.mark.parametrize("name", TEMPLATES)
def test_only_mistral_moves_the_tools(every: dict[str, Any], name: str) -> None:
    """With a second user message Mistral's tools move behind the first answer; elsewhere the beginning stays."""
    one = render(every[name], START, tools=[TOOL])
    two = render(every[name], [*START, ANSWER, {"role": "user", "content": "More."}], tools=[TOOL])
    moves = not two.startswith(one)

    assert (moves, TEMPLATES[name].tools) == (
        (True, "before the last user message") if name == "mistral" else (False, "in the system message")
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_some_templates_trim(every: dict[str, Any], name: str) -> None:
    """White space around an answer is kept or removed, as the table says."""
    text = render(every[name], [*START, {"role": "assistant", "content": "  Done. "}, {"role": "user", "content": "More."}])

    assert ("  Done. " in text) == (not TEMPLATES[name].trims)


def test_a_tokenizer_without_a_template_raises_its_own_error(every: dict[str, Any]) -> None:
    """transformers says what is missing; nothing of ours stands in between."""
    with pytest.raises(ValueError, match=r"tokenizer\.chat_template is not set"):
        render(every["no_template"], START)


def test_a_template_that_knows_no_tools_raises_on_them(every: dict[str, Any]) -> None:
    """Tools and tool messages are refused by the template itself; a conversation without them is rendered."""
    plain = render(every["no_tools"], START)
    with pytest.raises(TemplateError) as tools:
        render(every["no_tools"], START, tools=[TOOL])
    with pytest.raises(TemplateError) as result:
        render(every["no_tools"], [*START, RESULTS[0]])

    assert (plain, str(tools.value), str(result.value)) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nLook.<|im_end|>\n",
        "This template knows no tools",
        "Conversation roles must be system, user or assistant; got tool",
    )


def test_mistral_takes_a_system_message_at_the_beginning_only(every: dict[str, Any]) -> None:
    """A role that the template has no place for is an error of the template."""
    with pytest.raises(TemplateError) as caught:
        render(every["mistral"], [*START, {"role": "system", "content": "x"}])

    assert str(caught.value) == "Only user, assistant and tool messages can follow; got system"


def test_every_family_has_a_template() -> None:
    """A format leads to the template whose models write it, and to ChatML where it has none of its own."""
    chosen = {family: template_of_family(family).name for family in CALL_FORMATS}

    assert chosen == {
        "hermes": "chatml",
        "qwen": "qwen3",
        "longcat": "chatml",
        "mistral": "mistral",
        "llama3_json": "llama3",
        "llama4_json": "llama3",
        "deepseek_v3": "deepseek",
        "deepseek_v3_1": "deepseek",
        "deepseek_v31": "deepseek",
        "kimi_k2": "kimi",
        "glm45": "glm",
        "glm47": "glm",
        "qwen3_coder": "qwen3",
    }


def test_the_templates_are_files_of_the_package() -> None:
    """Each template of the table has its file, and no file is left over."""
    import pytest_hermes_env.inference.templates as table

    files = {path.name for path in Path(table.__file__).with_name("chat_templates").iterdir()}
    named = {template.source for template in (*TEMPLATES.values(), *FAULTY_TEMPLATES.values()) if template.source}

    assert files == {*named, "_macros.jinja"}
