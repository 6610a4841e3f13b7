"""Python runs this at its start, in the command of ``hermes-env record`` and ``hermes-env replay``, whose PYTHONPATH leads here.

It loads only modules that Python has already loaded, and prepares the cassette when atroposlib's environments are imported. The
user's own ``sitecustomize`` runs too.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
AWAITED = "atroposlib.envs.base"
VARIABLE = "HERMES_ENV_CASSETTE_RUN"


class Await:
    """A finder that waits until one module is imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """Return the module's spec with a loader that then prepares the cassette."""
        del path, target
        if name != AWAITED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                prepare(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def prepare(module: types.ModuleType) -> None:
    """Prepare the cassette, or exit if this Python does not have the package."""
    try:
        from pytest_hermes_env.recorded_command.child import prepare as begin  # noqa: PLC0415
    except ImportError as error:
        with open(os.path.join(os.environ[VARIABLE], f"lacking-{os.getpid()}"), "w", encoding="utf-8") as file:
            file.write(f"{sys.executable}: {error}")
        sys.exit(2)
    begin(module, os.environ[VARIABLE])


def run_the_next() -> None:
    """Run the ``sitecustomize`` that this one shadows, if there is one."""
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or os.curdir) != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if VARIABLE in os.environ:
    sys.meta_path.insert(0, Await())
run_the_next()
