"""What the kit replaces is listed in one table, replaced in one place, and put back."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env import patch_table, patches
from pytest_hermes_env.patch_table import PATCHES, Patch, as_markdown
from pytest_hermes_env.patches import assign, intercept, replace

PAGE = Path(__file__).parents[2] / "docs/reference/patches.md"


def counted(real: Any, *args: Any) -> Any:
    """Return what the original returns, in a list."""
    return [real(*args)]


@pytest.fixture
def _listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "_TARGETS", patches._TARGETS | {"Thing.method", "Thing.value"})


class Thing:
    """Something foreign."""

    value = 1

    def method(self, number: int = 0) -> Any:
        """Return the number."""
        return number


class Derived(Thing):
    """Inherits everything."""


pytestmark = pytest.mark.usefixtures("_listed")


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


@pytest.mark.parametrize("use", [lambda: intercept("os.getcwd", counted).__enter__(), lambda: assign("os.getcwd", None)])
def test_what_is_not_in_the_table_is_refused(use: Any) -> None:
    """A new patch needs its row first."""
    with pytest.raises(LookupError) as caught:
        use()

    assert caught.value.args[0] == (
        "os.getcwd is not in the table of pytest_hermes_env.patch_table: add a row that says what, why and how long"
    )


def test_each_target_has_one_row() -> None:
    """The table lists a target once, with all three columns filled."""
    targets = [target for patch in PATCHES for target in patch.targets]

    assert len(set(targets)) == len(targets)
    assert [patch for patch in PATCHES if not (patch.does and patch.why and patch.lasts)] == []


def test_the_page_shows_the_table() -> None:
    """docs/reference/patches.md is generated; `python -m pytest_hermes_env.patch_table` prints it."""
    assert as_markdown() in PAGE.read_text(encoding="utf-8")


def test_a_row_becomes_a_line_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator itself, on a small table."""
    monkeypatch.setattr(patch_table, "PATCHES", (Patch(targets=("a.b", "c.D.e"), does="x", why="y", lasts="z"),))

    assert as_markdown().splitlines()[2] == "| `a.b`<br>`c.D.e` | x | y | z |"
