"""Charts: each takes plain records and returns a chart in the palette of the dashboard."""
