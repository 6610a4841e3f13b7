"""Shared set-up: pytester, and the same home for hermes in every test of a worker."""

pytest_plugins = ["pytester"]
