"""The versions of the packages that a result depends on. Standard library only."""

from __future__ import annotations

from importlib import metadata

PACKAGES = ("pytest-hermes-env", "atroposlib", "hermes-agent")


def installed_versions() -> dict[str, str]:
    """Return the version of each package, or "not installed"."""
    return {name: _version(name) for name in PACKAGES}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
