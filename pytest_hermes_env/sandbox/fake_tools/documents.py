"""Jupyter notebooks, Word and Excel files as ``read_file`` shows them: hermes' own functions turn them into text."""

from __future__ import annotations

import posixpath
import tempfile

from pytest_hermes_env.sandbox.hermes_modules import hermes_module

__all__ = ["document_text"]

EXTENSIONS = frozenset({".ipynb", ".docx", ".xlsx"})


def document_text(path: str, data: bytes) -> str | None:
    """Return the text of a document, or None if the file is none, or cannot be shown as one."""
    extension = posixpath.splitext(path)[1].lower()
    if extension not in EXTENSIONS:
        return None
    hermes = hermes_module("tools.read_extract")
    with tempfile.NamedTemporaryFile(suffix=extension) as file:
        file.write(data)
        file.flush()
        try:
            return str(hermes.extract_document_text(file.name))
        except hermes.ExtractionError:
            return None
