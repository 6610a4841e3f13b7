"""What a service serves, for clients that ask several: rollouts of different environments must not end up in one run."""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import sys
import sysconfig
from pathlib import Path

PROTOCOL = 1
"""Version of the requests and replies; another number is another protocol. A field that is only added to a reply leaves it as it is."""


def identity_of(cls: type) -> dict[str, str]:
    """Return an environment's class, the distribution that installed it, and a hash of its source, as it was imported.

    The source is what was imported from the class's directory, and from files that no package installed, wherever they are.
    """
    installed = {Path(place).resolve() for place in [*sysconfig.get_paths().values(), str(Path(__file__).parents[2])]}
    folder = Path(inspect.getfile(cls)).resolve().parent
    owners = importlib.metadata.packages_distributions().get(cls.__module__.split(".")[0], [])
    is_installed = any(map(folder.is_relative_to, installed))
    package = f"{owners[0]} {importlib.metadata.version(owners[0])}" if owners and is_installed else ""
    modules = [module for name, module in sys.modules.copy().items() if name != "__main__"]
    files = {Path(file).resolve() for module in modules if (file := getattr(module, "__file__", None)) and file.endswith(".py")}
    own = [file for file in files if file.is_relative_to(folder) or not any(map(file.is_relative_to, installed))]
    hashes = sorted(hashlib.sha256(file.read_bytes()).hexdigest() for file in own if file.is_file())
    source = hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]
    return {"environment": cls.__qualname__, "package": package, "source": source}
