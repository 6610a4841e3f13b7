"""HE501 masks-match-tokens
masks has the length of tokens, and each mask is -100 or the token at its place.

What: in every scored item, for tokens [T], masks is [T], and masks[i] is -100 (not trained) or tokens[i] (trained).

Why: the trainer shifts masks into labels and takes them as they come. A mask that is one token off teaches the model to say every
word one place late; a mask of 0 and 1 teaches it to say token 0 and token 1. The loss goes down all the while, and days of GPU time
go into a model that writes noise.

Fix: build masks together with tokens: [-100] * len(prompt_tokens) + answer_tokens. After cutting tokens to a length, cut masks to the
same length.

Source: atroposlib 0.4.0, utils/tokenize_for_trainer.py and envs/server_handling/managed_server.py (masked_tokens).
"""

from __future__ import annotations

from pytest_hermes_env.contract.rule import Rule, Severity

RULE = Rule(id="HE501", name="masks-match-tokens", severity=Severity.ERROR, doc=__doc__)
