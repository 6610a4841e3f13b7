"""Upstream once had to patch libraries before environments could run; this layer needs no patch.

`apply_patches` stays so that environments written against the old layer import and call it unchanged.
"""

from __future__ import annotations

__all__ = ["apply_patches"]


def apply_patches() -> None:
    """Do nothing, as often as it is called. Source: the old layer patched an async terminal backend here."""
