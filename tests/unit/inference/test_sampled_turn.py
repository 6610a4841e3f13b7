"""Scripted turns in tokens."""

# ruff: noqa: RUF001 -- DeepSeek writes its tokens with these characters
from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models

from pytest_hermes_env.errors import ScriptError, UsageError
from pytest_hermes_env.inference import TEMPLATES, TurnLike, call, sampled, say, think, turn
from pytest_hermes_env.inference.sampled_turn import Sample, load_sampler
from pytest_hermes_env.inference.steps import as_turn
from pytest_hermes_env.inference.tokens import tokenizer_json

CHATML = load_sampler(template="chatml")
TOKENIZER = Tokenizer.from_str(tokenizer_json(TEMPLATES["chatml"]))
END = TOKENIZER.token_to_id("<|im_end|>")
TEXT = "Hello, terminal 🙂"
IDS = tuple(TOKENIZER.encode(TEXT).ids)


def sample(*steps: object, max_tokens: int | None = None) -> Sample:
    """Return what a ChatML model samples for the turn of these steps."""
    return CHATML.sample(as_turn(list(steps)), max_tokens=max_tokens)  # type: ignore[arg-type]


FULL: dict[str, str] = {
    "chatml": '<think>\nhm\n</think>\nYes.\n<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>',
    "qwen3": '<think>\nhm\n</think>\n\nYes.\n<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>',
    "qwen3_5": "<think>\nhm\n</think>\n\nYes.\n\n<tool_call>\n<function=ls>\n</function>\n</tool_call>",
    "mistral": '[THINK]hm[/THINK]Yes.[TOOL_CALLS][{"name": "ls", "arguments": {}, "id": "call00000"}]',
    "llama3": '<think>\nhm\n</think>\n\nYes.<|python_tag|>{"name": "ls", "parameters": {}}',
    "deepseek": "<think>\nhm\n</think>\n\nYes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ls\n```json\n{}\n```"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "glm47": "<think>hm</think>Yes.<tool_call>ls</tool_call>",
    "glm": "\n<think>hm</think>\nYes.\n<tool_call>ls\n</tool_call>",
    "kimi": "<think>\nhm\n</think>\n\nYes.<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0"
    "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
}


FULL["deepseek_r1"] = FULL["deepseek"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_turn_is_written_as_the_family_does(name: str) -> None:
    """Thought, answer and call stand in the order and with the marks of the family, and end with its token for calls."""
    sampler, template = load_sampler(template=name), TEMPLATES[name]
    made = sampler.sample(turn(think("hm"), say("Yes."), call("ls")))
    ending = sampler.decode([made.ids[-1]])

    assert (made.text, ending, made.finish, made.matched) == (FULL[name], template.end_of_calls, "stop", made.ids[-1])


OPENED = [
    ("qwen3", "<think>\n", "hm\n</think>\n\nYes.", "\n</think>\n\nYes."),
    ("qwen3", "<think>", "\nhm\n</think>\n\nYes.", "\n\n</think>\n\nYes."),
    ("qwen3", "<think>\n\n</think>\n\n", "<think>\nhm\n</think>\n\nYes.", "Yes."),
    ("mistral", "[THINK]", "hm[/THINK]Yes.", "[/THINK]Yes."),
    ("glm", "\n<think></think>", "\n<think>hm</think>\nYes.", "\nYes."),
    ("glm47", "<think>", "hm</think>Yes.", "</think>Yes."),
]


@pytest.mark.parametrize(("name", "opened", "thinking", "silent"), OPENED)
def test_an_answer_continues_the_thought_that_the_prompt_opened(name: str, opened: str, thinking: str, silent: str) -> None:
    """The tag is not sampled again; a block that the prompt has closed gets no second one, unless the script thinks."""
    sampler = load_sampler(template=name)
    texts = [sampler.text_of(as_turn(said), prompt=f"<|assistant|>{opened}") for said in ([think("hm"), "Yes."], "Yes.")]

    assert texts == [thinking, silent]


SMALL: dict[str, tuple[TurnLike, str]] = {
    "thought and call": (
        (think("hm"), call("ls")),
        '<think>\nhm\n</think>\n<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>',
    ),
    "call alone": (call("ls"), '<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>'),
    "nothing": ("", ""),
    "braces in a thought": ((think("{} {0}"), say("ok")), "<think>\n{} {0}\n</think>\nok"),
}


@pytest.mark.parametrize("case", SMALL)
def test_parts_that_are_absent_leave_nothing(case: str) -> None:
    """What is not said leaves neither marks nor line breaks."""
    said, text = SMALL[case]

    assert CHATML.text_of(as_turn(said)) == text


def test_an_answer_ends_with_the_token_for_answers() -> None:
    """GLM's models end an answer and a call by beginning the next message, each its own."""
    sampler = load_sampler(template="glm")
    endings = [sampler.decode([sampler.sample(as_turn(said)).ids[-1]]) for said in ("Yes.", call("ls"))]

    assert endings == ["<|user|>", "<|observation|>"]


def test_an_ordinary_answer_is_its_encoding_and_the_end() -> None:
    """The ids are those of the text, then the end-of-turn token; without it the turn stops all the same."""
    seen = [sample(TEXT), sample(TEXT, sampled(end=False))]

    assert seen == [
        Sample(ids=(*IDS, END), text=TEXT, finish="stop", matched=END),
        Sample(ids=IDS, text=TEXT, finish="stop", matched=None),
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_drift_changes_the_ids_and_not_the_text(count: int) -> None:
    """As many tokens as wanted are sampled in two parts, and encoding the text again gives other ids."""
    made = sample(TEXT, sampled(drift=count))
    again = tuple(TOKENIZER.encode(made.text).ids)

    assert (made.text, len(made.ids), again, made.ids[:-1] != IDS) == (TEXT, len(IDS) + count + 1, IDS, True)


def test_more_drift_than_there_are_tokens_is_refused() -> None:
    """An answer of single bytes cannot drift: the script asks for what it cannot have."""
    with pytest.raises(ScriptError) as caught:
        sample("é", sampled(drift=2))

    assert str(caught.value) == (
        "sampled(drift=2) splits 2 tokens, but only 0 of this answer can be split.\n"
        "  seen      'é'\n"
        "  fix       make the answer longer, or reduce drift"
    )


def test_an_answer_may_end_inside_a_character() -> None:
    """Three of the four bytes of a character stand at the end: the text shows a replacement character."""
    made = sample("ok", sampled(broken_utf8=True))
    tail = "".join(TOKENIZER.id_to_token(token) for token in made.ids[-4:-1])

    assert (made.text, tail, made.ids[-1]) == ("ok\ufffd", "ðŁĺ", END)


def test_a_wrong_id_lies_outside_of_the_vocabulary() -> None:
    """The id is no token, and its text is nothing."""
    made = sample("ok", sampled(wrong_id=True))

    assert (made.ids[-2:], made.text, made.ids[-2] > CHATML.last_id) == ((CHATML.wrong_id, END), "ok", True)


CUTS: tuple[tuple[int | None, int | None, int | None], ...] = (
    (2, None, 2),
    (None, 2, 2),
    (5, 2, 2),
    (2, 5, 2),
    (None, 99, None),
)


@pytest.mark.parametrize(("own", "asked", "cut"), CUTS)
def test_an_answer_is_cut_at_the_lower_limit(own: int | None, asked: int | None, cut: int | None) -> None:
    """The script's limit and the request's both hold; a cut answer has no end token and finishes with length."""
    made = sample(TEXT, sampled(max_tokens=own), max_tokens=asked)
    whole = Sample(ids=(*IDS, END), text=TEXT, finish="stop", matched=END)
    expected = whole if cut is None else Sample(ids=IDS[:cut], text=TOKENIZER.decode(IDS[:cut]), finish="length", matched=None)

    assert made == expected


def test_lone_surrogates_are_no_text_for_tokens() -> None:
    """A script may say in chat mode what no token can hold; here it becomes a question mark."""
    assert sample("a\ud800b").text == "a?b"


def test_parts_between_special_tokens_decode_as_the_whole_does() -> None:
    """Broken characters on both sides of a special token, ids that do not exist, and nothing at all."""
    broken = [TOKENIZER.token_to_id(character) for character in "ðŁĺ"]
    cases = [[], [END], [*broken, END, *broken, 99_999, *IDS], [*IDS, END, END, *IDS]]
    texts = [CHATML.decode(ids) for ids in cases]

    assert texts == [TOKENIZER.decode(ids, skip_special_tokens=False) for ids in cases]


SAME_TOKENS = {"qwen3": "chatml", "qwen3_5": "chatml", "deepseek_r1": "deepseek", "glm47": "glm"}


def test_a_tokenizer_is_recognised_by_its_configuration_or_its_tokens(paths: dict[str, Path], tmp_path: Path) -> None:
    """Our own tokenizers say which template they have; of another one the special tokens tell."""
    own = {name: load_sampler(tokenizer=path).template.name for name, path in paths.items()}
    foreign = {}
    for name, path in paths.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "tokenizer.json").write_bytes((path / "tokenizer.json").read_bytes())
        foreign[name] = load_sampler(tokenizer=tmp_path / name).template.name

    assert (own, foreign) == ({name: name for name in paths}, {name: name for name in paths} | SAME_TOKENS)


def test_the_format_of_calls_may_be_another_one() -> None:
    """A family goes before the template's own; alone it brings its template."""
    samplers = [load_sampler(template="qwen3", family="qwen3_coder"), load_sampler(family="glm47"), load_sampler()]
    seen = [(sampler.template.name, sampler.family) for sampler in samplers]

    assert seen == [("qwen3", "qwen3_coder"), ("glm47", "glm47"), ("chatml", "hermes")]


def test_a_tokenizer_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A directory without tokenizer.json fails with its path and what to do."""
    with pytest.raises(UsageError) as caught:
        load_sampler(tokenizer=tmp_path)

    assert str(caught.value) == (
        f"the mock model cannot load a tokenizer from {tmp_path}: No such file or directory (os error 2).\n"
        "  fix       pass a directory with a tokenizer.json, such as build_tokenizer() writes"
    )


def plain_tokenizer(directory: Path) -> Path:
    """Return a tokenizer of two letters, without any special token."""
    Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[])).save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 8}))
    return directory


def test_a_tokenizer_of_an_unknown_template_is_refused(tmp_path: Path) -> None:
    """What no template fits says so, with the known ones."""
    path = plain_tokenizer(tmp_path)
    with pytest.raises(UsageError) as caught:
        load_sampler(tokenizer=path)

    assert str(caught.value) == (
        f"the chat template of the tokenizer in {path} is unknown: its special tokens match no known template.\n"
        "  known     chatml, qwen3, qwen3_5, mistral, llama3, deepseek, deepseek_r1, glm, glm47, kimi\n"
        "  fix       pass the template that writes messages the same way: template='...'"
    )


def test_a_template_whose_end_the_tokenizer_does_not_have_is_refused(tmp_path: Path) -> None:
    """A wrong template shows at once, not as text that never ends."""
    with pytest.raises(UsageError) as caught:
        load_sampler(tokenizer=plain_tokenizer(tmp_path), template="kimi")

    assert str(caught.value) == (
        "the tokenizer does not have '<|im_end|>', the end-of-turn token of the template kimi.\n"
        "  fix       pass the tokenizer's own template: template='...', one of chatml, qwen3, qwen3_5, mistral, llama3, deepseek, deepseek_r1, glm, glm47, kimi"
    )


def test_a_tokenizer_without_bytes_cannot_break_a_character(tmp_path: Path) -> None:
    """broken_utf8 needs tokens for bytes, and says so where there are none."""
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    tokenizer.add_special_tokens(["<|im_end|>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    sampler = load_sampler(tokenizer=tmp_path, template="chatml")
    with pytest.raises(UsageError) as caught:
        sampler.sample(as_turn(["ab", sampled(broken_utf8=True)]))

    assert str(caught.value) == (
        "this tokenizer has no token for the byte 0xf0, so no answer can end within a character.\n"
        "  fix       remove broken_utf8, or use a byte-level tokenizer, such as the one from build_tokenizer()"
    )
