"""WHAT A SANDBOX DOES: the seam at hermes' tool registry, and what may answer there instead of the real tools."""
