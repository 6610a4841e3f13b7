"""Programs that run in the sandbox, beside gold's: they import nothing of this package."""
