"""The former place of ``environments.loop.end``, for one more release."""

import warnings

from environments.loop.end import *  # noqa: F403 - every public name

warnings.warn("environments.rollout_end is now environments.loop.end", DeprecationWarning, stacklevel=2)
