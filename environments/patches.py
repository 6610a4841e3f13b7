"""A stub for environments written for the former layer, which patched libraries; this layer needs no patch."""

from __future__ import annotations

__all__ = ["apply_patches"]


def apply_patches() -> None:
    """Do nothing. Source: the former layer patched an async terminal backend here."""
