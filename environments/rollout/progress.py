"""The progress bar of `process` and `evaluate`; shown only where stderr is a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm


class ProgressBar(tqdm):
    """A bar that starts no thread, which would outlive it."""

    monitor_interval = 0


@contextlib.contextmanager
def progress_bar(name: str, *, unit: str, total: int) -> Iterator[ProgressBar]:
    """Show a bar for the work in this block, below what is logged meanwhile; the caller advances it with ``update``."""
    with (
        ProgressBar(total=total, desc=name, unit=unit, file=sys.stderr, disable=None, dynamic_ncols=True) as bar,
        contextlib.nullcontext() if bar.disable else logging_redirect_tqdm(tqdm_class=ProgressBar),
    ):
        yield bar
