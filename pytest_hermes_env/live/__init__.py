"""A REAL MODEL: providers, the check before a run, limits, metering, and the report at its end."""
