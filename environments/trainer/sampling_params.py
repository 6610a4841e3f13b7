"""The sampling parameters of a rollout, as the trainer reads them: it computes logprobs again with the same temperature.

Source: atroposlib 0.4.0, ``example_trainer/data.py`` (``overrides``, ``generation_params``, ``group_overrides``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CHANGE_THE_DISTRIBUTION = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)


def sampling_params(temperature: float, extra_body: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the temperature, and each other parameter that changes the sampled distribution and is set in ``extra_body``.

    ``extra_body`` overrides the temperature, as it does in the request.
    """
    given = {"temperature": temperature, **(extra_body or {})}
    return {name: given[name] for name in _CHANGE_THE_DISTRIBUTION if given.get(name) is not None}
