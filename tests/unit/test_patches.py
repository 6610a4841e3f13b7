"""What the kit replaces is listed in one table, replaced in one place, and put back."""

from __future__ import annotations

import ast
import asyncio
import inspect
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pytest_hermes_env
from pytest_hermes_env import patch_table, patches
from pytest_hermes_env.patch_table import PATCHES, Patch, as_markdown
from pytest_hermes_env.patches import assign, intercept, replace

PACKAGE = Path(pytest_hermes_env.__file__).parent
PAGE = Path(__file__).parents[2] / "docs/reference/patches.md"

ALLOWED = {
    "__signature__, __wrapped__, test_contract": "pytest reads them from a decorated test",
    "exitstatus, sections, longrepr, user_properties, keywords, args, verbose, fixturenames, message, _calls": "pytest's reports, items and sessions are made to be set",
    "f_trace_lines": "of a frame that the kit's own trace function watches",
    "nodeid, chain, __cause__": "of a copy of pytest's report, and of an error that pytest is about to report",
    "tbstyle": "pytest's own option, restored after the report of one test",
    "usage, whitespace, whitespace_split, commenters": "settings of argparse and shlex objects that the kit creates",
    "pre_tokenizer, decoder, post_processor, http_protocol_class": "settings of tokenizers and uvicorn objects that the kit creates",
    "stream, exchange, call": "of one response, request or error that is on its way through the kit",
    "func, orelse": "of a syntax tree that the kit parsed",
    "row_factory": "a setting of a database connection that the kit opens",
    "use_wandb, max_agent_turns": "settings of the environment under test, restored at the end of a scenario",
    "_hermes_env_number": "the kit's own mark on a ToolContext",
    "__kwdefaults__": "of a copy of a function of hermes",
    "daemon": "of a thread that the environment under test is about to start, so that the process can end",
    "showwarning": "warnings.catch_warnings restores it",
    "dont_write_bytecode": "documented switch of sys",
    "__name__, __qualname__": "names of a class that the kit creates",
}
"""Attributes of other people's objects that may be set outside of `patches` -> why."""

SETATTR_ALLOWED = {
    "play/probing/tracked_items.py": "sets methods of a class that the kit creates",
    "play/scenarios/foreign_buffers.py": "changes an environment's buffers, which is what the scenario is about",
    "play/stage.py": "changes settings of the environment under test, and restores them",
    "play/held_out.py": "shortens the collections in which an environment holds its items, and restores them",
    "contract/run/rows.py": "adds a row to pytest's report",
}


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


# No module but `patches` replaces what belongs to others


def test_no_other_module_replaces_anything() -> None:
    """An attribute is set on the kit's own objects, or for a reason in `ALLOWED`; modules and imported classes are never changed."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    own = {name for tree in trees.values() for name in declared(tree)}
    allowed = {name for names in ALLOWED for name in names.split(", ")}
    found = [
        f"{path.relative_to(PACKAGE)}:{line} {text}"
        for path, tree in trees.items()
        if path.name != "patches.py"
        for line, text in foreign(
            tree, own | allowed, allowed, is_setattr_allowed=str(path.relative_to(PACKAGE)) in SETATTR_ALLOWED
        )
    ]

    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import socket\nsocket.socket.connect = f",
        "import wandb\nreal, wandb.log = wandb.log, f",
        "import ssl\ndel ssl.create_default_context",
        "from subprocess import Popen\nPopen.__init__ = f",
        "def f(registry):\n    registry.dispatch = g",
        "def f(cls):\n    setattr(cls, 'run', g)",
        "from unittest import mock\nmock.patch.object(a, 'b')",
    ],
)
def test_a_replacement_elsewhere_is_found(source: str) -> None:
    """The test above sees every way of replacing something."""
    assert len(list(foreign(ast.parse(source), {"own"}, set()))) == 1


def test_setting_an_attribute_of_ones_own_is_fine() -> None:
    """The kit's own classes declare what is set on them."""
    source = "class A:\n    x: int\n    def f(self, other):\n        self.y = other.x = 1"
    tree = ast.parse(source)

    assert list(foreign(tree, set(declared(tree)), set())) == []


def declared(tree: ast.AST) -> Iterator[str]:
    """Yield the attributes that the classes of a module declare."""
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in ast.walk(cls):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and ast.unparse(node.value) in {"self", "cls"}
            ):
                yield node.attr
        slots = [
            node.value for node in cls.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__"
        ]
        yield from (name for value in slots for name in ast.literal_eval(value))


def foreign(
    tree: ast.AST, known: set[str], allowed: set[str], *, is_setattr_allowed: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield each line that sets an attribute of an import, or an attribute that is not ``known``."""
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            holder = ast.unparse(node.value)
            is_imported = holder.partition(".")[0] in imported and node.attr not in allowed
            if holder not in {"self", "cls"} and (is_imported or node.attr not in known):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            is_setter = called in {"setattr", "delattr"} and not is_setattr_allowed
            if is_setter or called.startswith(("mock.patch", "patch.object", "monkeypatch.")):
                yield node.lineno, ast.unparse(node)
