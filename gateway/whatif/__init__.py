"""What would have happened: recorded traffic through the real decision, in virtual time."""
