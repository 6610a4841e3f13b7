"""WHAT HAPPENED: environments built for tests, run through named scenarios, and recorded."""
