"""The second life of rollouts: read, scored again, compared, judged as a run, and written in other formats."""
