"""The progress bar of `process` and `evaluate`: what is done, and the rollouts under way with their turns and tokens.

Place in the flow: whoever has long work opens `progress_bar`; the agent loops in it report their turns with `tell_turn`,
`tell_reply` and `tell_end`. Shown only where stderr is a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm


class ProgressBar(tqdm):
    """Counts what is done; its postfix tells what is under way."""

    monitor_interval = 0
    """Seconds; 0 starts no thread that would outlive the bar."""

    def __init__(self, **settings: Any) -> None:
        """Begin with nothing under way."""
        self.turns: dict[str, int] = {}
        self.tokens = 0
        super().__init__(**settings)

    def tell(self) -> None:
        """Show the rollouts under way."""
        if not self.turns:
            self.set_postfix_str("")
            return
        first, last = min(self.turns.values()), max(self.turns.values())
        number = len(self.turns)
        at = f"turn {first}" if first == last else f"turns {first} to {last}"
        tokens = f", {self.tokens:,} tokens" if self.tokens else ""
        self.set_postfix_str(f"{number} rollout{'s' * (number != 1)} at {at}{tokens}")


_shown: ContextVar[ProgressBar | None] = ContextVar("progress_bar", default=None)


@contextmanager
def progress_bar(name: str, *, unit: str, total: int) -> Iterator[ProgressBar]:
    """Show a bar for the work in this block, below what is logged meanwhile; the caller advances it with ``update``."""
    is_shown = sys.stderr is not None and sys.stderr.isatty()
    with ProgressBar(total=total, desc=name, unit=unit, file=sys.stderr, disable=not is_shown, dynamic_ncols=True) as bar:
        if not is_shown:
            yield bar
            return
        token = _shown.set(bar)
        try:
            with logging_redirect_tqdm(tqdm_class=ProgressBar):
                yield bar
        finally:
            _shown.reset(token)


def tell_turn(rollout: str, turn: int) -> None:
    """Report that a rollout begins a turn, counted from 1."""
    bar = _shown.get()
    if bar is not None:
        bar.turns[rollout] = turn
        bar.tell()


def tell_reply(response: Any) -> None:
    """Report a reply: the tokens that were sampled for it, if the server counted them."""
    bar = _shown.get()
    sampled = getattr(getattr(response, "usage", None), "completion_tokens", None)
    if bar is not None and isinstance(sampled, int):
        bar.tokens += sampled
        bar.tell()


def tell_end(rollout: str) -> None:
    """Report that a rollout's agent loop has ended."""
    bar = _shown.get()
    if bar is not None:
        bar.turns.pop(rollout, None)
        bar.tell()
