"""Tests of the redaction, and the secrets that they plant."""
