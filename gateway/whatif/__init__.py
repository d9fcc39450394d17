"""What-ifs: recorded traffic through the real decision, in virtual time."""
