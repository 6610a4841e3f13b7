"""What the kit replaces is listed in one table, replaced in one place, and put back."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import re
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env.patches import assign, intercept, replace

ROOT = Path(__file__).parents[2]
PAGE, PACKAGE = ROOT / "docs/reference/patches.md", ROOT / "pytest_hermes_env"


def counted(real: Any, *args: Any) -> Any:
    """Return what the original returns, in a list."""
    return [real(*args)]


class Thing:
    """Something foreign."""

    value = 1

    def method(self, number: int = 0) -> Any:
        """Return the number."""
        return number


class Derived(Thing):
    """Inherits everything."""


def test_a_handler_is_called_with_the_original() -> None:
    """Inside of the context only; the original is the very same object again."""
    original = Thing.method
    with intercept("Thing.method", counted, owner=Thing):
        inside = Thing().method(3)

    assert (inside, Thing().method(3), Thing.method is original) == ([3], 3, True)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_handlers_leave_in_any_order(order: tuple[int, ...]) -> None:
    """One wrapper serves them all; those that stay are still called, and the last one to leave restores the original."""
    original, called = Thing.method, []

    def handler(number: int) -> Any:
        return lambda real, *args: (called.append(number), real(*args))[1]

    contexts = [intercept("Thing.method", handler(number), owner=Thing) for number in range(3)]
    for context in contexts:
        context.__enter__()
    wrapper = Thing.method
    Thing().method()
    seen = [tuple(called)]
    for number in order[:2]:
        contexts[number].__exit__(None, None, None)
        called.clear()
        Thing().method()
        seen.append(tuple(called))
    same = Thing.method is wrapper
    contexts[order[2]].__exit__(None, None, None)

    rest = [tuple(number for number in (2, 1, 0) if number not in order[:left]) for left in range(3)]
    assert (seen, same, Thing.method is original) == (rest, True, True)


class Bound(Thing):
    """Has a static method, and one of the class."""

    @staticmethod
    def plain(number: int) -> Any:
        return number

    @classmethod
    def of_class(cls, number: int) -> Any:
        return cls.value + number


class BoundHeir(Bound):
    """Inherits them."""

    value = 5


@pytest.mark.parametrize("owner", [Bound, BoundHeir])
@pytest.mark.parametrize(("name", "kind"), [("plain", staticmethod), ("of_class", classmethod)])
def test_a_static_method_stays_one(owner: type, name: str, kind: type) -> None:
    """While handlers stand before it, when they have left in any order, and after a value in its place."""
    before, outcome = inspect.getattr_static(owner, name), getattr(owner(), name)(2)
    with intercept(f"Thing.{name}", counted, owner=owner), intercept(f"Thing.{name}", counted, owner=owner):
        inside = (getattr(owner(), name)(2), getattr(owner, name)(2), type(inspect.getattr_static(owner, name)))
    with replace(f"Thing.{name}", 7, owner=owner):
        replaced = getattr(owner, name)

    assert (inside, replaced) == (([[outcome]], [[outcome]], kind), 7)
    assert (inspect.getattr_static(owner, name) is before, getattr(owner(), name)(2)) == (True, outcome)


def test_an_inherited_method_is_inherited_again() -> None:
    """Nothing stays on the class that was patched."""
    with intercept("Thing.method", counted, owner=Derived):
        inside = (Derived().method(1), Thing().method(1))

    assert (inside, "method" in vars(Derived)) == (([1], 1), False)


def test_a_coroutine_function_stays_one() -> None:
    """Code that asks what it calls gets the same answer, and awaits the handler."""

    async def fetch() -> int:
        return 1

    async def doubled(real: Any) -> int:
        return 2 * await real()

    holder = SimpleNamespace(method=fetch)
    with intercept("Thing.method", doubled, owner=holder):
        inside = (inspect.iscoroutinefunction(holder.method), asyncio.run(holder.method()))

    assert (inside, holder.method is fetch) == ((True, 2), True)


def test_a_method_that_a_test_puts_in_its_place_is_kept() -> None:
    """A wrapper that is not installed any more is not uninstalled."""
    holder = SimpleNamespace(method=lambda: "original")
    with intercept("Thing.method", counted, owner=holder):
        holder.method = lambda: "of the test"
        with intercept("Thing.method", counted, owner=holder):
            inside = holder.method()

    assert (inside, holder.method()) == (["of the test"], "of the test")


def test_threads_may_enter_and_leave_at_the_same_time() -> None:
    """No handler is lost, and the original is back."""
    original = Thing.method
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(200):
            with intercept("Thing.method", counted, owner=Thing):
                assert isinstance(Thing().method(1), list)

    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (failures, Thing.method is original) == ([], True)


def test_values_are_replaced_for_a_while_or_for_good() -> None:
    """`replace` restores, `assign` does not."""
    holder = SimpleNamespace(value=1)
    with replace("Thing.value", 2, owner=holder):
        inside = holder.value
    after = holder.value
    assign("Thing.value", 3, owner=holder)

    assert (inside, after, holder.value) == (2, 1, 3)


def listed() -> list[str]:
    """Return the targets of the page's table."""
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert {len(row) for row in rows} == {4}
    return [target for row in rows for target in re.findall(r"`([^`]+)`", row[0])]


def test_the_page_lists_each_target_once() -> None:
    """A target in two rows would have two reasons."""
    assert len(listed()) == len({*listed()}) > 60


def test_what_the_package_replaces_is_on_the_page_and_nothing_else() -> None:
    """A target is a text, or put together of a few, in the module that replaces it."""
    texts = [(PACKAGE / "patches.py").read_text(encoding="utf-8")]
    texts += [text for path in PACKAGE.rglob("*.py") if "patches import" in (text := path.read_text(encoding="utf-8"))]
    text = "\n".join(texts)
    given = set(re.findall(r'\b(?:intercept|assign|replace)\(\s*"([^"]+)"', text))

    assert given - {*listed()} == set()
    assert [target for target in listed() if target.rpartition(".")[2] not in text] == []
