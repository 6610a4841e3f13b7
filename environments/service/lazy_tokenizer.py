"""The tokenizer of a served environment: loaded when something asks for it, since the engine has the tokens."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import transformers


class LazyTokenizer:
    """Stands for a tokenizer, and loads it at its first use. Raises: RuntimeError there, when it cannot be loaded."""

    of_placeholders = SimpleNamespace(encode=lambda text, **_: list(text.encode()))
    """Makes placeholder tokens, on which no engine trains, without a tokenizer: the bytes of a text."""

    def __init__(self, name: str) -> None:
        self.name_or_path = name

    from_pretrained = classmethod(lambda cls, name, *_, **__: cls(name))

    @functools.cached_property
    def _loaded(self) -> Any:
        try:
            return transformers.AutoTokenizer.from_pretrained(self.name_or_path)
        except (OSError, ValueError) as error:
            raise RuntimeError(
                f"the environment uses its tokenizer, and {self.name_or_path} cannot be loaded: {str(error).splitlines()[0]} "
                "Start the service with --env.tokenizer_name NAME or DIRECTORY: a tokenizer on disk needs no internet"
            ) from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._loaded, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Tokenise, as the tokenizer does."""
        return self._loaded(*args, **kwargs)

    def __len__(self) -> int:
        return len(self._loaded)


@contextlib.contextmanager
def loading_later() -> Iterator[None]:
    """Give Atropos' base class, whose constructor loads a tokenizer, a `LazyTokenizer`."""
    with mock.patch("atroposlib.envs.base.AutoTokenizer", LazyTokenizer):
        yield
