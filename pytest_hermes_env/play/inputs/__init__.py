"""Inputs of gold's program: those that a verifier was seen to give, others like them, and for which of them a wrong program differs."""
