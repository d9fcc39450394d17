"""Installation, planning, supervision and measurement of own engines."""
