"""When two requests are the same."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hermes_env.cassette.matching import Matching, canonical
from pytest_hermes_env.cassette.tape import ModelRequest

PLAIN = {"temperature": 0.7, "max_new_tokens": 9}


def text_of(body: dict[str, Any]) -> str:
    return canonical(ModelRequest(method="POST", path="/generate", body=body), Matching())


@pytest.mark.parametrize("wrapped", [lambda body: body, lambda body: {"input_ids": [1], "sampling_params": body}])
@pytest.mark.parametrize(
    ("more", "is_same"),
    [
        ({"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}, True),
        ({"top_p": 1}, True),
        ({"top_p": 0.9}, False),
        ({"top_k": 20}, False),
    ],
)
def test_settings_that_cut_nothing_may_be_missing(wrapped, more, is_same):
    """Recordings from before token mode said them hold."""
    assert (text_of(wrapped(PLAIN)) == text_of(wrapped({**PLAIN, **more}))) is is_same
