"""Strategy for scored groups, which an environment sends to the trainer.

Shapes: ``tokens [B][T]`` token ids, rows of different lengths; ``masks [B][T]`` -100 or the token id; ``scores [B]``;
``inference_logprobs [B][T]`` in nats, 1.0 where masked. Source: atroposlib 0.4.0, ``ScoredDataGroup`` in ``envs/base.py``.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pytest_hermes_env.errors import StrategyError, with_type
from pytest_hermes_env.strategies.limits import check_range, drawable
from pytest_hermes_env.strategies.rollouts import messages as conversations

IGNORED = -100
FILLER = 1.0
MIN_NATS = -20.0
VOCABULARY = 256
EMPTY_COLUMNS = ("advantages", "ref_logprobs", "overrides", "images", "distill_token_ids", "distill_logprobs")


def scored_groups(
    *,
    group_size: int = 2,
    min_tokens: int = 1,
    max_tokens: int = 8,
    scores: st.SearchStrategy[float] | None = None,
    logprobs: bool | None = None,
    messages: bool | None = None,
) -> st.SearchStrategy[dict[str, Any]]:
    """Return ScoredDataGroups of ``group_size`` rollouts, each with ``min_tokens`` to ``max_tokens`` tokens.

    ``scores`` draws one score (default: 0.0 to 1.0). ``logprobs`` and ``messages``: whether the group has these columns; None means
    either.

    Raises: sizes that allow nothing, or scores that are not a strategy → StrategyError.
    """
    check_range("scored_groups", "group_size", group_size, "group_size", group_size, floor=1)
    check_range("scored_groups", "min_tokens", min_tokens, "max_tokens", max_tokens)
    score = st.floats(0.0, 1.0) if scores is None else scores
    if not isinstance(score, st.SearchStrategy):
        raise StrategyError(f"scored_groups(scores=...) takes a strategy of one score; got {with_type(scores)}.")
    labelled = st.tuples(st.integers(0, VOCABULARY - 1), st.booleans(), st.floats(MIN_NATS, 0.0))
    row = st.lists(labelled, min_size=min_tokens, max_size=max_tokens)
    return st.builds(
        _group,
        st.lists(row, min_size=group_size, max_size=group_size),
        st.lists(drawable("scored_groups", "scores", score, score), min_size=group_size, max_size=group_size),
        st.booleans() if logprobs is None else st.just(logprobs),
        _columns(messages, group_size),
    )


def _columns(wanted: bool | None, group_size: int) -> st.SearchStrategy[Any]:
    column = st.lists(conversations(), min_size=group_size, max_size=group_size)
    if wanted is None:
        return st.none() | column
    return column if wanted else st.none()


def _group(rows: list[list[tuple[int, bool, float]]], scores: list[float], has_logprobs: bool, messages: Any) -> dict[str, Any]:
    logprobs = [[nats if is_trained else FILLER for _, is_trained, nats in row] for row in rows]
    return {
        "tokens": [[token for token, _, _ in row] for row in rows],
        "masks": [[token if is_trained else IGNORED for token, is_trained, _ in row] for row in rows],
        "scores": scores,
        "messages": messages,
        "inference_logprobs": logprobs if has_logprobs else None,
        **dict.fromkeys(EMPTY_COLUMNS),
        "group_overrides": {},
    }
