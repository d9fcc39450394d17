"""What the sidebar offers first: named here for the frame, and for what takes a choice back."""

EVERYONE, USUAL = "All teams", "30 d"
