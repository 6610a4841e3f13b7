"""What is thought is never called, in any format."""

from __future__ import annotations

import pytest

NAMES = (
    "deepseek_v3", "deepseek_v31", "glm45", "glm47", "hermes", "kimi_k2", "llama3_json", "llama4_json", "longcat",
    "mistral_array", "mistral_v11", "mistral_v13", "qwen3_coder",
)  # fmt: skip


@pytest.fixture(params=NAMES)
def form(request, formats):
    return formats.FORMATS[request.param]


@pytest.fixture(params=["own", "plain"])
def think(request, form):
    """The family's own think tags, and the plain ones."""
    return form.think if request.param == "own" else ("<think>", "</think>")


@pytest.fixture
def inner(form, formats):
    return form.render([formats.Call(name="inner", arguments={"a": "x"})])


@pytest.fixture
def outer(form, formats):
    return form.render([formats.Call(name="outer", arguments={"b": "y"})])


OUTER = [("outer", '{"b": "y"}')]


@pytest.mark.parametrize(
    ("pattern", "content", "is_called"),
    [
        ("{open}{inner}{close}", None, False),
        ("{open}{inner}{close}No.", None, False),
        ("{open}hm {inner} hm", None, False),
        ("{open}{inner}", None, False),
        ("{outer}{open}{inner}", "{open}{inner}", True),
        ("{open}{inner}{close}{outer}", "{open}{inner}{close}", True),
        ("{open}{inner}{open}{inner}{close}{outer}", "{open}{inner}{open}{inner}{close}", True),
        ("{open}a{close}b{open}{inner}{close}{outer}c", "{open}a{close}b{open}{inner}{close}c", True),
        ("{open}{close}{outer}", "{open}{close}", True),
        ("{outer}{open}{inner}{close}", "{open}{inner}{close}", True),
        ("hm {inner} hm{close}{outer}", "hm {inner} hm{close}", True),
        ("{inner}{close}{outer}", "{inner}{close}", True),
        ("hm {inner} hm{close}No.", None, False),
        ("{close}{outer}", "{close}", True),
        ("{open}a{close}{outer}{close}", "{open}a{close}{close}", True),
    ],
)  # fmt: skip
def test_thought_is_content(read, form, think, inner, outer, pattern, content, is_called):
    """A call in a thought stays in the content; those outside are called.

    A thought ends at its first closing tag, or at the end of the text; it may have been opened by the template.
    """
    words = {"open": think[0], "close": think[1], "inner": inner, "outer": outer}
    text = pattern.format(**words)

    found = read(form.ours[0], text)

    assert found == ((content.format(**words), OUTER) if is_called else (text, []))


def test_think_tag_in_an_argument_is_data(read, form, think, formats):
    """A model that writes about think tags does not think."""
    arguments = {"b": f"{think[1]} then {think[0]}"}
    text = form.render([formats.Call(name="outer", arguments=arguments)])

    content, calls = read(form.ours[0], text)

    assert content is None
    assert calls == [("outer", f'{{"b": "{arguments["b"]}"}}')]


def test_think_tag_in_a_call_that_was_cut_off_is_data(read, form, think, formats):
    """Wherever the text ends in a call that writes about think tags, the call before it was no thought."""
    calls = [
        formats.Call(name="outer", arguments={"b": "y"}),
        formats.Call(name="last", arguments={"b": f"{think[1]}{think[0]}", "c": think[1], "d": "true"}),
    ]
    begin, texts, _ = form.parts(calls)
    first = len(begin + texts[0])
    text = form.render(calls)

    found = {size: read(form.ours[0], text[:size])[1][:1] for size in range(first, len(text) + 1)}

    assert [size for size, calls in found.items() if calls != OUTER] == []
