"""A REAL MODEL: providers, preflight, limits, metering and the report."""
