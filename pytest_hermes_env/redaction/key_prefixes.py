"""The prefixes by which keys of known services are recognised. The search and the independent scan of cassettes read this table.

Source: the services' documentation; agent/redact.py of hermes-agent 0.19; the plugins of detect-secrets 1.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_RUN = re.compile(r"[A-Za-z0-9]+")
MIN_RUN = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyPrefix:
    """Keys that begin with ``prefix``: the kind in their placeholder, and how many characters follow at least."""

    prefix: str
    kind: str
    min_body: int


def _of(kind: str, min_body: int, prefixes: str) -> list[KeyPrefix]:
    return [KeyPrefix(prefix=prefix, kind=kind, min_body=min_body) for prefix in prefixes.split()]


KEY_PREFIXES: tuple[KeyPrefix, ...] = (
    # models and inference
    *_of(
        "api-key",
        16,
        "sk- gsk_ nvapi- tvly- r8_ pplx- xai- fw_ fpk_ csk- pcsk_ jina_ tgp_v1_ fal_ exa_ hsk- mem0_ brv_ retaindb_",
    ),
    *_of("api-key", 20, "sk_ fw- fc- am_ gAAAA lsv2_pt_ lsv2_sk_"),
    *_of("hugging-face-token", 20, "hf_"),
    *_of("organisation", 20, "org-"),
    # machines that run the tools
    *_of("sandbox-key", 16, "dtn_ e2b_ rpa_ bb_live_"),
    *_of("modal-token", 20, "as- ak-"),
    *_of("digitalocean-token", 20, "dop_v1_ doo_v1_ dor_v1_"),
    *_of("databricks-token", 32, "dapi"),
    # code and packages
    *_of("github-token", 20, "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_"),
    *_of("gitlab-token", 16, "glpat- gldt- glft- glsoat- glrt- glcbt- glptt- glagent- gloas- GR1348941"),
    *_of("package-token", 20, "npm_ pypi- dckr_pat_"),
    # payments, mail, messages, metrics
    *_of(
        "api-key", 16, "sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sq0csp- sq0atp- shpat_ lin_api_ ntn_ syt_ sbp_ sntrys_ glc_"
    ),
    *_of("wandb-key", 20, "wandb_v1_"),
    *_of("sendgrid-key", 16, "SG."),
    *_of("slack-token", 10, "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-"),
    *_of("google-key", 16, "GOCSPX- ya29."),
    *_of("vault-token", 20, "hvs. hvb."),
)


def is_key_body(body: str) -> bool:
    """Return whether what follows a prefix looks random: a digit, or letters of both cases, and no mere words in hyphens.

    ``sk-toggleable-content`` and ``task-1234567890123`` are no keys.
    """
    longest = max((len(run) for run in LONGEST_RUN.findall(body)), default=0)
    return longest >= min(MIN_RUN, len(body) // 2) and any(map(str.isdigit, body))
