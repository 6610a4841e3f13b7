"""What a service serves, for clients that ask several: rollouts of different environments must not end up in one run."""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import sys
import sysconfig
from pathlib import Path

from pydantic import BaseModel, ConfigDict

PROTOCOL = 1
"""Version of the requests and replies; another number is another protocol. A field that is only added to a reply leaves it as it is."""


class Identity(BaseModel):
    """An environment: its class, the distribution that installed it, and a hash of its source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment: str
    package: str
    source: str

    def __str__(self) -> str:
        return f"{self.environment} of {self.package or 'no package'}, source {self.source}"


def identity_of(cls: type) -> Identity:
    """Return the identity of an environment class, as it was imported."""
    owners = importlib.metadata.packages_distributions().get(cls.__module__.split(".")[0], [])
    folder = Path(inspect.getfile(cls)).resolve().parent
    is_installed = any(folder.is_relative_to(place) for place in _installed())
    package = f"{owners[0]} {importlib.metadata.version(owners[0])}" if owners and is_installed else ""
    return Identity(environment=cls.__qualname__, package=package, source=_hash_of_source(folder))


def _installed() -> set[Path]:
    """Return the directories of installed modules: Python's, the packages', and this one's."""
    return {Path(place).resolve() for place in sysconfig.get_paths().values()} | {Path(__file__).resolve().parents[2]}


def _hash_of_source(folder: Path) -> str:
    """Return a hash of what is imported from ``folder`` and from files that no package installed, wherever they are."""
    installed = _installed()
    modules = [module for name, module in sys.modules.copy().items() if name != "__main__"]
    files = {Path(file).resolve() for module in modules if (file := getattr(module, "__file__", None))}
    own = (
        file
        for file in files
        if file.suffix == ".py"
        and file.is_file()
        and (file.is_relative_to(folder) or not any(map(file.is_relative_to, installed)))
    )
    hashes = sorted(hashlib.sha256(file.read_bytes()).hexdigest() for file in own)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]
