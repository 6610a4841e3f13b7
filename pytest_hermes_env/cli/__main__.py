"""``python -m pytest_hermes_env.cli``: the command `hermes-env`."""

import sys

from pytest_hermes_env.cli import main

sys.exit(main())
