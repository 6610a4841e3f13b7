"""Acme's environments, on a layer of Acme's own."""
