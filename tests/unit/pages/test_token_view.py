"""What an author sees of a rollout's tokens: on a terminal, as a page, token by token."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_hermes_env import call, say, token_view
from pytest_hermes_env.errors import UsageError

WORDS = {1: "<|user|>", 2: "hi", 3: "<|model|>", 4: "<b>", 5: "yes", 6: "\n", 7: "result", 8: "\x1b[2J"}


class Tokenizer:
    """A tokenizer of eight words."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of some ids."""
        assert not skip_special_tokens
        return "".join(WORDS[token] for token in ids)


ITEM = {
    "tokens": [1, 2, 3, 4, 5, 6, 7, 8, 5],
    "masks": [-100, -100, -100, 4, 5, -100, -100, -100, 2],
    "inference_logprobs": [1.0, 1.0, 1.0, -0.5, -0.25, 1.0, 1.0, 1.0, -0.125],
    "scores": 1.0,
}


def test_each_span_stands_under_its_heading() -> None:
    """Prompt, trained and masked spans and wrong labels are told apart without colour; control characters do nothing."""
    view = token_view(ITEM, Tokenizer())

    assert view.text(has_colour=False) == (
        "9 tokens: 3 prompt, 2 trained, 3 masked, 1 wrong label\n"
        "\n"
        "--- prompt, positions 0 to 2\n"
        "<|user|>hi<|model|>\n"
        "\n"
        "--- trained, positions 3 to 4, logprob -0.375 on average, -0.500 at least\n"
        "<b>yes\n"
        "\n"
        "--- masked, positions 5 to 7\n"
        "\n"
        "result\\x1b[2J\n"
        "\n"
        "--- wrong label, position 8\n"
        "yes"
    )


def test_positions_show_every_token_with_its_logprob() -> None:
    """On demand each token has a line: position, id, logprob where it is trained, text."""
    view = token_view(ITEM, Tokenizer(), positions=True)

    assert view.text(has_colour=False) == (
        "9 tokens: 3 prompt, 2 trained, 3 masked, 1 wrong label\n"
        "\n"
        "--- prompt, positions 0 to 2\n"
        "      0       1            '<|user|>'\n"
        "      1       2            'hi'\n"
        "      2       3            '<|model|>'\n"
        "\n"
        "--- trained, positions 3 to 4, logprob -0.375 on average, -0.500 at least\n"
        "      3       4   -0.5000  '<b>'\n"
        "      4       5   -0.2500  'yes'\n"
        "\n"
        "--- masked, positions 5 to 7\n"
        "      5       6            '\\n'\n"
        "      6       7            'result'\n"
        "      7       8            '\\x1b[2J'\n"
        "\n"
        "--- wrong label, position 8\n"
        "      8       5            'yes'"
    )


def test_a_terminal_gets_colours_line_by_line() -> None:
    """Each line of a span is coloured by itself, so that nothing is left coloured behind it."""
    view = token_view({"tokens": [2, 5, 6, 4], "masks": [-100, 5, 6, 4]}, Tokenizer())

    assert view.text(has_colour=True) == (
        "4 tokens: 1 prompt, 3 trained\n"
        "\n"
        "--- prompt, position 0\n"
        "\x1b[2mhi\x1b[0m\n"
        "\n"
        "--- trained, positions 1 to 3\n"
        "\x1b[32myes\x1b[0m\n"
        "\x1b[32m<b>\x1b[0m"
    )


@pytest.mark.parametrize(
    ("variables", "is_terminal", "has_colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
    ],
)
def test_colours_are_for_terminals_and_no_color_wins(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_terminal: bool, has_colour: bool
) -> None:
    """print() shows colours on a terminal or with FORCE_COLOR, and never with NO_COLOR."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    view = token_view(ITEM, Tokenizer())

    assert str(view) == view.text(has_colour=has_colour)


def test_the_page_needs_nothing_else_and_escapes_what_the_model_said() -> None:
    """The page has its own style, and no tag of the model's."""
    page = token_view({"tokens": [1, 4, 5], "masks": [-100, 4, 5], "inference_logprobs": [1.0, -0.5, -0.25]}, Tokenizer()).html

    assert "<dd>3 tokens: 1 prompt, 2 trained</dd>" in page
    assert '<span class="trained p1" title="position 1, id 4, logprob -0.5000">&lt;b&gt;</span>' in page
    assert not [word for word in ("http:", "https:", "src=", "<script", "<link", "<b>yes") if word in page]


GROUP = {"tokens": [[1], [2, 5]], "masks": [[-100], [-100, 5]], "inference_logprobs": None, "scores": [0.0, 1.0]}
SEVERAL = {"tokens": [1], "masks": [-100], "more_rows": [{"tokens": [2, 5], "masks": [-100, 5]}]}


@pytest.mark.parametrize("rollout", [GROUP, SEVERAL], ids=["group", "item"])
def test_a_row_is_chosen(rollout: dict[str, Any]) -> None:
    """Groups have rows, and so has an item whose rollout became several sequences."""
    views = [token_view(rollout, Tokenizer(), row=row).summary() for row in (0, 1)]

    assert views == ["1 token: 1 prompt", "2 tokens: 1 prompt, 1 trained"]


@pytest.mark.parametrize("row", [2, -1])
def test_a_row_that_is_not_there_is_refused(row: int) -> None:
    """The message says how many there are."""
    with pytest.raises(UsageError) as caught:
        token_view(GROUP, Tokenizer(), row=row)

    assert str(caught.value) == f"token_view was asked for row {row}; the rollout has 2, counted from 0"


def test_lists_of_different_length_are_refused() -> None:
    """Which label belongs to which token is not guessed."""
    with pytest.raises(UsageError) as caught:
        token_view({"tokens": [1, 2], "masks": [1], "inference_logprobs": [0.0, 0.0, 0.0]}, Tokenizer())

    assert str(caught.value) == (
        "token_view cannot tell which label belongs to which token: row 0 has 2 tokens, 1 masks, 3 inference_logprobs.\n"
        "  expected  lists of one length, as a ScoredDataItem or ScoredDataGroup has\n"
        "  fix       pytest --hermes-env path/to/env.py --hermes-mode token -k HE5 shows where the lengths part"
    )


def test_a_real_rollout_shows_what_the_model_said(make_env: Any, fake_sandbox: Any) -> None:
    """The trained spans of a group are the model's replies, with calls and the ends of its turns."""
    from environments.terminal_test_env.terminal_test_env import TerminalTestEnv

    del fake_sandbox
    script = [call("terminal", command="echo hi"), say("Done.")]
    env = make_env(TerminalTestEnv, script=script, server_type="vllm", template="chatml", group_size=1)

    async def collect() -> Any:
        await env.setup()
        return await env.collect_trajectories(await env.get_next_item())

    group, _ = asyncio.run(collect())
    spans = token_view(group, env.tokenizer).spans

    assert [span.text for span in spans if span.kind == "trained"] == [
        '<tool_call>\n{"name": "terminal", "arguments": {"command": "echo hi"}}\n</tool_call><|im_end|>',
        "Done.<|im_end|>",
    ]
    assert [span.kind for span in spans] == ["prompt", "trained", "masked", "trained"]
