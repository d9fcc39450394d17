"""Live traffic of teams that agreed, asked again of a baseline."""
