"""What answers the tools while the contract's scenarios run: an in-memory machine, or hermes' own terminal and files.

Both are kept from the network. A web search finds one page, and that page can be read; a command or tool beyond that is not
there, as on a small machine, and the run's ledger names it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.errors import UsageError

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.fake import FakeSandbox
    from pytest_hermes_env.sandbox.local import LocalSandbox

__all__ = ["WORLDS", "another_world", "describe", "world_of"]

WORLDS = ("fake", "local")
"""Names of what may answer."""

PAGE = "https://example.invalid/page"
HIT = {"title": "A page", "url": PAGE, "description": "the only page of this web"}
SHOWN = 5
"""How many commands that were not there the ledger names."""


@contextlib.contextmanager
def world_of(name: str) -> Iterator[FakeSandbox | LocalSandbox]:
    """Give the world of that name. Raises: an unknown name → UsageError."""
    if name == "fake":
        from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415

        fake = FakeSandbox(unscripted="not found", allow_leftovers=True)
        yield _with_a_little_web(fake)
    elif name == "local":
        from pytest_hermes_env.sandbox.local import LocalSandbox  # noqa: PLC0415

        with LocalSandbox(unscripted="not found", allow_leftovers=True) as local:
            yield _with_a_little_web(local)
    else:
        raise UsageError(f"there is no sandbox named {name!r} for the contract. Known: {', '.join(WORLDS)}")


def another_world(world: Any) -> Any:
    """Return a further world like this one: another in-memory machine, or the same local sandbox, of which there is one."""
    from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415

    if not isinstance(world, FakeSandbox):
        return world
    return _with_a_little_web(FakeSandbox(unscripted="not found", allow_leftovers=True))


def _with_a_little_web(world: FakeSandbox | LocalSandbox) -> FakeSandbox | LocalSandbox:
    def search(arguments: dict[str, object]) -> dict[str, object]:
        del arguments
        return {"success": True, "data": {"web": [HIT]}}

    def extract(arguments: dict[str, object]) -> dict[str, object]:
        urls = arguments.get("urls")
        wanted = urls if isinstance(urls, list) else [urls]
        return {"results": [{"url": url, "title": "A page", "content": "a short text", "error": None} for url in wanted]}

    return world.on_tool("web_search", search, optional=True).on_tool("web_extract", extract, optional=True)


def describe(world: Any, not_found: Iterable[str] | None = None) -> str:
    """Return what answered, and what was asked for and not there (by default in ``world``), as a line of the ledger."""
    missed = world.not_found if not_found is None else not_found
    counts = Counter(text.split()[0] if text.split() else text for text in missed)
    shown = ", ".join(f"{name} ({count})" for name, count in counts.most_common(SHOWN))
    more = f", and {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
    hint = "; --hermes-sandbox local has what this computer has" if world.backend == "fake" else ""
    return f"{world.description}; not there: {shown}{more}{hint}" if counts else world.description
