"""The chat templates, as transformers renders them."""

from __future__ import annotations

import importlib.util
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
DATA = Path(__file__).parents[2] / "data" / "chat_templates"
REAL = sorted(DATA.glob("*.json"))
SCHEMA = json.dumps(TOOL)
IDS = ("call00000", "call00001")
START = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."}]
CALLING = turn(say("Yes."), call("ls", path="/"), call("ls", path="/é"))
CALLED = {
    "role": "assistant",
    "content": "Yes.",
    "tool_calls": [
        {"id": IDS[0], "type": "function", "function": {"name": "ls", "arguments": {"path": "/"}}},
        {"id": IDS[1], "type": "function", "function": {"name": "ls", "arguments": '{"path": "/é"}'}},
    ],
}
RESULTS = [
    {"role": "tool", "tool_call_id": IDS[0], "name": "ls", "content": "a"},
    {"role": "tool", "tool_call_id": IDS[1], "name": "ls", "content": "b"},
]
ANSWER = {"role": "assistant", "content": "Done."}
WHOLE = [*START, CALLED, *RESULTS, ANSWER]

KIMI = (
    f"<|im_system|>tool_declare<|im_middle|>[{SCHEMA}]<|im_end|><|im_system|>system<|im_middle|>Be brief.<|im_end|>"
    "<|im_user|>user<|im_middle|>Look.<|im_end|><|im_assistant|>assistant<|im_middle|>Yes.<|tool_calls_section_begin|>"
    '<|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{"path": "/"}<|tool_call_end|>'
    '<|tool_call_begin|>functions.ls:1<|tool_call_argument_begin|>{"path": "/é"}<|tool_call_end|>'
    "<|tool_calls_section_end|><|im_end|><|im_system|>ls<|im_middle|>## Return of call00000\na<|im_end|>"
    "<|im_system|>ls<|im_middle|>## Return of call00001\nb<|im_end|><|im_assistant|>assistant<|im_middle|>Done.<|im_end|>"
)


@pytest.fixture(scope="module")
def data() -> Any:
    """The conversations that were rendered with the real templates."""
    spec = importlib.util.spec_from_file_location("template_conversations", DATA / "conversations.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tokenizers of all templates, the faulty ones too."""
    directory = tmp_path_factory.mktemp("tokenizers")
    names = (*TEMPLATES, *FAULTY_TEMPLATES)
    return {name: AutoTokenizer.from_pretrained(build_tokenizer(directory / name, template=name)) for name in names}


def render(tokenizer: Any, messages: list[dict[str, Any]], *, tools: object = None, prompt: bool = False) -> str:
    """Return the text of the messages."""
    return str(tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=prompt))


def message(said: Turn, name: str) -> dict[str, Any]:
    """Return the turn as an environment keeps it; arguments are an object, or text for DeepSeek, whose template takes nothing else."""
    made: dict[str, Any] = {"content": "", **assistant_message(said, "key")}
    for one in made.get("tool_calls", ()) if name != "deepseek" else ():
        one["function"]["arguments"] = json.loads(one["function"]["arguments"])
    return made


@pytest.mark.parametrize("file", REAL, ids=lambda file: file.stem)
def test_a_template_writes_what_the_template_of_its_family_writes(every: dict[str, Any], file: Path, data: Any) -> None:
    """In all conversations, and it refuses the same ones. The files are made by regenerate.py, beside them."""
    real = json.loads(file.read_text(encoding="utf-8"))
    ours = {title: data.rendered(every[file.stem], one) for title, one in data.CONVERSATIONS.items()}

    assert ours == real
    assert sum(text is not None for text in real.values()) > len(real) / 2


def test_the_templates_without_an_installable_original_are_known() -> None:
    """Of the others, the real text is in a file. DeepSeek's differs from R1's in the opened thought alone; ChatML is no family's.

    llama.cpp has a template of Kimi K2 with line breaks as two characters, and one that refuses ids other than its own.
    """
    assert set(TEMPLATES) - {file.stem for file in REAL} == {"chatml", "deepseek", "kimi"}


def test_a_whole_conversation_with_kimi_is_rendered(every: dict[str, Any]) -> None:
    """System message, tools, calls, results and answer. (ChatML: see test_tokens.)"""
    assert render(every["kimi"], WHOLE, tools=[TOOL]) == KIMI


OPENS = {"qwen3_5": "<think>\n", "deepseek_r1": "<think>\n", "glm47": "<think>"}


SAID: dict[str, TurnLike] = {
    "an answer": "Done.",
    "a call": call("ls", path="/é"),
    "two calls": [call("ls", path="/"), call("ls")],
    "an answer and calls": CALLING,
}


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("name", [name for name in TEMPLATES if name not in {"mistral", *OPENS}])
def test_what_a_model_samples_is_what_its_template_writes(every: dict[str, Any], name: str, said: str) -> None:
    """The prompt, the sampled text and the end token begin the text of the conversation that goes on.

    Mistral's calls carry ids that the environment gives in chat mode, a thought that the prompt opened is not in a later one, and
    Llama's messages have one call, without text.
    """
    template, made = TEMPLATES[name], as_turn(SAID[said])
    calls = made.every(type(call("x")))
    if name == "llama3" and said in {"two calls", "an answer and calls"}:
        return
    prompt = render(every[name], START, tools=[TOOL], prompt=True)
    following = RESULTS[: len(calls)] if calls else [{"role": "user", "content": "x"}]
    history = render(every[name], [*START, message(made, name), *following], tools=[TOOL])
    end = template.end_of_calls if calls else template.end

    assert history.startswith(prompt + load_sampler(template=name).text_of(made) + end)


KEEPS_THOUGHTS = {
    "chatml": (True, True),
    "qwen3": (True, False),
    "qwen3_5": (True, False),
    "deepseek": (False, False),
    "deepseek_r1": (False, False),
    "glm": (True, False),
    "glm47": (True, False),
}


@pytest.mark.parametrize("name", KEEPS_THOUGHTS)
def test_templates_keep_or_strip_thoughts(every: dict[str, Any], name: str) -> None:
    """A think block of an earlier answer stays, or goes as soon as a user speaks again, or goes always."""
    thinking = {"role": "assistant", "content": load_sampler(template=name).text_of(turn(think("hm"), say("Yes.")))}
    recent = render(every[name], [*START, thinking, *RESULTS], prompt=True)
    older = render(every[name], [*START, thinking, {"role": "user", "content": "More."}], prompt=True)

    assert ("hm" in recent, "hm" in older) == KEEPS_THOUGHTS[name]


@pytest.mark.parametrize("name", TEMPLATES)
def test_only_mistral_moves_the_tools(every: dict[str, Any], name: str) -> None:
    """With a second user message Mistral's tools move behind the first answer; elsewhere the beginning stays."""
    one = render(every[name], START, tools=[TOOL])
    two = render(every[name], [*START, ANSWER, {"role": "user", "content": "More."}], tools=[TOOL])
    places = {"mistral": "before the last user message", "llama3": "in the first user message"}

    assert (not two.startswith(one), TEMPLATES[name].tools) == (name == "mistral", places.get(name, "in the system message"))


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
        "glm47": "glm47",
        "qwen3_coder": "qwen3_5",
    }


def test_the_templates_are_files_of_the_package() -> None:
    """Each template of the table has its file, and no file is left over."""
    import pytest_hermes_env.inference.templates as table

    files = {path.name for path in Path(table.__file__).with_name("chat_templates").iterdir()}
    named = {template.source for template in (*TEMPLATES.values(), *FAULTY_TEMPLATES.values()) if template.source}

    assert files == {*named, "_macros.jinja"}
