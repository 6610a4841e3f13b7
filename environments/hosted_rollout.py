"""The former place of ``environments.rollout.hosted``, for one more release."""

import warnings

from environments.rollout.hosted import *  # noqa: F403 - every public name

warnings.warn("environments.hosted_rollout is now environments.rollout.hosted", DeprecationWarning, stacklevel=2)
