"""``web_search``, ``web_extract`` and ``browser_*`` over the pages and searches that a test gives.

The browser opens pages and shows them. What depends on a page's layout or on earlier pages, such as a click, is answered with
`FakeSandbox.on_tool`.

Source: hermes-agent 0.19, tools/web_tools.py and tools/browser_tool.py.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.failures import Problem
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.fake_tools.rules import integer
from pytest_hermes_env.sandbox.files import HOME
from pytest_hermes_env.sandbox.hermes_modules import hermes_name, with_names
from pytest_hermes_env.sandbox.sandbox_errors import unknown_page

WEB_TOOLS = ("web_search", "web_extract", "browser_navigate", "browser_snapshot")
"""The tools that pages and searches are enough for."""
MOST_URLS = 5
EXTRACT_CHARACTERS = 15_000
SNAPSHOT_CHARACTERS = 15_000
CACHE = f"{HOME}/.hermes/cache/web"
"""Where hermes keeps the whole text of what it shows cut."""


class Web:
    """The pages and searches that exist. All rollouts of a sandbox share them."""

    def __init__(self) -> None:
        self._pages: dict[str, tuple[str, str]] = {}
        self._searches: dict[str, list[dict[str, str]]] = {}

    @property
    def is_there(self) -> bool:
        """Whether anything was given."""
        return bool(self._pages or self._searches)

    def add(self, pages: Mapping[str, Any], searches: Mapping[str, Any]) -> None:
        """Take pages and searches. Raises: what is neither → UsageError."""
        for url, content in pages.items():
            self._pages[_same(url)] = _page(url, content)
        for query, hits in searches.items():
            self._searches[_query(query)] = _hits(query, hits)

    def call(
        self, name: str, machine: MachineState, arguments: dict[str, Any], *, strict: bool
    ) -> dict[str, Any] | str | Problem:
        """Answer a tool. A Problem: the page or search does not exist; unless ``strict``, web_extract tells of each page."""
        if name == "web_search":
            return self._search(arguments)
        if name == "web_extract":
            return self._extract(machine, arguments, strict=strict)
        if name == "browser_navigate":
            return self._navigate(machine, arguments)
        return self._snapshot(machine)

    def _search(self, arguments: dict[str, Any]) -> str | Problem:
        query = str(arguments.get("query", ""))
        hits = self._searches.get(_query(query))
        if hits is None:
            hit = "{'title': '...', 'url': 'https://...', 'description': '...'}"
            fix = f"sandbox.web(searches={{{query!r}: [{hit}]}})"
            return unknown_page("web_search", "search", query, list(self._searches), fix)
        limit = min(max(integer(arguments.get("limit", 5), 5), 1), 100)
        found = [{**hit, "position": position} for position, hit in enumerate(hits[:limit], start=1)]
        return _text({"success": True, "data": {"web": found}})

    def _extract(self, machine: MachineState, arguments: dict[str, Any], *, strict: bool) -> dict[str, Any] | str | Problem:
        budget = min(max(integer(arguments.get("char_limit"), EXTRACT_CHARACTERS), 2000), 500_000)
        results = []
        for place, url in enumerate(_urls(arguments)):
            page = self._pages.get(_same(url)) if url else None
            if page is not None:
                title, text = page
                results.append(_extracted(url, title=title, content=_cut_page(machine, url, _without_images(text), budget)))
            elif not url:
                expected = "expected a URL string or an object with a string 'url' or 'href' field"
                results.append(_extracted("", error=f"Invalid URL item at index {place}: {expected}"))
            elif strict:
                return self._missing("web_extract", url)
            else:
                results.append(_extracted(url, error="Extract backend returned no result for this URL"))
        return _text({"results": results}) if results else {"error": "Content was inaccessible or not found"}

    def _navigate(self, machine: MachineState, arguments: dict[str, Any]) -> dict[str, Any] | Problem:
        url = str(arguments.get("url", ""))
        page = self._pages.get(_same(url))
        if page is None:
            return self._missing("browser_navigate", url)
        machine.page = url
        title, text = page
        return {"success": True, "url": url, "title": title, "snapshot": _cut_snapshot(machine, text), "element_count": 0}

    def _snapshot(self, machine: MachineState) -> dict[str, Any]:
        if not machine.page:
            return {"success": False, "error": "Failed to get snapshot"}
        _, text = self._pages[_same(machine.page)]
        return {"success": True, "snapshot": _cut_snapshot(machine, text), "element_count": 0}

    def _missing(self, name: str, url: str) -> Problem:
        return unknown_page(name, "page", url, list(self._pages), f"sandbox.web({{{url!r}: 'the text of the page'}})")


def without_web(name: str, arguments: dict[str, Any]) -> dict[str, Any] | str:
    """Return hermes' own answer where there is no web: no provider, no such page, nothing that could be opened."""
    if name == "web_search":
        return {"error": "Error searching web: Web tools are not configured."}
    if name == "web_extract":
        reason = "Blocked: URL targets a private or internal network address"
        return {"results": [_extracted(url, error=reason) for url in _urls(arguments)]}
    errors = {
        "browser_navigate": "Navigation failed",
        "browser_snapshot": "Failed to get snapshot",
        "browser_back": "Failed to go back",
    }
    return {"success": False, "error": errors.get(name, f"Failed to {name.removeprefix('browser_')}")}


def _urls(arguments: dict[str, Any]) -> list[str]:
    """Return the addresses that a call names, empty ones where it names none."""
    given = arguments.get("urls", [])
    items = (
        [item.get("url") or item.get("href") if isinstance(item, Mapping) else item for item in given]
        if isinstance(given, list)
        else []
    )
    return [item.strip() if isinstance(item, str) else "" for item in items[:MOST_URLS]]


def _extracted(url: str, *, title: str = "", content: str = "", error: str | None = None) -> dict[str, Any]:
    return {"url": url, "title": title, "content": content, "error": error}


def _page(url: object, content: object) -> tuple[str, str]:
    """Return the title and the text of a page."""
    if not isinstance(url, str) or not url.strip():
        raise UsageError(
            "a page of the sandbox's web requires an address.\n"
            f"  seen      {shorten(repr(url))}\n"
            "  fix       sandbox.web({'https://a.example': 'the text of the page'})"
        )
    if isinstance(content, str):
        heading = content.lstrip().partition("\n")[0]
        return heading.removeprefix("# ").strip() if heading.startswith("# ") else "", content
    if isinstance(content, Mapping) and isinstance(content.get("text"), str) and set(content) <= {"title", "text"}:
        return str(content.get("title", "")), content["text"]
    raise UsageError(
        f"the page {shorten(url)} of the sandbox's web is neither text nor a title with text.\n"
        f"  seen      {shorten(repr(content))}\n"
        "  fix       give the text, or {'title': '...', 'text': '...'}"
    )


def _hits(query: object, hits: Any) -> list[dict[str, str]]:
    fields = ("title", "url", "description")
    is_list = isinstance(query, str) and isinstance(hits, Sequence) and not isinstance(hits, str)
    wrong = (
        [hit for hit in hits if not isinstance(hit, Mapping) or "url" not in hit or set(hit) - {*fields}] if is_list else [hits]
    )
    if wrong:
        raise UsageError(
            f"the search {shorten(repr(query))} of the sandbox's web must map to a list of hits, each with a url.\n"
            f"  seen      {shorten(repr(wrong[0]))}\n"
            "  fix       sandbox.web(searches={'python': [{'title': '...', 'url': 'https://...', 'description': '...'}]})"
        )
    return [{name: str(hit.get(name, "")) for name in fields} for hit in hits]


def _same(url: str) -> str:
    """Return what equal addresses have in common: no fragment, no slash at the end."""
    return url.strip().partition("#")[0].rstrip("/")


def _query(query: object) -> str:
    return " ".join(str(query).split()).casefold()


def _text(result: dict[str, Any]) -> str:
    """Return a result as the web tools write it."""
    return json.dumps(result, indent=2, ensure_ascii=False)


def _without_images(text: str) -> str:
    return str(hermes_name("tools.web_tools", "convert_base64_images_to_links")(text)) if "data:image/" in text else text


def _cut_page(machine: MachineState, url: str, text: str, budget: int) -> str:
    """Return a page's text, a long one as its beginning and its end, with a note where all of it lies."""
    if len(text) <= budget:
        return text
    host = re.sub(r"[^A-Za-z0-9._-]", "-", urlsplit(url).hostname or "page")[:60].strip("-") or "page"
    name = f"{host}-{hashlib.sha256(url.encode()).hexdigest()[:10]}.md"
    hermes = with_names("tools.web_tools", {"_store_full_text": lambda *_: _store(machine, name, text)})
    return str(hermes["_truncate_with_footer"](text, url, budget)[0])


def _cut_snapshot(machine: MachineState, text: str) -> str:
    """Return a page as the browser shows it, cut at the end of a line."""
    if len(text) <= SNAPSHOT_CHARACTERS:
        return text
    name = f"browser-snapshot-{hashlib.sha256(text.encode()).hexdigest()[:10]}.txt"
    hermes = with_names("tools.browser_tool", {"_store_full_snapshot": lambda _: _store(machine, name, text)})
    return str(hermes["_truncate_snapshot"](text, SNAPSHOT_CHARACTERS))


def _store(machine: MachineState, name: str, text: str) -> str:
    path = posixpath.join(CACHE, name)
    machine.files[path] = text
    return path
