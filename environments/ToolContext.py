"""Makes ``from environments import ToolContext`` work, in a package without an ``__init__.py``: this module becomes the class."""

import sys

from environments.tool_context import ToolContext

sys.modules[__name__] = ToolContext  # type: ignore[assignment]
