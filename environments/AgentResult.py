"""Makes ``from environments import AgentResult`` work, in a package without an ``__init__.py``: this module becomes the class."""

import sys

from environments.agent_loop import AgentResult

sys.modules[__name__] = AgentResult  # type: ignore[assignment]
