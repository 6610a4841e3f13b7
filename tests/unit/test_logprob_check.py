"""Which logprobs a server returns, judged from its answers: of models of every shape, with the noise of kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hermes_env_shared.logprob_check import QUESTION, QUESTIONS, Finding, judged
from hermes_env_shared.token_servers import Completion
from tests.reference.language_model import LanguageModel

Told = Callable[[LanguageModel, list[int], float, dict[int, float]], np.ndarray]
KINDS: dict[str, Told] = {
    "raw": lambda model, context, _t, _p: model.logprobs(context),
    "processed": lambda model, context, temperature, penalties: model.logprobs(context, temperature, penalties),
    "without penalties": lambda model, context, temperature, _p: model.logprobs(context, temperature),
    "log10": lambda model, context, temperature, _p: model.logprobs(context, temperature) / np.log(10),
    "log2": lambda model, context, temperature, _p: model.logprobs(context, temperature) / np.log(2),
    "other temperature": lambda model, context, temperature, _p: model.logprobs(context, temperature**2),
}


class Repeating(LanguageModel):
    """A model that likes to say its last token again."""

    def logits(self, context: list[int]) -> np.ndarray:
        """Return the logits, the last token's among the highest."""
        logits = super().logits(context)
        logits[context[-1]] = logits.max() - 0.5
        return logits


def found(
    kind: str, *, spread: float = 2.5, noise: float = 0.0, top: int = 20, seed: int = 1, model: type = LanguageModel
) -> Finding:
    """What is found of a server that returns logprobs of a kind."""
    chance, speaker = np.random.default_rng(seed), model(3000, spread)

    def answered(temperature: float, penalty: float) -> Completion:
        tokens: list[int] = []
        logprobs, tops = [], []
        for _ in range(2):
            context, penalties = [*QUESTION, *tokens], dict.fromkeys(tokens, penalty)
            token = int(chance.choice(3000, p=np.exp(speaker.logprobs(context, temperature, penalties))))
            own = KINDS[kind](speaker, context, temperature, penalties) + chance.normal(0, noise, 3000)
            tops.append({token: float(own[token]), **{int(one): float(own[one]) for one in np.argsort(-own)[:top]}})
            tokens.append(token)
            logprobs.append(float(own[token]))
        return Completion(tokens=tokens, logprobs=logprobs, finish_reason="length", tops=tops if top else [])

    first, second = (
        [answered(asked["temperature"], asked.get("presence_penalty", 0.0)) for _ in range(asked["n"])] for asked in QUESTIONS
    )
    return judged(first, second)


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("spread", [1, 2.5, 5, 10])
@pytest.mark.parametrize("kind", ["raw", "processed"])
def test_raw_and_processed_are_told_apart(kind, spread, noise):
    """Of flat and of peaked models."""
    finding = found(kind, spread=spread, noise=noise)

    assert (finding.mode, finding.problem) == (kind, "")


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("log10", "are not natural: as such, the probabilities of"),
        ("log2", "are not natural: with another base, they fit the temperatures"),
        ("other temperature", "change with the temperature, but not as those of the sampled distribution do"),
    ],
)
def test_what_nobody_can_train_on_is_a_problem(kind, problem):
    """Of another base, or of another distribution."""
    assert found(kind, spread=5).problem.startswith(problem)


@pytest.mark.parametrize(("kind", "has_penalties"), [("processed", True), ("without penalties", False), ("raw", False)])
def test_penalties_show_where_a_model_repeats_itself(kind, has_penalties):
    """The second question penalises what was said."""
    assert found(kind, spread=5, model=Repeating).has_penalties is has_penalties


@pytest.mark.parametrize("kind", ["raw", "processed"])
@pytest.mark.parametrize("seed", range(6))
def test_without_other_tokens_nothing_false_is_said(kind, seed):
    """Where the answers share a token, it tells; where they do not, nothing is claimed."""
    finding = found(kind, spread=4, top=0, seed=seed)

    assert (finding.mode in {kind, "unknown"}, finding.problem) == (True, "")
