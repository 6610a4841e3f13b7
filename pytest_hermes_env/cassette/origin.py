"""The origin of a recording: its header, and the versions that have changed since."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from pytest_hermes_env.cassette.tape import Header

PACKAGES = ("pytest-hermes-env", "atroposlib", "hermes-agent")
"""The packages that a result depends on."""


def header_of(*, recorded_from: str, provider: str = "", model: str = "", test: str = "") -> Header:
    """Return a header with the current time and the installed versions."""
    return Header(
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        recorded_from=recorded_from,
        provider=provider,
        model=model,
        test=test,
        versions=installed_versions(),
    )


def with_environment(header: Header, environment: type) -> Header:
    """Return the header with the name and the source of the environment's class."""
    try:
        source = Path(inspect.getfile(environment)).read_bytes()
    except (OSError, TypeError):
        source = b""
    return replace(
        header,
        environment=f"{_module_name(environment)}:{environment.__qualname__}",
        source_hash=hashlib.sha256(source).hexdigest() if source else "",
    )


def _module_name(environment: type) -> str:
    """Return the module name of a class; for a class of the main script, the name of its file."""
    spec = getattr(sys.modules.get(environment.__module__), "__spec__", None)
    if environment.__module__ != "__main__":
        return environment.__module__
    return spec.name if spec is not None else Path(inspect.getfile(environment)).stem


def version_drift(header: Header) -> Iterator[str]:
    """Yield a sentence for each package whose version differs from the recorded one."""
    for package, installed in sorted(installed_versions().items()):
        recorded = header.versions.get(package)
        if recorded is None:
            yield f"the version of {package} was not recorded"
        elif recorded != installed:
            yield f"{package} was {recorded}, is {installed}"


def installed_versions() -> dict[str, str]:
    """Return the versions of the packages that a result depends on."""
    return {name: _version(name) for name in PACKAGES}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
