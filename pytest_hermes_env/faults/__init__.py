"""A plan of faults, and how each of them is played at the wire and in a tool."""
