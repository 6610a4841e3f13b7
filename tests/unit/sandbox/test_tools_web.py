"""The web and the browser over pages that a test gives."""

from __future__ import annotations

import json

import pytest

from pytest_hermes_env.errors import UnexpectedToolCall, UsageError
from pytest_hermes_env.sandbox.fake import FakeSandbox

PAGES = {
    "https://a.example/x": "# A page\nwith text\n",
    "https://b.example": {"title": "B", "text": "b"},
    "https://c.example": "plain",
}
HITS = [{"title": "A", "url": "https://a.example/x", "description": "about a"}, {"url": "https://b.example"}]


@pytest.fixture
def web():
    """A machine with three pages and one search."""
    return FakeSandbox().web(PAGES, searches={"What is a": HITS})


def test_search_finds_what_was_given(web):
    """hermes writes it over several lines; case and spaces of the query do not matter."""
    text = web.call("web_search", {"query": " what  is A "})

    assert text.startswith('{\n  "success": true,\n')
    assert json.loads(text) == {
        "success": True,
        "data": {
            "web": [
                {"title": "A", "url": "https://a.example/x", "description": "about a", "position": 1},
                {"title": "", "url": "https://b.example", "description": "", "position": 2},
            ]
        },
    }


def test_search_has_a_limit(web, ask):
    """Five by default."""
    web.web(searches={"many": [{"url": f"https://{number}.example"} for number in range(9)]})

    counts = [len(ask(web, "web_search", query="many", **limit)["data"]["web"]) for limit in ({}, {"limit": 7}, {"limit": "x"})]

    assert counts == [5, 7, 5]


def test_pages_are_extracted(web, ask):
    """Up to five, as text or as search results; a page's heading is its title."""
    urls = ["https://a.example/x#part", {"href": "https://b.example/"}, 5, {"url": " https://c.example "}]

    assert ask(web, "web_extract", urls=urls) == {
        "results": [
            {"url": "https://a.example/x#part", "title": "A page", "content": "# A page\nwith text\n", "error": None},
            {"url": "https://b.example/", "title": "B", "content": "b", "error": None},
            {
                "url": "",
                "title": "",
                "content": "",
                "error": "Invalid URL item at index 2: expected a URL string or an object with a string 'url' or 'href' field",
            },
            {"url": "https://c.example", "title": "", "content": "plain", "error": None},
        ]
    }


def test_five_pages_are_extracted_at_most(web, ask):
    """Of six."""
    assert len(ask(web, "web_extract", urls=["https://c.example"] * 6)["results"]) == 5


@pytest.mark.parametrize("urls", [[], "https://a.example", None])
def test_nothing_to_extract(web, ask, urls):
    """As hermes says it."""
    assert ask(web, "web_extract", urls=urls) == {"error": "Content was inaccessible or not found"}


def test_long_page_is_cut_and_kept_on_the_machine(web, ask):
    """Beginning and end, and where the rest can be read."""
    text = "".join(f"line {number}\n" for number in range(1, 1001))
    web.web({"https://long.example/page": text})

    content = ask(web, "web_extract", urls=["https://long.example/page"], char_limit=2000)["results"][0]["content"]

    (stored,) = [path for path in web.files if path.startswith("/root/.hermes/cache/web/long.example-")]
    head = content.partition("\n\n[... middle omitted — see footer ...]\n\n")[0]
    shown = len(head.splitlines())
    assert (text.startswith(f"{head}\n"), 1300 < len(head) <= 1500, web.files[stored]) == (True, True, text)
    assert f"line 1000\n\n\n──────── [TRUNCATED] ────────\nShowing {len(head):,} chars (head) + " in content
    assert f'read_file path="{stored}" offset={shown + 1} limit=200' in content
    assert ask(web, "read_file", path=stored, offset=shown + 1, limit=1)["content"].startswith(
        f"{shown + 1}|line {shown + 1}\n"
    )


@pytest.mark.parametrize(("size", "is_whole"), [(15_000, True), (15_001, False)])
def test_page_is_cut_after_fifteen_thousand_characters(web, ask, size, is_whole):
    """Where the call sets no other limit."""
    web.web({"https://long.example": "x" * size})

    content = ask(web, "web_extract", urls=["https://long.example"])["results"][0]["content"]

    assert (content == "x" * size) is is_whole


def test_inline_images_are_left_out(web, ask):
    """Their names stay; linked ones stay whole."""
    web.web(
        {
            "https://i.example": "![cat](data:image/png;base64,AAAA) (data:image/gif;base64,BB==) ![](data:image/x;base64,C) ![d](d.png)"
        }
    )

    content = ask(web, "web_extract", urls=["https://i.example"])["results"][0]["content"]

    assert content == "[IMAGE: cat] [IMAGE] [IMAGE] ![d](d.png)"


def test_browser_opens_pages(web, ask):
    """It shows where it is."""
    results = [
        ask(web, "browser_snapshot"),
        ask(web, "browser_navigate", url="https://a.example/x"),
        ask(web, "browser_navigate", url="https://c.example/"),
        ask(web, "browser_snapshot", full=True),
    ]

    c = {"snapshot": "plain", "element_count": 0}
    assert results == [
        {"success": False, "error": "Failed to get snapshot"},
        {
            "success": True,
            "url": "https://a.example/x",
            "title": "A page",
            "snapshot": "# A page\nwith text\n",
            "element_count": 0,
        },
        {"success": True, "url": "https://c.example/", "title": "", **c},
        {"success": True, **c},
    ]


def test_long_page_is_shown_cut_at_a_line(web, ask):
    """And kept on the machine."""
    web.web({"https://long.example": "".join(f"line {number}\n" for number in range(1, 3001))})

    snapshot = ask(web, "browser_navigate", url="https://long.example")["snapshot"]

    (path,) = [path for path in web.files if "browser-snapshot-" in path]
    last = int(snapshot.split("\n\n[...")[0].rsplit(" ", 1)[1])
    assert len(snapshot) <= 15_000
    assert snapshot.endswith(
        f'line {last}\n\n[... {3001 - last} more lines truncated — full snapshot: read_file path="{path}" offset={last + 1} limit=200]'
    )


def test_rollouts_share_the_web_but_not_the_browser(web, ask):
    """Each is where it went."""
    ask(web.sandbox_of("one"), "browser_navigate", url="https://c.example")

    assert ask(web.sandbox_of("one"), "browser_snapshot")["snapshot"] == "plain"
    assert ask(web.sandbox_of("two"), "browser_snapshot")["success"] is False


REFUSED = [
    (
        "web_search",
        {"query": "what is b"},
        "the tool `web_search` was asked for a search that the sandbox's web does not define.\n"
        "  wanted    what is b\n"
        "  web       what is a\n"
        "  fix       sandbox.web(searches={'what is b': [{'title': '...', 'url': 'https://...', 'description': '...'}]})",
    ),
    (
        "web_extract",
        {"urls": ["https://a.example/x", "https://a.example/y"]},
        "the tool `web_extract` was asked for a page that the sandbox's web does not define.\n"
        "  wanted    https://a.example/y\n"
        "  web       https://a.example/x, https://c.example, https://b.example\n"
        "  fix       sandbox.web({'https://a.example/y': 'the text of the page'})",
    ),
    (
        "browser_navigate",
        {"url": "https://d.example"},
        "the tool `browser_navigate` was asked for a page that the sandbox's web does not define.\n"
        "  wanted    https://d.example\n"
        "  web       https://c.example, https://b.example, https://a.example/x\n"
        "  fix       sandbox.web({'https://d.example': 'the text of the page'})",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "text"), REFUSED)
def test_what_the_web_does_not_have_is_refused(web, name, arguments, text):
    """With what it has, nearest first."""
    with pytest.raises(UnexpectedToolCall) as caught:
        web.call(name, arguments)

    assert str(caught.value) == text


WITHOUT = [
    ("web_search", "sandbox.web(searches={'the query': [{'title': '...', 'url': 'https://...', 'description': '...'}]})"),
    ("web_extract", "sandbox.web({'https://...': 'the text of the page'})"),
    ("browser_navigate", "sandbox.web({'https://...': 'the text of the page'})"),
    ("browser_click", "sandbox.on_tool('browser_click', {...}), with a result in hermes' format"),
]


@pytest.mark.parametrize(("name", "fix"), WITHOUT)
def test_web_that_nobody_gave_is_refused(sandbox, name, fix):
    """There are no empty answers by default."""
    with pytest.raises(UnexpectedToolCall) as caught:
        sandbox.call(name, {"a": 1})

    assert str(caught.value) == (
        f"the sandbox was asked for the tool `{name}`, which is not scripted.\n"
        '  arguments {"a": 1}\n'
        "  scripted  nothing\n"
        f"  fix       {fix}"
    )


NOT_THERE = [
    ("web_search", {"query": "x"}, {"error": "Error searching web: Web tools are not configured."}),
    (
        "web_extract",
        {"urls": ["https://a.example"]},
        {
            "results": [
                {
                    "url": "https://a.example",
                    "title": "",
                    "content": "",
                    "error": "Blocked: URL targets a private or internal network address",
                }
            ]
        },
    ),
    ("browser_navigate", {"url": "https://a.example"}, {"success": False, "error": "Navigation failed"}),
    ("browser_snapshot", {}, {"success": False, "error": "Failed to get snapshot"}),
    ("browser_back", {}, {"success": False, "error": "Failed to go back"}),
    ("browser_click", {"ref": "@e1"}, {"success": False, "error": "Failed to click"}),
]


@pytest.mark.parametrize(("name", "arguments", "result"), NOT_THERE)
def test_web_may_be_not_there(ask, name, arguments, result):
    """As hermes without a provider and without a browser."""
    sandbox = FakeSandbox(unscripted="not found")

    assert ask(sandbox, name, **arguments) == result
    assert sandbox.not_found == (name,)


def test_page_may_be_not_there(ask):
    """Its neighbours are extracted all the same."""
    sandbox = FakeSandbox(unscripted="not found").web({"https://a.example": "a"})

    result = ask(sandbox, "web_extract", urls=["https://a.example", "https://b.example"])

    assert result["results"] == [
        {"url": "https://a.example", "title": "", "content": "a", "error": None},
        {"url": "https://b.example", "title": "", "content": "", "error": "Extract backend returned no result for this URL"},
    ]
    assert ask(sandbox, "browser_navigate", url="https://b.example") == {"success": False, "error": "Navigation failed"}


WRONG = [
    (
        lambda sandbox: sandbox.web({"": "x"}),
        "a page of the sandbox's web requires an address.\n"
        "  seen      ''\n"
        "  fix       sandbox.web({'https://a.example': 'the text of the page'})",
    ),
    (
        lambda sandbox: sandbox.web({"https://a.example": {"title": "A"}}),
        "the page https://a.example of the sandbox's web is neither text nor a title with text.\n"
        "  seen      {'title': 'A'}\n"
        "  fix       give the text, or {'title': '...', 'text': '...'}",
    ),
    *(
        (
            lambda sandbox, hits=hits: sandbox.web(searches={"python": hits}),
            "the search 'python' of the sandbox's web must map to a list of hits, each with a url.\n"
            f"  seen      {seen}\n"
            "  fix       sandbox.web(searches={'python': [{'title': '...', 'url': 'https://...', 'description': '...'}]})",
        )
        for hits, seen in (
            ("text", "'text'"),
            ([{"title": "A"}], "{'title': 'A'}"),
            ([{"url": "u", "link": 1}], "{'url': 'u', 'link': 1}"),
        )
    ),
]


@pytest.mark.parametrize(("say", "text"), WRONG)
def test_what_is_no_page_or_search_is_refused_when_it_is_said(sandbox, say, text):
    """Not when a rollout comes to it."""
    with pytest.raises(UsageError) as caught:
        say(sandbox)

    assert str(caught.value) == text
