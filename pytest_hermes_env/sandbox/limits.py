"""The former place of `Limits`, for one more release."""

import warnings

from pytest_hermes_env.sandbox.cell import Limits

__all__ = ["Limits"]

warnings.warn("pytest_hermes_env.sandbox.limits is now pytest_hermes_env.sandbox.cell", DeprecationWarning, stacklevel=2)
