"""The tiny tokenizer, as transformers loads it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from pytest_hermes_env.inference import TEMPLATES, build_tokenizer
from pytest_hermes_env.inference.templates import FAULTY_TEMPLATES

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "terminal",
            "description": "Führe <aus>",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
        },
    }
]
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "list files"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls é"}'}},
            {"id": "b", "type": "function", "function": {"name": "terminal", "arguments": {"command": "pwd"}}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": '{"exit_code": 0}'},
    {"role": "tool", "tool_call_id": "b", "content": "/"},
    {
        "role": "assistant",
        "content": "Again.",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "terminal", "arguments": "{bad"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "error"},
    {"role": "assistant", "content": "done", "tool_calls": None},
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tokenizer, loaded from disk."""
    return AutoTokenizer.from_pretrained(build_tokenizer(tmp_path_factory.mktemp("tokenizer") / "tiny"))


def contents(directory: Path) -> dict[str, bytes]:
    """Return name and bytes of each file."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_building_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    """Nothing in the files depends on the run, and an existing directory is written over."""
    first = contents(build_tokenizer(tmp_path / "a" / "one"))
    build_tokenizer(tmp_path / "two", template="glm")
    second = contents(build_tokenizer(tmp_path / "two"))
    again = contents(build_tokenizer(str(tmp_path / "two")))

    assert (list(first), first == second == again) == (["tokenizer.json", "tokenizer_config.json"], True)


def test_many_builders_of_one_directory_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Workers that start at once all get the whole tokenizer, and nothing is left beside it."""
    target = tmp_path / "shared"
    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(lambda _: contents(build_tokenizer(target)), range(16)))

    assert (all(one == built[0] for one in built), [path.name for path in tmp_path.iterdir()]) == (True, ["shared"])


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tokenizers of all templates, the faulty ones too, loaded from disk."""
    directory = tmp_path_factory.mktemp("tokenizers")
    names = (*TEMPLATES, *FAULTY_TEMPLATES)
    return {name: AutoTokenizer.from_pretrained(build_tokenizer(directory / name, template=name)) for name in names}


MARKS = sorted({mark for template in TEMPLATES.values() for mark in (*template.special, *template.marks)})


@given(parts=st.lists(st.text() | st.sampled_from(MARKS)))
def test_any_text_survives_encode_and_decode(every: dict[str, Any], parts: list[str]) -> None:
    """Every byte of UTF-8 is a token, and marks of a template may stand anywhere: nothing is unknown or cleaned up."""
    text = "".join(parts)
    seen = {name: tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) for name, tokenizer in every.items()}

    assert seen == dict.fromkeys(every, text)


@given(ids=st.lists(st.integers(0, 4000)))
def test_any_ids_decode(every: dict[str, Any], ids: list[int]) -> None:
    """Ids that are no text, and ids that do not exist, are decoded without an error."""
    texts = [tokenizer.decode(ids) for tokenizer in every.values()]

    assert all(isinstance(text, str) for text in texts)


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_tokens_of_a_template_are_one_token_each(every: dict[str, Any], name: str) -> None:
    """Special tokens vanish when they are skipped, marks stay, and the token that begins a text is added to every text."""
    template, tokenizer = TEMPLATES[name], every[name]
    tokens = (*template.special, *template.marks)
    ids = tokenizer.encode("".join(tokens), add_special_tokens=False)
    begun = tokenizer.convert_ids_to_tokens(tokenizer.encode("a"))
    skipped = tokenizer.decode(ids, skip_special_tokens=True)

    assert (len(ids), skipped, tokenizer.eos_token, tokenizer.pad_token, tokenizer.bos_token, begun) == (
        len(tokens),
        "".join(template.marks),
        template.eos,
        template.pad,
        template.begin,
        ["a"] if template.begin is None else [template.begin, "a"],
    )


def test_tool_schemas_cost_few_tokens(tokenizer: Any) -> None:
    """A prompt with hermes' terminal and file tools costs about a quarter of its bytes, as with a real tokenizer."""
    import model_tools

    tools = model_tools.get_tool_definitions(enabled_toolsets=["terminal", "file"], quiet_mode=True)
    messages = [{"role": "user", "content": "Make a file."}]
    text = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
    ids = tokenizer.encode(text)

    assert len(ids) * 4 < len(text.encode())


def test_the_chat_template_only_appends(tokenizer: Any) -> None:
    """The tokens of the first messages begin the tokens of all messages, so that turns can be masked."""
    whole = tokenizer.apply_chat_template(MESSAGES, tools=TOOLS, return_dict=False)
    parts = [tokenizer.apply_chat_template(MESSAGES[:n], tools=TOOLS, return_dict=False) for n in range(1, 9)]

    assert [whole[: len(part)] for part in parts] == parts
