"""The sidebar's first choices: named here for the frame, and for what takes a choice back."""

EVERYONE, USUAL = "All teams", "30 d"
