"""Which logprobs a server returns, judged from its answers: of models of every shape, with the noise of kernels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hermes_env_shared.logprob_check import PROBES, Finding, Probe, judged
from hermes_env_shared.token_servers import Completion
from tests.reference.language_model import LanguageModel

Told = Callable[[LanguageModel, list[int], float, dict[int, float]], np.ndarray]
KINDS: dict[str, Told] = {
    "raw": lambda model, context, _t, _p: model.logprobs(context),
    "processed": lambda model, context, temperature, penalties: model.logprobs(context, temperature, penalties),
    "without penalties": lambda model, context, temperature, _p: model.logprobs(context, temperature),
    "log10": lambda model, context, temperature, _p: model.logprobs(context, temperature) / np.log(10),
    "log2": lambda model, context, temperature, _p: model.logprobs(context, temperature) / np.log(2),
    "cut processed": lambda model, context, temperature, penalties: cut(model.logprobs(context, temperature, penalties), 8),
    "other temperature": lambda model, context, temperature, _p: model.logprobs(context, temperature**2),
}


def cut(logprobs: np.ndarray, count: int) -> np.ndarray:
    """Logprobs as a server with a top_k of its own returns them."""
    kept = np.where(logprobs >= np.sort(logprobs)[-count], logprobs, -9999.0)
    return np.maximum(kept - np.log(np.exp(kept).sum()), -9999.0)


class Repeating(LanguageModel):
    """A model that likes to say its last token again."""

    def logits(self, context: list[int]) -> np.ndarray:
        """Return the logits, the last token's among the highest."""
        logits = super().logits(context)
        logits[context[-1]] = logits.max() - 0.5
        return logits


class Certain(LanguageModel):
    """A model that is nearly certain of each token."""

    def logits(self, context: list[int]) -> np.ndarray:
        """Return the logits, one of them far above the others."""
        logits = super().logits(context)
        logits[context[-1] * 7 % self.size] = logits.max() + 12
        return logits


def answered(
    kind: str, speaker: LanguageModel, probe: Probe, asked: dict, *, noise: float, top: int, chance: np.random.Generator
) -> Completion:
    """One answer of a server that returns logprobs of a kind."""
    tokens: list[int] = []
    logprobs, tops = [], []
    for _ in range(asked["max_tokens"]):
        context, temperature = [*probe.prompt, *tokens], asked["temperature"]
        penalties = dict.fromkeys(tokens, asked.get("presence_penalty", 0.0))
        token = int(chance.choice(3000, p=np.exp(speaker.logprobs(context, temperature, penalties))))
        own = KINDS[kind](speaker, context, temperature, penalties) + chance.normal(0, noise, 3000)
        tops.append({token: float(own[token]), **{int(one): float(own[one]) for one in np.argsort(-own)[:top]}})
        tokens.append(token)
        logprobs.append(float(own[token]))
    return Completion(tokens=tokens, logprobs=logprobs, finish_reason="length", tops=tops if top else [])


def found(
    kind: str, *, spread: float = 2.5, noise: float = 0.0, top: int = 20, seed: int = 1, model: type = LanguageModel
) -> Finding:
    """What is found of a server that returns logprobs of a kind, by as many probes as it takes."""
    chance, speaker = np.random.default_rng(seed), model(3000, spread)
    for probe in PROBES:
        first, second = (
            [answered(kind, speaker, probe, asked, noise=noise, top=top, chance=chance) for _ in range(asked["n"])]
            for asked in probe.questions
        )
        finding = judged(probe, first, second)
        if finding.mode != "unknown" or finding.problem:
            break
    return finding


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("spread", [0.3, 1, 2.5, 5, 10, 100])
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


@pytest.mark.parametrize("top", [20, 5])
@pytest.mark.parametrize("kind", ["raw", "processed"])
def test_a_model_that_is_certain_tells(kind, top):
    """By the tokens that it does not say."""
    assert str(found(kind, model=Certain, spread=1, top=top, noise=0.01).mode) == kind


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["raw", "processed"])
def test_logprobs_of_sampled_tokens_alone_tell_after_noise(kind, seed):
    """Where the first prompt leaves it open: a later token, or the prompt that the model cannot continue."""
    assert found(kind, spread=100, top=0, seed=seed).mode == kind


@pytest.mark.parametrize(("logprobs", "mode"), [([-2.0], "unknown"), ([-2.0, -1.5], "raw"), ([-0.01, -0.02], "unknown")])
def test_one_equal_logprob_may_be_chance(logprobs, mode):
    """Two are none, unless the model is certain of both."""
    answer = Completion(tokens=[5, 6][: len(logprobs)], logprobs=logprobs, finish_reason="length")

    assert judged(PROBES[0], [answer], [answer]).mode == mode


@pytest.mark.parametrize("seed", range(4))
def test_tokens_that_cannot_be_sampled_tell_nothing(seed):
    """Servers that cut the distribution return -9999 for those outside of it, at every temperature."""
    assert found("cut processed", spread=5, seed=seed).mode == "processed"


@pytest.mark.parametrize("kind", ["raw", "processed"])
@pytest.mark.parametrize("seed", range(4))
def test_without_other_tokens_nothing_false_is_said(kind, seed):
    """Where the answers share a token, it tells; where they do not, nothing is claimed."""
    finding = found(kind, spread=1, top=0, seed=seed)

    assert (finding.mode in {kind, "unknown"}, finding.problem) == (True, "")
