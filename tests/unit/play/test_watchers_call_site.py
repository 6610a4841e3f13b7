"""Whose line a watched call or an error came from."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.play.journal import Place
from pytest_hermes_env.play.watchers import call_site
from pytest_hermes_env.play.watchers.call_site import EnvironmentCode, called_by_layer, outside_place, raised_in


def loaded(path: Path, source: str, **names: Any) -> dict[str, Any]:
    """Return the names of a module with that source, at that path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    module = ModuleType(path.stem)
    module.__dict__.update(names, __file__=str(path))
    sys.modules[path.stem] = module
    exec(compile(source, str(path), "exec"), module.__dict__)
    return vars(module)


BASE = """
class HermesAgentBaseEnv:
    def call(self, function): return function()
"""
LOOP = "def call(function): return function()\n"
ENVIRONMENT = """
class Env(HermesAgentBaseEnv):
    def direct(self, function):
        return function()
    def through_layer(self, function):
        return self.call(function)
    def through_helper(self, function):
        return helper(function)
    def fail(self):
        raise ValueError
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A layer, an environment, a file beside it, and installed code."""
    for name in ("bare_base", "bare_loop", "bare_context", "bare_env", "bare_helper", "bare_library"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    base = loaded(tmp_path / "layer/bare_base.py", BASE)["HermesAgentBaseEnv"]
    loop, context = (loaded(tmp_path / f"layer/{name}.py", LOOP) for name in ("bare_loop", "bare_context"))
    helper = loaded(tmp_path / "project/bare_helper.py", LOOP)["call"]
    library = loaded(tmp_path / "project/site-packages/bare_library.py", LOOP)["call"]
    env = loaded(tmp_path / "project/bare_env.py", ENVIRONMENT, HermesAgentBaseEnv=base, helper=helper)["Env"]
    modules = [ModuleType(name) for name in ("agent_loop", "tool_context")]
    for module, names in zip(modules, (loop, context), strict=True):
        module.__file__ = names["__file__"]
    layer = Layer(base=base, agent_loop=modules[0], tool_context=modules[1])
    return {"env": env, "layer": layer, "loop": loop["call"], "library": library, "project": tmp_path / "project"}


def line(code: dict[str, Any], name: str, number: int, function: str) -> Place:
    """Return a place in the project."""
    return Place(path=str(code["project"] / name), line=number, function=function)


def test_the_nearest_line_of_the_environment_is_found(code: dict[str, Any]) -> None:
    """In a file of its classes or beside them; installed code in between is passed."""
    place = EnvironmentCode(code["env"], code["layer"]).place
    env = code["env"]()

    def here() -> Place | None:
        return place(sys._getframe())

    assert env.direct(here) == line(code, "bare_env.py", 4, "direct")
    assert env.through_helper(here) == line(code, "bare_helper.py", 1, "call")
    assert env.direct(lambda: code["library"](here)) == line(code, "bare_env.py", 4, "direct")


def test_what_the_layer_does_is_not_the_environments(code: dict[str, Any]) -> None:
    """Where the layer is nearer, there is no line."""
    place = EnvironmentCode(code["env"], code["layer"]).place

    assert code["env"]().through_layer(lambda: place(sys._getframe())) is None
    assert code["env"]().direct(lambda: code["loop"](lambda: place(sys._getframe()))) is None


def test_a_call_is_placed_outside_of_the_layer(code: dict[str, Any]) -> None:
    """The layer's own calls are placed where the environment called the layer."""
    here: Any = compiled("outside_place(layer)", outside_place=outside_place, layer=code["layer"])

    assert code["env"]().direct(here) == line(code, "bare_env.py", 4, "direct")
    assert code["env"]().through_layer(here) == line(code, "bare_env.py", 6, "through_layer")
    assert code["env"]().direct(lambda: code["loop"](here)) == Place(
        path=__file__, line=sys._getframe().f_lineno - 1, function="<lambda>"
    )


def test_a_call_by_the_layer_is_told_from_one_by_the_environment(code: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The frames of the kit's wrappers between the call and its watcher do not count."""
    monkeypatch.setattr(call_site, "WRAPPERS", (*call_site.WRAPPERS, __file__))

    def watched() -> bool:
        return called_by_layer(code["layer"])

    assert (code["env"]().direct(watched), code["env"]().through_layer(watched)) == (False, True)


def compiled(expression: str, **names: Any) -> Any:
    """Return a function whose frame lies in no file."""
    return eval(compile(f"lambda: {expression}", "<generated>", "eval"), names)


def test_an_error_is_placed_in_a_file(code: dict[str, Any]) -> None:
    """At the deepest line of that file; None where the file is not on the way."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the place matters
        code["env"]().fail()

    path = str(code["project"] / "bare_env.py")
    assert raised_in(path, caught.value) == line(code, "bare_env.py", 10, "fail")
    assert raised_in("/elsewhere.py", caught.value) is None


def test_an_environment_beside_the_layers_files_is_told_from_their_plumbing(code: dict[str, Any]) -> None:
    """The module of an environment defines a subclass of the base; what the plumbing's text mentions does not count."""
    here: Any = compiled("outside_place(layer)", outside_place=outside_place, layer=code["layer"])
    directory, base = code["project"].parent / "layer", code["layer"].base
    plumbing = loaded(directory / "bare_helper.py", "# for compute_reward\n" + LOOP, Imported=code["env"])["call"]
    env = loaded(directory / "bare_env.py", ENVIRONMENT, HermesAgentBaseEnv=base, helper=plumbing)["Env"]()

    assert env.through_helper(here) == Place(path=str(directory / "bare_env.py"), line=8, function="through_helper")


def test_a_call_without_a_line_of_the_environment_is_placed_at_its_evaluation(code: dict[str, Any]) -> None:
    """Not at the lines of whoever runs the event loop, nor at those of installed code that passes a call on."""
    here: Any = compiled("outside_place(layer)", outside_place=outside_place, layer=code["layer"])
    evaluating = line(code, "bare_env.py", 6, "through_layer")

    names: dict[str, Any] = {"loop": code["loop"], "here": here}
    exec(compile("async def call():\n    return loop(here)\n", "<generated>", "exec"), names)

    async def in_a_task() -> Place:
        found: Place = await asyncio.create_task(names["call"]())
        return found

    token = call_site.evaluating_at.set(evaluating)
    try:
        places = code["env"]().direct(lambda: code["library"](here)), asyncio.run(in_a_task())
    finally:
        call_site.evaluating_at.reset(token)

    assert (places[0].path, places[1]) == (__file__, evaluating)
