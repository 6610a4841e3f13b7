"""The page of a rollout's tokens: the conversation first, the prompt folded, trained tokens coloured by their logprob."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pytest_hermes_env.cli import main

TEXT = "<b>hi</b>"


@pytest.fixture
def file(tmp_path: Path, hermes_tokenizer: str) -> Path:
    """Two rollouts of one group; the first three tokens are the prompt, the last one is masked."""
    from transformers import AutoTokenizer

    ids = AutoTokenizer.from_pretrained(hermes_tokenizer).encode(TEXT * 3, add_special_tokens=False)
    count = len(ids)
    masks = [-100] * 3 + ids[3:-1] + [-100]
    logprobs = [1.0] * 3 + [-0.01, -5.0] + [-0.5] * (count - 6) + [1.0]
    talk = [{"role": "user", "content": TEXT}, {"role": "assistant", "content": "yes"}]
    row = {"scores": [0.0, 1.0], "messages": [talk, talk], "overrides": [{}, {"end": "finished"}]}
    row |= {"tokens": [ids, ids], "masks": [masks, masks], "inference_logprobs": [logprobs, logprobs]}
    path = tmp_path / "groups.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return path


def test_tokens_are_coloured_by_their_logprob(file: Path, hermes_tokenizer: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Sure and unsure tokens differ; nothing of the model is markup, and the page runs and loads nothing."""
    assert main(["view", "--tokens", hermes_tokenizer, "--rollout", "g1r2", str(file)]) == 0

    page = file.with_name("groups.g1r2.html")
    text = page.read_text(encoding="utf-8")
    assert capsys.readouterr().out == f"wrote {page}\nwrote {file.with_suffix('.html')}\n"
    assert '<a href="groups.html#g1r2">' in text
    assert '<a href="groups.g1r2.html">its tokens</a>' in file.with_suffix(".html").read_text(encoding="utf-8")
    assert (
        text.index('id="conversation"') < text.index('id="tokens"') < text.index("<details><summary>prompt, positions 0 to 2")
    )
    sure, unsure, *rest = re.findall(r'<span class="trained p(\d)" title="position (\d+), id \d+, logprob (-[\d.]+)">', text)
    assert (sure, unsure, {colour for colour, _, _ in rest}) == (("0", "3", "-0.0100"), ("4", "4", "-5.0000"), {"1"})
    assert '<span class="masked">' in text
    assert "<b>hi" not in text
    assert "default-src 'none'" in text
    assert "<script" not in text


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("g1r3", "has no rollout g1r3"),
        ("g2r1", "has no rollout g2r1.\n  seen      no such line"),
        ("first", "--rollout: must be a line and a rollout, such as g3r2, not 'first'"),
    ],
)
def test_a_rollout_that_is_not_there(
    file: Path, hermes_tokenizer: str, place: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", "--tokens", hermes_tokenizer, "--rollout", place, str(file)]) == 2
    assert told in capsys.readouterr().err


def test_a_sample_has_no_tokens(tmp_path: Path, hermes_tokenizer: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps({"score": 1.0, "messages": []}))

    assert main(["view", "--tokens", hermes_tokenizer, str(file)]) == 2
    assert "g1r1 of" in (told := capsys.readouterr().err)
    assert "has no tokens" in told


def test_an_unknown_tokenizer_is_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "--tokens", "no/such-tokenizer", str(file)]) == 2
    assert "--tokens: no tokenizer 'no/such-tokenizer' on this machine." in capsys.readouterr().err
