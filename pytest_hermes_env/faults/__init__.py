"""A plan of faults, and how each of them is played at the wire, in a tool, and on a task."""
