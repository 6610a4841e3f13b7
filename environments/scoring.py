"""The former place of ``environments.trainer.scoring``, for one more release."""

import warnings

from environments.trainer.scoring import *  # noqa: F403 - every public name

warnings.warn("environments.scoring is now environments.trainer.scoring", DeprecationWarning, stacklevel=2)
