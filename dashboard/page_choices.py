"""Default choices of the sidebar, shared by the frame and by resets of a choice."""

EVERYONE, USUAL = "All teams", "30 d"
